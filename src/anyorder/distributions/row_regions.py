"""Regions whose ends differ from row to row: what a rule leaves of a variable, given the other values of each row.

The same law as :mod:`.region`, for a batch of distributions with a region for each of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.region import LEAST, LITTLE, Region, keeps_digits
from anyorder.distributions.sums import lattice_of
from anyorder.support.roots import SHARP, bracket_end, first_crossing


@dataclass(frozen=True, eq=False)
class RowIntervals(Region):
    """A stretch of model values for every row, as :class:`~.region.Interval` is one for all; some may be empty."""

    least: Float[Tensor, " rows"]
    most: Float[Tensor, " rows"]
    before: Float[Tensor, " rows"]
    upto: Float[Tensor, " rows"]

    @property
    def empty(self) -> Bool[Tensor, " rows"]:
        return (self.least > self.most) | (self.before > self.upto)

    def log_mass(self, distribution: Distribution) -> Float[Tensor, "*batch"]:
        _, mass = self._ends(distribution)
        nats = mass.log()
        if keeps_digits(distribution) and bool((mass < LITTLE).any()):
            exact = self._log_between(distribution, self.before)
            nats = torch.where(mass < LITTLE, exact.masked_fill(exact < LEAST, -math.inf), nats)
        return nats.masked_fill(self.empty, -math.inf)

    def draw(self, distribution: Distribution, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        lower, mass = self._ends(distribution)
        at = (lower + level * mass).clamp(min=1e-300, max=1 - 1e-16)
        found = distribution.quantile(at).double()
        few = (mass < LITTLE) & (lower > 0.5)
        if keeps_digits(distribution) and bool(few.any()):
            found = torch.where(few, self._from_above(distribution, level), found)
        return torch.minimum(torch.maximum(found.nan_to_num(nan=0.0), self.least), self.most).nan_to_num(nan=0.0)

    def _from_above(self, distribution: Distribution, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        nats = self._log_between(distribution, self.before) + torch.log1p(-level.double().clamp(max=1 - 1e-16))

        def excess(value: Tensor) -> Tensor:
            return nats - self._log_between(distribution, value)

        low = self.before.clamp(min=-1e30).expand(nats.shape)
        far = self.upto.isinf().expand(nats.shape)
        high = self.upto.expand(nats.shape)
        if bool(far.any()):
            high = torch.where(far, bracket_end(excess, low, upward=True), high)
        found = first_crossing(excess, low, torch.maximum(low, high), SHARP)
        lattice = lattice_of(distribution) if distribution.discrete else None
        return found if lattice is None else lattice.nearest(found)

    def contains(self, value: Float[Tensor, "*batch"]) -> Bool[Tensor, "*batch"]:
        return (value >= self.before) & (value <= self.upto) & ~self.empty

    def cdf(self, distribution: Distribution, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        lower, _ = self._ends(distribution)
        reached = (distribution.cdf(value.double()).double() - lower).clamp(min=0.0)
        whole = self.log_mass(distribution).exp()
        return torch.where(value >= self.most, whole, torch.minimum(reached, whole))

    def _log_between(self, distribution: Distribution, start: Tensor) -> Float[Tensor, "*batch"]:
        start, end = torch.broadcast_tensors(start, self.upto)
        return distribution.log_between(start, torch.maximum(start, end)).double()

    def _ends(self, distribution: Distribution) -> tuple[Tensor, Tensor]:
        lower = _at(distribution, self.before, 0.0)
        return lower, (_at(distribution, self.upto, 1.0) - lower).clamp(min=0.0)


@dataclass(frozen=True, eq=False)
class RowPoints(Region):
    """Some of the same points for every row: of levels, those that are ``allowed``."""

    points: Float[Tensor, " points"]
    allowed: Bool[Tensor, "points rows"]

    def log_mass(self, distribution: Distribution) -> Float[Tensor, "*batch"]:
        return self._each(distribution).logsumexp(0)

    def draw(self, distribution: Distribution, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        share = self._each(distribution).softmax(0).nan_to_num(nan=0.0)
        below = (share.cumsum(0)[:, None] if level.ndim > 1 else share.cumsum(0))[:-1] < level
        return self.points[below.sum(0)]

    def contains(self, value: Float[Tensor, "*batch"]) -> Bool[Tensor, "*batch"]:
        return ((value == self.points.reshape(-1, *(1,) * value.ndim)) & self._wide(value.ndim)).any(0)

    def cdf(self, distribution: Distribution, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        mass = self._each(distribution).exp()
        mass = mass.reshape(len(mass), *(1,) * (value.ndim - 1), -1)
        return (mass * (self.points.reshape(-1, *(1,) * value.ndim) <= value)).sum(0)

    def _wide(self, dimensions: int) -> Bool[Tensor, "points *batch"]:
        return self.allowed.reshape(len(self.points), *(1,) * (dimensions - 1), -1)

    def _each(self, distribution: Distribution) -> Float[Tensor, "points rows"]:
        points = self.points.reshape(-1, *(1,) * len(distribution.shape)).expand(-1, *distribution.shape)
        return distribution.log_prob(points).double().masked_fill(~self.allowed, -math.inf)


def _at(distribution: Distribution, end: Tensor, without: float) -> Float[Tensor, "*batch"]:
    finite = end.isfinite()
    return torch.where(finite, distribution.cdf(end.where(finite, 0.0)).double(), without)
