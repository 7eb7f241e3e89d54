r"""Residual MLPs of one shape, asked together: one product of matrices a layer for all of them.

The scale and shift of each layer norm go into the layer behind it, $W(g \odot n + b) + c = (W \operatorname{diag} g) n
+ (Wb + c)$, and the experts share the choice of what is known: one batch of small factors.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.networks.gaussian import moments_of_one_set
from anyorder.networks.parts.stack import Stack, rows_by_network

if TYPE_CHECKING:
    from anyorder.networks.residual_mlp import ResidualMLP

Layer = tuple[Float[Tensor, "networks inputs outputs"], Float[Tensor, "networks one outputs"]]
ROWS_AT_ONCE = 512  # what is between two layers should stay near the processor


class MLPStack(Stack):
    """Networks with the same layout and options, each with weights of its own, which are copied."""

    def __init__(self, networks: Sequence[ResidualMLP]) -> None:
        self.first, self.count = networks[0], len(networks)
        self.beyond: tuple[Tensor, Tensor] | None = None
        self._views: dict[int, MLPStack] = {}
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
            self.heard = (~self.first.guessed[self.reals]).nonzero()[:, 0]  # and which are context
            self.number = {variable: number for number, variable in enumerate(guessed.tolist())}
            if len(self.heard):
                between = self.covariance[:, self.heard][..., self.spoken]
                own = self.covariance[:, self.heard][..., self.heard]
                gain = torch.cholesky_solve(between, torch.linalg.cholesky(own))
                rest = self.covariance[:, self.spoken][..., self.spoken]
                self.beyond = gain, rest - between.mT @ gain

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
            view.count, view._views = 1, {}
            for name in ("enter_bias", "enter_rows", "enter_known", "mean", "covariance"):
                if hasattr(self, name):
                    setattr(view, name, getattr(self, name)[only])
            view.trunk = [(_of(rise, only), _of(fall, only)) for rise, fall in self.trunk]
            view.norm, view.leave = [part[only] for part in self.norm], _of(self.leave, only)
            view.beyond = None if self.beyond is None else _of(self.beyond, only)
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
        first, dtype = self.first, self.enter_rows.dtype
        values = first.near(values, known)
        inputs, said = first.entries(values.to(dtype), known), known.to(dtype).expand(self.count, 1, -1)
        expert = None
        if first.expert:
            told = known[self.reals]
            location, deviation = expert = self._moments(values[..., self.reals], told)
            told = told[self.spoken]
            inputs = torch.cat([inputs, location.to(dtype)], dim=2)
            unsure = deviation.where(~told, 0.0).to(dtype)
            said = torch.cat([said, unsure], dim=2)
        bias = torch.baddbmm(self.enter_bias, said, self.enter_known)
        hidden = torch.baddbmm(bias, inputs, self.enter_rows)
        for (rise, rise_bias), (fall, fall_bias) in self.trunk:
            risen = F.gelu(torch.baddbmm(rise_bias, _normed(hidden), rise))
            hidden = hidden + torch.baddbmm(fall_bias, risen, fall)
        scale, shift = self.norm
        return F.gelu(torch.addcmul(shift, _normed(hidden), scale)), expert

    def _moments(
        self, values: Float[Tensor, "networks rows reals"], known: Bool[Tensor, " reals"]
    ) -> tuple[Float[Tensor, "networks rows spoken"], Float[Tensor, "networks one spoken"]]:
        """The experts' mean and deviation of every variable that they speak of."""
        if self.beyond is None or not bool(known[self.heard].all()):
            location, deviation = moments_of_one_set(self.mean, self.covariance, values, known)
            return location[..., self.spoken], deviation[..., self.spoken]
        # What the context says is a product of matrices that are made once; the rest is small.
        gain, covariance = self.beyond
        heard = values[..., self.heard].to(self.mean.dtype) - self.mean[:, None, self.heard]
        start = torch.baddbmm(self.mean[:, None, self.spoken], heard, gain)
        moved = values[..., self.spoken].to(start.dtype) - start
        nothing = torch.zeros_like(self.mean[:, self.spoken])
        location, deviation = moments_of_one_set(nothing, covariance, moved, known[self.spoken])
        return start + location, deviation


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
