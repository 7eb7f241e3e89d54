"""Point masses: a batch of distributions, each of which has one value only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.variables.lattice import Lattice


@dataclass(frozen=True, eq=False)
class Pinned(Distribution):
    """All probability at ``at``: a level, or a point of ``lattice``."""

    at: Float[Tensor, "*batch"]
    lattice: Lattice | None = None

    @property
    def discrete(self) -> bool:
        return True

    @property
    def shape(self) -> torch.Size:
        return self.at.shape

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        away = (value - self.at).abs() > 1e-9 * self.at.abs().clamp(min=1)
        return torch.zeros(away.shape, dtype=torch.float64).masked_fill(away, -math.inf)

    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        return self.at

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return (value >= self.at - 1e-9 * self.at.abs().clamp(min=1)).double()

    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return self.at.expand(np.broadcast_shapes(level.shape, self.at.shape))

    def mean(self) -> Float[Tensor, "*batch"]:
        return self.at

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        return function(self.at.double())

    def entropy(self) -> Float[Tensor, "*batch"]:
        return torch.zeros_like(self.at)
