r"""Residual MLPs of one shape, asked together: one product of matrices a layer for all of them.

The scale and shift of each layer norm go into the layer behind it, $W(g \odot n + b) + c = (W \operatorname{diag} g) n
+ (Wb + c)$. The experts share the choice of what is known, and whatever follows from it alone (their regressions, how
sure they are, what the bits add to the first layer) is made once for each set that is asked about.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.networks.gaussian import weights_of_set
from anyorder.networks.parts.stack import Stack, rows_by_network

if TYPE_CHECKING:
    from anyorder.networks.residual_mlp import ResidualMLP

Layer = tuple[Float[Tensor, "networks inputs outputs"], Float[Tensor, "networks one outputs"]]
ROWS_AT_ONCE = 512  # what is between two layers should stay near the processor
MOST_KEPT = 1 << 21  # numbers that are kept of the sets that were asked about: 16 MB


@dataclass(frozen=True)
class _OfSet:
    """What follows from which variables are known: what that adds to the first layer, and the experts' regressions."""

    bias: Float[Tensor, "networks one trunk"]
    index: Int[Tensor, " known"] | None = None  # among the real variables
    weights: Float[Tensor, "networks known spoken"] | None = None
    deviation: Float[Tensor, "networks one spoken"] | None = None

    @property
    def numbers(self) -> int:
        return self.bias.numel() + (0 if self.weights is None else self.weights.numel())


