r"""Residual MLPs of one shape, asked together: one product of matrices a layer for all of them.

The scale and shift of each layer norm go into the layer behind it, $W(g \odot n + b) + c = (W \operatorname{diag} g) n
+ (Wb + c)$, and the experts share the choice of what is known: one batch of small factors.
"""

from __future__ import annotations

from collections.abc import Sequence
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


class MLPStack(Stack):
    """Networks with the same layout and options, each with weights of its own, which are copied."""

    def __init__(self, networks: Sequence[ResidualMLP]) -> None:
        self.first, self.count = networks[0], len(networks)
        self.enter = _stacked([one.enter for one in networks])
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
        if self.first.expert:
            self.mean = torch.stack([one.mean for one in networks])
            self.covariance = torch.stack([one.covariance for one in networks])

    def beside(self, values: Tensor, known: Tensor) -> list[Tensor]:
        hidden, location, deviation = self._hidden(values.expand(self.count, -1, -1), known)
        weight, bias = self.leave
        flat = torch.baddbmm(bias, hidden, weight)
        index = self.first.feature_index
        spread = F.pad(flat, (0, 1)).index_select(2, index.flatten())
        features: Tensor = spread.unflatten(2, index.shape)
        if location is not None and deviation is not None:
            scale = deviation[..., None]
            features = torch.where(self.first.location_features, location[..., None] + scale * features, features)
            features = torch.where(self.first.scale_features, features + scale.log(), features)
        return list(features)

    def at(self, values: Tensor, known: Tensor, target: int) -> list[Tensor]:
        return list(self._at(values.expand(self.count, -1, -1), known, target))

    def at_own(self, values: Tensor, known: Tensor, target: int, own: Int[Tensor, " batch"]) -> Tensor:
        rows, where = rows_by_network(own, self.count)
        return self._at(values[rows], known, target).flatten(0, 1)[where]

    def _at(self, values: Float[Tensor, "networks rows variables"], known: Tensor, target: int) -> Tensor:
        layout = self.first.layout
        hidden, location, deviation = self._hidden(values, known)
        start, size = int(self.first.feature_index[target, 0]), layout.sizes[target]
        weight, bias = (part[..., start : start + size] for part in self.leave)
        features = F.pad(torch.baddbmm(bias, hidden, weight), (0, layout.width - size))
        if location is not None and deviation is not None:
            middle, scale = (part[..., target, None] for part in (location, deviation))
            features = torch.where(self.first.location_features[target], middle + scale * features, features)
            features = torch.where(self.first.scale_features[target], features + scale.log(), features)
        return features

    def _hidden(
        self, values: Float[Tensor, "networks rows variables"], known: Bool[Tensor, " variables"]
    ) -> tuple[Float[Tensor, "networks rows trunk"], Tensor | None, Tensor | None]:
        """What the last layer reads, and the experts' location and deviation of every variable."""
        first = self.first
        values = first.near(values, known)
        dtype = first.enter.weight.dtype
        entries, bits = first.entries(values.to(dtype).flatten(0, 1), known)
        inputs = [entries.unflatten(0, values.shape[:2]), bits.expand(*values.shape[:2], -1)]
        location = deviation = None
        if first.expert:
            real = first.real
            moments = moments_of_one_set(self.mean, self.covariance, values[..., real], known[real])
            location, deviation = (first.spread(part, fill) for part, fill in zip(moments, (0.0, 1.0), strict=True))
            inputs += [location[..., real], deviation.where(~known, 0.0)[..., real].expand(*values.shape[:2], -1)]
        weight, bias = self.enter
        hidden = torch.baddbmm(bias, torch.cat(inputs, dim=2), weight)
        for (rise, rise_bias), (fall, fall_bias) in self.trunk:
            risen = F.gelu(torch.baddbmm(rise_bias, _normed(hidden), rise))
            hidden = hidden + torch.baddbmm(fall_bias, risen, fall)
        scale, shift = self.norm
        return F.gelu(_normed(hidden) * scale + shift), location, deviation


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
