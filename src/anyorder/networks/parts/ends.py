"""Values in, features out: the two ends that token networks (transformers) share.

A real value enters through a small fixed basis (itself, and sines at four scales, since a linear map alone
cannot tell apart two nearby atoms); a code enters through a table. Variables of one group share both ends.
"""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from anyorder.networks.base import FARTHEST
from anyorder.networks.layout import Layout

FREQUENCIES = (0.5, 1.0, 2.0, 4.0)  # of the sines, in radians per unit of a standardised value


class ValueEmbedding(nn.Module):
    """(variable, value) -> vector."""

    def __init__(self, layout: Layout, width: int) -> None:
        super().__init__()
        count = max(layout.groups) + 1
        levels = [0] * count
        for group, level in zip(layout.groups, layout.levels, strict=True):
            levels[group] = level
        rows = [max(level, 1) for level in levels]  # a real group has one row: its bias
        offsets = torch.tensor([0, *itertools.accumulate(rows[:-1])])
        groups = torch.tensor(layout.groups)
        self.group: Tensor
        self.offset: Tensor
        self.real: Tensor
        self.register_buffer("group", groups, persistent=False)
        self.register_buffer("offset", offsets[groups], persistent=False)
        self.register_buffer("real", torch.tensor(layout.levels) == 0, persistent=False)
        self.any_real = any(level == 0 for level in layout.levels)
        self.table = nn.Embedding(sum(rows), width)
        nn.init.normal_(self.table.weight, std=0.5)
        basis = 1 + 2 * len(FREQUENCIES)
        self.slopes = nn.Parameter(torch.randn(count, basis, width) * 0.3) if self.any_real else None

    def forward(self, variable: Int[Tensor, "*batch"], value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch width"]:
        real = self.real[variable]
        code = torch.where(real, 0, value).long()
        vectors: Tensor = self.table(self.offset[variable] + code)
        if self.slopes is not None:
            line = torch.where(real, value.clamp(-FARTHEST, FARTHEST), 0.0).to(self.slopes.dtype)
            waves = line[..., None] * line.new_tensor(FREQUENCIES)
            basis = torch.cat([line[..., None], waves.sin(), waves.cos() - 1.0], dim=-1)  # 0 at a code's 0
            if len(self.slopes) == 1:
                return vectors + basis @ self.slopes[0]
            # F.embedding, since the gradient of plain indexing is summed in no fixed order.
            slopes = F.embedding(self.group[variable], self.slopes.flatten(1)).unflatten(-1, self.slopes.shape[1:])
            vectors = vectors + (basis[..., None, :] @ slopes).squeeze(-2)
        return vectors


class Readout(nn.Module):
    """Trunk vector of a variable -> the features its head reads; one linear map per group."""

    def __init__(self, layout: Layout, width: int) -> None:
        super().__init__()
        self.group: Tensor
        # Only groups that are answered have a map; context may read any, since nobody looks at what it says.
        kept = sorted({layout.groups[variable] for variable in layout.answered})
        place = {group: number for number, group in enumerate(kept)}
        groups = torch.tensor([place.get(group, 0) for group in layout.groups])
        self.register_buffer("group", groups, persistent=False)
        self.answered = list(layout.answered)
        count = len(kept)
        self.weight = nn.Parameter(torch.randn(count, width, layout.width) * 0.02)
        self.bias = nn.Parameter(torch.zeros(count, layout.width))

    def begin(self, starts: Float[Tensor, "variables width"]) -> None:
        """Start each group at its head's broad distribution."""
        with torch.no_grad():
            self.bias[self.group[self.answered]] = starts[self.answered].to(self.bias)

    def forward(
        self, trunk: Float[Tensor, "batch steps trunk"], variable: Int[Tensor, "batch steps"]
    ) -> Float[Tensor, "batch steps width"]:
        if len(self.weight) == 1:
            return trunk @ self.weight[0] + self.bias[0]
        groups = self.group[variable]
        out = F.embedding(groups, self.bias)
        for group in groups.unique().tolist():
            here = groups == group
            out[here] = out[here] + trunk[here] @ self.weight[group]
        return out

    def each(self, trunk: Float[Tensor, "batch variables trunk"]) -> Float[Tensor, "batch variables width"]:
        """All variables in their own order."""
        if len(self.weight) == 1:
            return trunk @ self.weight[0] + self.bias[0]
        weight, bias = self.weight.index_select(0, self.group), self.bias.index_select(0, self.group)
        return torch.einsum("bvt,vtw->bvw", trunk, weight) + bias
