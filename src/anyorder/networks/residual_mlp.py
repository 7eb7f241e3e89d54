"""The residual MLP: the mask network for tables (ACE's and MAC's architecture for continuous data).

What is known enters as values and indicator bits, passes a few pre-norm residual blocks and leaves as features of
every variable at once. With ``expert`` the exact Gaussian conditional of every real variable enters too, and
location-scale heads are answered relative to it: an untrained network then *is* the Gaussian.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.networks.base import FARTHEST, MaskNetwork, Network, chosen, rows_at_once
from anyorder.networks.gaussian import beyond_context, check_covariance, conditional_moments, fit_moments, moments_along
from anyorder.networks.parts.dropout import Dropout
from anyorder.networks.parts.mlp_stack import MLPStack, relative_to
from anyorder.networks.parts.stack import Apart, Stack
from anyorder.query import PAD, Chain, Step


class Block(nn.Module):
    """x + W2 dropout(gelu(W1 norm(x))), starting as the identity."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.rise = nn.Linear(width, width)
        self.fall = nn.Linear(width, width)
        self.dropout = Dropout(dropout)
        nn.init.zeros_(self.fall.weight)
        nn.init.zeros_(self.fall.bias)

    def forward(self, hidden: Float[Tensor, "batch width"]) -> Float[Tensor, "batch width"]:
        out: Tensor = hidden + self.fall(self.dropout(F.gelu(self.rise(self.norm(hidden)))))
        return out


