r"""Residual MLPs of one shape, asked together: one product of matrices a layer for all of them.

The scale and shift of each layer norm go into the layer behind it, $W(g \odot n + b) + c = (W \operatorname{diag} g) n
+ (Wb + c)$, and the experts share the choice of what is known: one batch of small factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.networks.gaussian import regression_of_one_set
from anyorder.networks.parts.stack import Stack, recent, rows_by_network, set_key, set_of

if TYPE_CHECKING:
    from anyorder.networks.residual_mlp import ResidualMLP

Layer = tuple[Float[Tensor, "networks inputs outputs"], Float[Tensor, "networks one outputs"]]
ROWS_AT_ONCE = 512  # what is between two layers should stay near the processor


class MLPStack(Stack):
    """Networks with the same layout and options, each with weights of its own, which are copied."""

    def __init__(self, networks: Sequence[ResidualMLP]) -> None:
        self.first, self.count = networks[0], len(networks)
        weight, self.enter_bias = _stacked([one.enter for one in networks])
        reals = int(self.first.guessed.sum()) if self.first.expert else 0
        sizes = [self.first.slots, self.first.layout.variables, reals, reals]
        # The inputs that differ from row to row: the values, and where the experts expect the others. The rest, the
        # bits and how sure the experts are, depends on what is known alone.
        self.enter_slots, bits, self.enter_location, deviation = weight.split(sizes, dim=1)
        self.enter_known = torch.cat([bits, deviation], 1)
        self._known = recent(self._told, weight.nbytes)
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
            self.number = {variable: number for number, variable in enumerate(guessed.tolist())}

    def beside(self, values: Tensor, known: Tensor) -> list[Tensor]:
        hidden, expert = self._hidden(values[None], self._known(set_key(known)))
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
        parts = [self._at(rows[None], known, target) for rows in values.split(ROWS_AT_ONCE, dim=0)]
        return list(parts[0] if len(parts) == 1 else torch.cat(parts, dim=1))

    def at_own(self, values: Tensor, known: Tensor, target: int, own: Int[Tensor, " batch"]) -> Tensor:
        rows, where = rows_by_network(own, self.count)
        return self._at(values[rows], known, target).flatten(0, 1)[where]

    def _at(self, values: Float[Tensor, "some rows variables"], known: Tensor, target: int) -> Tensor:
        first, size = self.first, self.first.layout.sizes[target]
        hidden, expert = self._hidden(values, self._known(set_key(known)))
        weight, bias = (part[..., self.starts[target] : self.starts[target] + size] for part in self.leave)
        features = torch.baddbmm(bias, hidden, weight)
        if expert is not None and target in self.number:
            own = self.number[target]
            location, deviation = (part[..., own : own + 1].to(features.dtype) for part in expert)
            marks = first.location_features[target, :size], first.scale_features[target, :size]
            features = relative_to(location, deviation, features, *marks)
        return F.pad(features, (0, first.layout.width - size))

    def _hidden(
        self, values: Float[Tensor, "some rows variables"], known: _Known
    ) -> tuple[Float[Tensor, "networks rows trunk"], tuple[Tensor, Tensor] | None]:
        """What the last layer reads, and the experts' location and deviation of every variable that they speak of.

        ``values``: rows of each network, or those of all of them.
        """
        dtype = self.enter_slots.dtype
        each = values[..., known.owner].clamp(-known.farthest, known.farthest)
        entries = each if known.code is None else torch.where(known.plain, each, (each == known.code).to(each.dtype))
        bias, expert = known.bias, None
        if known.experts is not None:
            expert = location, _ = known.experts.moments(values)
            bias = torch.baddbmm(bias, location.to(dtype), self.enter_location)
        hidden = torch.baddbmm(bias, entries.to(dtype).expand(self.count, -1, -1), known.enter)
        for (rise, rise_bias), (fall, fall_bias) in self.trunk:
            risen = F.gelu(torch.baddbmm(rise_bias, _normed(hidden), rise))
            hidden = hidden + torch.baddbmm(fall_bias, risen, fall)
        scale, shift = self.norm
        return F.gelu(torch.addcmul(shift, _normed(hidden), scale)), expert

    def _told(self, key: bytes) -> _Known:
        """What the first layer makes of a known set."""
        first, dtype = self.first, self.enter_slots.dtype
        known = set_of(key, self.enter_slots.device)
        slots = known[first.owner].nonzero()[:, 0]
        owner, plain = first.owner[slots], first.plain[slots]
        said, experts = known.to(dtype).expand(self.count, 1, -1), None
        if first.expert:
            told = known[self.reals]
            index, weights, deviation = regression_of_one_set(self.covariance, told)
            experts = _Experts(
                reals=self.reals[index],
                farthest=first.farthest[self.reals[index]],
                centre=self.mean[:, None, index],
                weights=weights[..., self.spoken],
                mean=self.mean[:, None, self.spoken],
                deviation=deviation[..., self.spoken],
            )
            unsure = experts.deviation.where(~told[self.spoken], 0.0)
            said = torch.cat([said, unsure.to(dtype)], dim=2)
        return _Known(
            owner=owner,
            farthest=first.farthest[owner],
            plain=plain,
            code=None if bool(plain.all()) else first.code[slots],
            enter=self.enter_slots[:, slots],
            bias=torch.baddbmm(self.enter_bias, said, self.enter_known),
            experts=experts,
        )


@dataclass(frozen=True, eq=False)
class _Experts:
    """Where the experts expect the variables that they speak of: ``weights`` of the known numbers, ``reals``."""

    reals: Int[Tensor, " reals"]
    farthest: Float[Tensor, " reals"]
    centre: Float[Tensor, "networks one reals"]
    weights: Float[Tensor, "networks reals spoken"]
    mean: Float[Tensor, "networks one spoken"]
    deviation: Float[Tensor, "networks one spoken"]

    def moments(
        self, values: Float[Tensor, "some rows variables"]
    ) -> tuple[Float[Tensor, "networks rows spoken"], Float[Tensor, "networks one spoken"]]:
        """Their mean and standard deviation of each."""
        known = values[..., self.reals].clamp(-self.farthest, self.farthest) - self.centre
        return torch.baddbmm(self.mean, known.to(self.mean.dtype), self.weights), self.deviation


@dataclass(frozen=True, eq=False)
class _Known:
    """A known set: its slots, their part of the first layer, and the bias, in which is all that no value decides."""

    owner: Int[Tensor, " slots"]
    farthest: Float[Tensor, " slots"]
    plain: Bool[Tensor, " slots"]
    code: Tensor | None  # None where every slot is a number
    enter: Float[Tensor, "networks slots outputs"]
    bias: Float[Tensor, "networks one outputs"]
    experts: _Experts | None


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
