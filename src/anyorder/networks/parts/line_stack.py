"""Linear regressions of one shape, asked together: one factor of what is known for each, in one batch.

Of one variable, only its own predictors are asked, which are a few out of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.networks.parts.predictors import predictors_of_one_set
from anyorder.networks.parts.stack import Stack, rows_by_network

if TYPE_CHECKING:
    from anyorder.networks.linear import LinearNetwork


class LineStack(Stack):
    """Networks with the same layout and options, each with numbers of its own, which are copied."""

    def __init__(self, networks: Sequence[LinearNetwork]) -> None:
        self.first, self.count = networks[0], len(networks)
        self.kept = {name: torch.stack([one.get_buffer(name) for one in networks]) for name in self.first.kept}

    def beside(self, values: Tensor, known: Tensor) -> list[Tensor]:
        every = torch.arange(len(self.first.target), device=values.device)
        flat = self._features(values.expand(self.count, -1, -1), known, every)
        return list(flat.unflatten(2, (-1, self.first.layout.width)).to(values.dtype))

    def at(self, values: Tensor, known: Tensor, target: int) -> list[Tensor]:
        return list(self._at(values.expand(self.count, -1, -1), known, target))

    def at_own(self, values: Tensor, known: Tensor, target: int, own: Int[Tensor, " batch"]) -> Tensor:
        rows, where = rows_by_network(own, self.count)
        return self._at(values[rows], known, target).flatten(0, 1)[where]

    def _at(self, values: Float[Tensor, "networks rows variables"], known: Tensor, target: int) -> Tensor:
        width = self.first.layout.width
        flat = self._features(values, known, self.first.predictors_of(target))
        return flat[..., target * width : (target + 1) * width].to(values.dtype)

    def _features(
        self,
        values: Float[Tensor, "networks rows variables"],
        known: Bool[Tensor, " variables"],
        predictors: Int[Tensor, " some"],
    ) -> Float[Tensor, "networks rows flat"]:
        kept = self.kept
        inputs, told = self.first.inputs(values, known, kept["low"][:, None], kept["high"][:, None])
        weight = kept["weight"][:, predictors]
        location, variance = predictors_of_one_set(kept["mean"], kept["covariance"], weight, inputs, told)
        return self.first.features(location + kept["intercept"][:, None, predictors], variance, predictors, kept)
