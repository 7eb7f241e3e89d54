"""A batch of one-dimensional distributions, each cut to the same region: p(x | x in region) = p(x) / P(region).

Quantiles are those of the region, so draws need no rejection. Expectations are taken over levels of the cdf, E f(X) =
integral of f(Q(u)) du, on panels that are fine towards both ends, where an open tail runs off; a lattice is summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.heads.base import Distribution
from anyorder.region import Points, Region

TAIL = tuple(10 ** (-half / 2) for half in range(18, 0, -1))  # a quantile runs off like a logarithm of the level
EDGES = (0.0, *TAIL, *(1 - level for level in reversed(TAIL)), 1.0)
NODES = 5
STEPS = 512  # levels by which an expectation over a lattice is taken


@dataclass(frozen=True, eq=False)
class Cut(Distribution):
    """``base`` given that its value lies in ``region``."""

    base: Distribution
    region: Region

    @property
    def discrete(self) -> bool:
        return self.base.discrete

    @property
    def shape(self) -> torch.Size:
        return self.base.shape

    def log_mass(self) -> Float[Tensor, "*batch"]:
        """log P(region) under ``base``."""
        return self.region.log_mass(self.base)

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        inside = self.region.contains(value)
        return (self.base.log_prob(value).double() - self.log_mass()).masked_fill(~inside, -math.inf)

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        return self.quantile(torch.rand(self.shape, generator=generator, dtype=torch.float64))

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        share = self.region.cdf(self.base, value) / self.log_mass().exp()
        return share.nan_to_num(nan=0.0).clamp(0.0, 1.0)

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return self.region.draw(self.base, level.double())

    def mean(self) -> Float[Tensor, "*batch"]:
        return self.expect(lambda value: value)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """E[function(X)] in float64; exact for sets of points, within some 1e-6 of the spread on a line.

        On a lattice, and on a line with an atom inside the region, within some 1e-3 of the spread.
        """
        if isinstance(self.region, Points):
            points = torch.tensor(self.region.values, dtype=torch.float64)
            weights = torch.stack([self.log_prob(point.expand(self.shape)).exp() for point in points])
            return (weights * function(points).reshape(-1, *(1,) * len(self.shape))).sum(0)
        levels, weights = _lattice_levels() if self.discrete else _levels()
        columns = (-1,) + (1,) * len(self.shape)
        values = function(self.quantile(levels.reshape(columns)))
        return (values * weights.reshape(columns)).sum(0)

    def entropy(self) -> Float[Tensor, "*batch"]:
        return self.expect(lambda value: -self.log_prob(value).clamp(min=-1e300))


def _levels() -> tuple[Tensor, Tensor]:
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    edges = np.array(EDGES)
    half = np.diff(edges)[:, None] / 2
    return torch.as_tensor((edges[:-1, None] + half * (1 + nodes)).ravel()), torch.as_tensor((half * weights).ravel())


def _lattice_levels() -> tuple[Tensor, Tensor]:
    """Equally spaced levels: the quantile of a lattice is a staircase, which finer panels would not see better."""
    levels = (torch.arange(STEPS, dtype=torch.float64) + 0.5) / STEPS
    return levels, torch.full_like(levels, 1 / STEPS)