class MLPStack(Stack):
    """Networks with the same layout and options, each with weights of its own, which are copied."""

    def __init__(self, networks: Sequence[ResidualMLP]) -> None:
        self.first, self.count = networks[0], len(networks)
        # Both are only ever added to, or begun anew: threads may share them.
        self._views: dict[int, MLPStack] = {}
        self._sets: dict[bytes, _OfSet] = {}
        weight, self.enter_bias = _stacked([one.enter for one in networks])
        reals = int(self.first.guessed.sum()) if self.first.expert else 0
        sizes = [self.first.slots, self.first.layout.variables, reals, reals]
        # The inputs that differ from row to row: the values, and where the experts expect the others. The rest, the
        # bits and how sure the experts are, depends on what is known alone.
        entries, bits, location, deviation = weight.split(sizes, dim=1)
        self.enter_rows, self.enter_known = torch.cat([entries, location], 1), torch.cat([bits, deviation], 1)
        blocks = [one.blocks_of() for one in networks]
        self.trunk = [
            (_stacked([one.rise for one in own], [one.norm for one in own]), _stacked([one.fall for one in own]))
            for own in zip(*blocks, strict=True)
        ]
        self.norm = [
            torch.stack([part.detach() for part in own])[:, None]
            for own in zip(*((one.norm.weight, one.norm.bias) for one in networks), strict=True)
        ]
        self.leave = _stacked([one.leave for one in networks])
        self.starts = [0, *accumulate(self.first.layout.sizes)]
        if self.first.expert:
            self.mean = torch.stack([one.mean for one in networks])
            self.covariance = torch.stack([one.covariance for one in networks])
            self.reals = self.first.real.nonzero()[:, 0]
            guessed = self.first.guessed.nonzero()[:, 0]
            self.spoken = self.first.guessed[self.reals].nonzero()[:, 0]  # which of them the experts speak of
            self.middle = self.mean[:, None, self.spoken]
            self.number = {variable: number for number, variable in enumerate(guessed.tolist())}

    def beside(self, values: Tensor, known: Tensor) -> list[Tensor]:
        hidden, expert = self._hidden(values.expand(self.count, -1, -1), known)
        weight, bias = self.leave
        index = self.first.feature_index
        spread = F.pad(torch.baddbmm(bias, hidden, weight), (0, 1)).index_select(2, index.flatten())
        features: Tensor = spread.unflatten(2, index.shape)
        if expert is not None:
            location = self.first.spread(expert[0], 0.0)[..., None]
            deviation = self.first.spread(expert[1], 1.0)[..., None]
            marks = self.first.location_features, self.first.scale_features
            features = relative_to(location, deviation, features, *marks)
        return list(features)

    def at(self, values: Tensor, known: Tensor, target: int) -> list[Tensor]:
        parts = [self._at(rows.expand(self.count, -1, -1), known, target) for rows in values.split(ROWS_AT_ONCE, dim=0)]
        return list(parts[0] if len(parts) == 1 else torch.cat(parts, dim=1))

    def at_own(self, values: Tensor, known: Tensor, target: int, own: Int[Tensor, " batch"]) -> Tensor:
        if len(own) == 1:
            return self._alone(int(own[0]))._at(values[None], known, target)[0]
        rows, where = rows_by_network(own, self.count)
        return self._at(values[rows], known, target).flatten(0, 1)[where]

    def _alone(self, number: int) -> MLPStack:
        """One of the networks, a view of the same weights."""
        if number not in self._views:
            view, only = copy.copy(self), slice(number, number + 1)
            view.count, view._views, view._sets = 1, {}, {}
            for name in ("enter_bias", "enter_rows", "enter_known", "mean", "middle", "covariance"):
                if hasattr(self, name):
                    setattr(view, name, getattr(self, name)[only])
            view.trunk = [(_of(rise, only), _of(fall, only)) for rise, fall in self.trunk]
            view.norm, view.leave = [part[only] for part in self.norm], _of(self.leave, only)
            self._views[number] = view
        return self._views[number]

    def _at(self, values: Float[Tensor, "networks rows variables"], known: Tensor, target: int) -> Tensor:
        first, size = self.first, self.first.layout.sizes[target]
        hidden, expert = self._hidden(values, known)
        weight, bias = (part[..., self.starts[target] : self.starts[target] + size] for part in self.leave)
        features = torch.baddbmm(bias, hidden, weight)
        if expert is not None and target in self.number:
            own = self.number[target]
            location, deviation = (part[..., own : own + 1].to(features.dtype) for part in expert)
            marks = first.location_features[target, :size], first.scale_features[target, :size]
            features = relative_to(location, deviation, features, *marks)
        return F.pad(features, (0, first.layout.width - size))

    def _hidden(
        self, values: Float[Tensor, "networks rows variables"], known: Bool[Tensor, " variables"]
    ) -> tuple[Float[Tensor, "networks rows trunk"], tuple[Tensor, Tensor] | None]:
        """What the last layer reads, and the experts' location and deviation of every real variable."""
        first, dtype, of_set = self.first, self.enter_rows.dtype, self._of_set(known)
        values = first.near(values, known)
        inputs, expert = first.entries(values.to(dtype), known), None
        if of_set.weights is not None and of_set.deviation is not None:
            moved = values[..., self.reals].to(self.mean.dtype) - self.mean[:, None]
            location = torch.baddbmm(self.middle, moved[..., of_set.index], of_set.weights)
            expert = location, of_set.deviation
            inputs = torch.cat([inputs, location.to(dtype)], dim=2)
        hidden = torch.baddbmm(of_set.bias, inputs, self.enter_rows)
        for (rise, rise_bias), (fall, fall_bias) in self.trunk:
            risen = F.gelu(torch.baddbmm(rise_bias, _normed(hidden), rise))
            hidden = hidden + torch.baddbmm(fall_bias, risen, fall)
        scale, shift = self.norm
        return F.gelu(torch.addcmul(shift, _normed(hidden), scale)), expert

    def _of_set(self, known: Bool[Tensor, " variables"]) -> _OfSet:
        """What follows from which variables are known; kept, since the same sets are asked about again and again."""
        key = known.cpu().numpy().tobytes()
        found = self._sets.get(key)
        if found is None:
            found = self._made_for(known)
            if len(self._sets) >= max(1, MOST_KEPT // found.numbers):
                self._sets.clear()
            self._sets[key] = found
        return found

    def _made_for(self, known: Bool[Tensor, " variables"]) -> _OfSet:
        said = known.to(self.enter_known.dtype).expand(self.count, 1, -1)
        if not self.first.expert:
            return _OfSet(torch.baddbmm(self.enter_bias, said, self.enter_known))
        told = known[self.reals]
        index, weights, deviation = weights_of_set(self.covariance, told)
        weights, deviation = weights[..., self.spoken], deviation[..., self.spoken]
        unsure = deviation.where(~told[self.spoken], 0.0).to(said.dtype)
        bias = torch.baddbmm(self.enter_bias, torch.cat([said, unsure], dim=2), self.enter_known)
        return _OfSet(bias, index, weights, deviation)


def relative_to(
    location: Float[Tensor, "*batch 1"],
    deviation: Float[Tensor, "*batch 1"],
    features: Float[Tensor, "*batch width"],
    location_features: Bool[Tensor, "*batch width"],
    scale_features: Bool[Tensor, "*batch width"],
) -> Float[Tensor, "*batch width"]:
    """Features that are places and log scales seen from an expert's location and deviation, as they are."""
    features = torch.where(location_features, location + deviation * features, features)
    return torch.where(scale_features, features + deviation.log(), features)


def _of(parts: tuple[Tensor, Tensor], only: slice) -> tuple[Tensor, Tensor]:
    return parts[0][only], parts[1][only]


def _normed(hidden: Tensor) -> Tensor:
    return F.layer_norm(hidden, hidden.shape[-1:])


def _stacked(layers: Sequence[nn.Linear], norms: Sequence[nn.LayerNorm] = ()) -> Layer:
    """The layers of all networks, each with the norm before it inside."""
    weights, biases = [], []
    for number, layer in enumerate(layers):
        weight, bias = layer.weight.detach().double(), layer.bias.detach().double()
        if norms:
            bias = bias + weight @ norms[number].bias.detach().double()
            weight = weight * norms[number].weight.detach().double()
        weights.append(weight.T.to(layer.weight.dtype))
        biases.append(bias[None].to(layer.bias.dtype))
    return torch.stack(weights), torch.stack(biases)