@dataclass(eq=False)
class ResidualMLP(MaskNetwork):
    """Values and known bits -> features of all variables in one pass."""

    name: ClassVar[str] = "residual_mlp"

    width: int = 256
    blocks: int = 3
    dropout: float = 0.1
    expert: bool = False

    for_short_tables: ClassVar[Mapping[str, Any]] = {"width": 128}

    # Untrained, the expert is the best Gaussian of the columns as they are encoded: worth it once they are bent to
    # normals, and once there are two of them.
    encodings: ClassVar[tuple[str, ...]] = ("standard", "normal_scores")

    @classmethod
    def defaults(cls, encoding: str, reals: int) -> Mapping[str, Any]:
        return {"expert": encoding == "normal_scores" and reals > 1}

    def __post_init__(self) -> None:
        super().__post_init__()
        levels = torch.tensor(self.layout.levels)
        sizes = torch.tensor(self.layout.sizes)
        slots = levels.clamp(min=1)  # a real value takes one input, a code one input per level
        self.slots = int(slots.sum())
        inputs = self.slots + self.layout.variables
        self.real: Tensor
        self.guessed: Tensor
        self.owner: Tensor
        self.code: Tensor
        self.plain: Tensor
        self.farthest: Tensor
        self.feature_index: Tensor
        self.register_buffer("real", levels == 0, persistent=False)
        # Of these the expert speaks: of context it only hears.
        self.register_buffer("guessed", (levels == 0) & (sizes > 0), persistent=False)
        self.hears_context = bool(((levels == 0) & (sizes == 0)).any())
        # Of each input: the variable that it comes from, and the code that it marks, unless it is a real value itself.
        owner = torch.arange(len(slots)).repeat_interleave(slots)
        code = torch.arange(self.slots) - (slots.cumsum(0) - slots)[owner]
        self.register_buffer("owner", owner, persistent=False)
        self.register_buffer("code", code, persistent=False)
        self.register_buffer("plain", (levels == 0)[owner], persistent=False)
        self.register_buffer("farthest", torch.where(levels == 0, FARTHEST, torch.inf).double(), persistent=False)
        # Heads differ in size; the flat output is spread to [variables, width] with zeros behind the short ones.
        column = torch.arange(self.layout.width)
        index = (sizes.cumsum(0) - sizes)[:, None] + column
        self.register_buffer("feature_index", index.where(column < sizes[:, None], int(sizes.sum())), persistent=False)
        self.starts = [0, *accumulate(self.layout.sizes)]  # of each variable among the flat features
        if self.expert:
            inputs += 2 * int(self.guessed.sum())
            self._prepare_expert(int((levels == 0).sum()))
        self.enter = nn.Linear(inputs, self.width)
        self.trunk = nn.ModuleList(Block(self.width, self.dropout) for _ in range(self.blocks))
        self.norm = nn.LayerNorm(self.width)
        self.leave = nn.Linear(self.width, int(sizes.sum()))
        nn.init.normal_(self.leave.weight, std=0.01)

    def _prepare_expert(self, reals: int) -> None:
        self.mean: Tensor
        self.covariance: Tensor
        self.location_features: Tensor
        self.scale_features: Tensor
        self.register_buffer("mean", torch.zeros(reals, dtype=torch.float64))
        self.register_buffer("covariance", torch.eye(reals, dtype=torch.float64))
        for name, roles in (("location_features", self.layout.locations), ("scale_features", self.layout.log_scales)):
            marks = torch.zeros(self.layout.variables, self.layout.width, dtype=torch.bool)
            for variable, features in enumerate(roles):
                marks[variable, list(features)] = True
            self.register_buffer(name, marks & self.real[:, None], persistent=False)

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        if self.expert:
            check_covariance(self.covariance)

    def set_moments(self, mean: Float[Tensor, " reals"], covariance: Float[Tensor, "reals reals"]) -> None:
        """Give the expert its Gaussian over the real variables (see :func:`~.gaussian.fit_moments`)."""
        self.mean.copy_(mean)
        self.covariance.copy_(covariance)

    def prepare(self, values: Float[Tensor, "rows variables"], observed: Bool[Tensor, "rows variables"]) -> None:
        if self.expert:
            self.set_moments(*fit_moments(values[:, self.real], observed[:, self.real]))

    def begin(self, starts: Float[Tensor, "variables width"]) -> None:
        flat = torch.zeros(self.leave.out_features + 1)
        flat[self.feature_index.flatten().cpu()] = starts.flatten().float().cpu()
        with torch.no_grad():
            self.leave.bias.copy_(flat[:-1])

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        values = self.near(values, known)
        return self._features(values, known, self._moments(values, known) if self.expert else None)

    def at(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        target: Int[Tensor, " batch"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch width"]:
        values = self.near(values, known)
        moments = self._moments(values, known) if self.expert else None
        return self._features_of(values, known, moments, target)

    def _moments(self, values: Tensor, known: Tensor) -> tuple[Float[Tensor, "batch reals"], Tensor]:
        """The expert's mean and deviation of every real variable that it speaks of."""
        values, known = values[:, self.real], known[:, self.real]
        if not self.hears_context:
            return conditional_moments(self.mean, self.covariance, values, known)
        context = ~self.guessed[self.real]
        if not bool(known[:, context].all()):
            location, deviation = conditional_moments(self.mean, self.covariance, values, known)
            return location[:, ~context], deviation[:, ~context]
        covariance, start = beyond_context(self.mean, self.covariance, values, context)
        nothing = torch.zeros_like(start[0])
        moved = values[:, ~context] - start
        location, deviation = conditional_moments(nothing, covariance, moved, known[:, ~context])
        return start + location, deviation

    def along(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Float[Tensor, "batch steps width"]:
        if not self.expert or chain.steps == 0 or self._asks_partner_of_real(chain):
            return super().along(values, chain)
        # The expert answers all steps of a chain at once; only the network itself has to be unrolled.
        values = self.near(values, chain.evidence | chain.asked)
        parts = torch.arange(len(values), device=values.device).split(rows_at_once(self.layout))
        return torch.cat([self._along_with_expert(values[part], chain.rows(part)) for part in parts])

    def _asks_partner_of_real(self, chain: Chain) -> bool:
        """Whether a step may have to hide a real variable: then the moments of the whole path would tell too much."""
        if not self.layout.partners:
            return False
        partner = torch.tensor(self.layout.partners, device=chain.order.device)[chain.order.clamp(min=0)]
        return bool((chain.counted & (partner >= 0) & self.real[partner.clamp(min=0)]).any())

    def _along_with_expert(self, values: Tensor, chain: Chain) -> Tensor:
        path, reals = torch.cat([chain.prefix, chain.order], dim=1), values[:, self.real]
        context = ~self.guessed[self.real]
        told = self.hears_context and bool(chain.evidence[:, self.real & ~self.guessed].all())
        among = self.guessed if told else self.real
        number = torch.where(among, among.cumsum(0) - 1, PAD)  # of each variable among them
        path = torch.where(path == PAD, PAD, number[path.clamp(min=0)])
        if told:
            covariance, start = beyond_context(self.mean, self.covariance, reals, context)
            location, deviation = moments_along(
                torch.zeros_like(start[0]), covariance, reals[:, ~context] - start, path
            )
            location = location + start[:, None]
        else:
            location, deviation = moments_along(self.mean, self.covariance, reals, path)
            if self.hears_context:
                location, deviation = location[..., ~context], deviation[..., ~context]
        location, deviation = (part[:, chain.prefix.shape[1] :] for part in (location, deviation))

        def answer(step: Step) -> Tensor:
            here = (location[step.row, step.position], deviation[step.row, step.position])
            return self._features_of(values[step.row], step.known, here, step.target)

        return self.unrolled(chain, answer)

    def near(self, values: Float[Tensor, "*batch variables"], known: Bool[Tensor, "*batch variables"]) -> Tensor:
        """The known values, none of them absurdly far out, and 0 for the others."""
        farthest = self.farthest.to(values.dtype)
        return values.where(known, 0.0).clamp(-farthest, farthest)

    def _features(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        moments: tuple[Float[Tensor, "batch reals"], Float[Tensor, "batch reals"]] | None,
    ) -> Float[Tensor, "batch variables width"]:
        """Features given the expert's mean and deviation of every real variable, if there is an expert."""
        hidden, location, deviation = self._hidden(values, known, moments)
        flat = self.leave(hidden)
        spread = F.pad(flat, (0, 1)).index_select(1, self.feature_index.flatten())
        features: Tensor = spread.unflatten(1, self.feature_index.shape)
        if location is not None and deviation is not None:
            marks = self.location_features, self.scale_features
            features = relative_to(location[..., None], deviation[..., None], features, *marks)
        return features

    def _features_of(
        self, values: Tensor, known: Tensor, moments: tuple[Tensor, Tensor] | None, target: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch width"]:
        """Features of one variable of each row. Those of the others are not even computed, unless for a gradient."""
        if torch.is_grad_enabled():
            return chosen(self._features(values, known, moments), target)
        hidden, location, deviation = self._hidden(values, known, moments)
        features = hidden.new_zeros(len(target), self.layout.width)
        for variable in target.unique().tolist() if len(target) > 1 else target.tolist():
            rows = (target == variable).nonzero()[:, 0] if len(target) > 1 else slice(None)
            size = self.layout.sizes[variable]
            mine = slice(start := self.starts[variable], start + size)
            features[rows, :size] = F.linear(hidden[rows], self.leave.weight[mine], self.leave.bias[mine])
        if location is not None and deviation is not None:
            middle, scale = (part.gather(1, target[:, None]) for part in (location, deviation))
            features = relative_to(middle, scale, features, self.location_features[target], self.scale_features[target])
        return features

    def _hidden(
        self, values: Tensor, known: Tensor, moments: tuple[Tensor, Tensor] | None
    ) -> tuple[Float[Tensor, "batch trunk"], Tensor | None, Tensor | None]:
        """What the last layer reads, and the expert's location and deviation of every variable."""
        dtype = self.enter.weight.dtype
        inputs = [self.entries(values.to(dtype), known), known.to(dtype)]
        location = deviation = None
        if moments is not None:
            location, deviation = (self.spread(part, fill) for part, fill in zip(moments, (0.0, 1.0), strict=True))
            inputs += [location[:, self.guessed], deviation.where(~known, 0.0)[:, self.guessed]]
        hidden = self.enter(torch.cat(inputs, dim=1))
        for block in self.trunk:
            hidden = block(hidden)
        return F.gelu(self.norm(hidden)), location, deviation

    def entries(
        self, values: Float[Tensor, "*batch variables"], known: Bool[Tensor, "*batch variables"]
    ) -> Float[Tensor, "*batch slots"]:
        """What of the values enters the first layer: a known real value, and a one at each known code."""
        owner = self.owner
        each = values[..., owner]
        return torch.where(self.plain, each, (each == self.code).to(each.dtype)) * known[..., owner]

    def spread(self, reals: Float[Tensor, "*batch reals"], fill: float) -> Float[Tensor, "*batch variables"]:
        """Numbers of the variables that the expert speaks of as numbers of all, ``fill`` at the others."""
        shape = (*reals.shape[:-1], self.layout.variables)
        out = torch.full(shape, fill, dtype=self.enter.weight.dtype, device=reals.device)
        out[..., self.guessed] = reals.to(out.dtype)
        return out

    @property
    def repeated(self) -> Sequence[nn.Module]:
        return list(self.trunk)

    def blocks_of(self) -> list[Block]:
        """The blocks of the trunk, in order."""
        return [block for block in self.trunk if isinstance(block, Block)]

    @classmethod
    def stack(cls, networks: Sequence[Network]) -> Stack:
        own = [network for network in networks if isinstance(network, cls)]
        alike = {(one.layout, one.width, one.blocks, one.expert) for one in own}
        return MLPStack(own) if len(own) == len(networks) > 1 == len(alike) else Apart(networks)
