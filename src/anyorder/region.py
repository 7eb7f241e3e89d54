"""A part of one variable's values, in model units: its probability under a distribution, and draws from inside it.

    P(low <= X <= high) = F(high) - F(just below low),        x = F^-1(F(just below low) + u P)

Both ends belong to a region, so on lattices and levels the cdf is taken half a step outside. Everything is float64; a
range in the upper tail has an absolute error of some 1e-16, so below 1e-13 few digits of its probability are left.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.heads.base import Distribution


class Region(ABC):
    """Some of the values of a variable."""

    @abstractmethod
    def log_mass(self, distribution: Distribution) -> Float[Tensor, "*batch"]:
        """log P(X in the region), -inf where it has none."""

    @abstractmethod
    def draw(self, distribution: Distribution, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The quantile at ``level`` of the distribution cut to the region."""

    @abstractmethod
    def contains(self, value: Float[Tensor, "*batch"]) -> Bool[Tensor, "*batch"]:
        """Which values lie inside."""

    @abstractmethod
    def cdf(self, distribution: Distribution, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """P(X <= value and X in the region)."""


@dataclass(frozen=True)
class Points(Region):
    """A set of levels or lattice points, ascending."""

    values: tuple[float, ...]

    def log_mass(self, distribution: Distribution) -> Float[Tensor, "*batch"]:
        return self._each(distribution).logsumexp(0)

    def draw(self, distribution: Distribution, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        each = self._each(distribution)
        share = (each - each.logsumexp(0)).nan_to_num(nan=0.0).exp()
        reached = share.cumsum(0)[:-1]  # the last point takes what rounding leaves over
        shape = torch.broadcast_shapes(level.shape, distribution.shape)
        below = reached.reshape(len(reached), *(1,) * (len(shape) - reached.ndim + 1), *reached.shape[1:]) < level
        return torch.tensor(self.values, dtype=torch.float64)[below.sum(0)].expand(shape)

    def contains(self, value: Float[Tensor, "*batch"]) -> Bool[Tensor, "*batch"]:
        gaps = (value.double()[..., None] - torch.tensor(self.values, dtype=torch.float64)).abs()
        return gaps.amin(-1) <= 1e-9 * value.double().abs().clamp(min=1)

    def cdf(self, distribution: Distribution, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        each = self._each(distribution).exp()
        slack = 1e-9 * value.double().abs().clamp(min=1)
        terms = (torch.where(point <= value + slack, mass, 0.0) for point, mass in zip(self.values, each, strict=True))
        return torch.stack(list(terms)).sum(0)

    def _each(self, distribution: Distribution) -> Float[Tensor, "points *batch"]:
        points = torch.tensor(self.values, dtype=torch.float64)
        return torch.stack([distribution.log_prob(point.expand(distribution.shape)).double() for point in points])


@dataclass(frozen=True)
class Interval(Region):
    """From ``least`` to ``most``.

    ``before`` and ``upto`` are where the cdf is taken: the same places on a line, half a step outside on a lattice.
    """

    least: float
    most: float
    before: float
    upto: float

    def log_mass(self, distribution: Distribution) -> Float[Tensor, "*batch"]:
        return self._ends(distribution)[1].log()

    def draw(self, distribution: Distribution, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        lower, mass = self._ends(distribution)
        # Never quite zero: the quantile at 0 of an open tail is no number.
        at = (lower + level * mass).clamp(min=1e-300, max=1 - 1e-16)
        found = distribution.quantile(at).double()
        return found.clamp(self.least, self.most).nan_to_num(nan=0.0)

    def contains(self, value: Float[Tensor, "*batch"]) -> Bool[Tensor, "*batch"]:
        return (value >= self.before) & (value <= self.upto)

    def cdf(self, distribution: Distribution, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        lower, mass = self._ends(distribution)
        reached = (distribution.cdf(value.double()).double() - lower).clamp(min=0.0)
        return torch.where(value >= self.most, mass, torch.minimum(reached, mass))

    def _ends(self, distribution: Distribution) -> tuple[Tensor, Tensor]:
        """P(X below the region) and P(X inside it)."""
        lower = _at(distribution.cdf, distribution, self.before, 0.0)
        mass = (_at(distribution.cdf, distribution, self.upto, 1.0) - lower).clamp(min=0.0)
        return lower, mass


@dataclass(frozen=True)
class Nothing(Region):
    """What cannot happen: values outside the bounds of a variable."""

    def log_mass(self, distribution: Distribution) -> Float[Tensor, "*batch"]:
        return torch.full(distribution.shape, -math.inf, dtype=torch.float64)

    def draw(self, distribution: Distribution, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return torch.zeros(torch.broadcast_shapes(level.shape, distribution.shape), dtype=torch.float64)

    def contains(self, value: Float[Tensor, "*batch"]) -> Bool[Tensor, "*batch"]:
        return torch.zeros_like(value, dtype=torch.bool)

    def cdf(self, distribution: Distribution, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return torch.zeros(torch.broadcast_shapes(value.shape, distribution.shape), dtype=torch.float64)


def _at(function: object, distribution: Distribution, place: float, without: float) -> Float[Tensor, "*batch"]:
    if math.isinf(place):
        return torch.full(distribution.shape, without, dtype=torch.float64)
    value: Tensor = function(torch.full(distribution.shape, place, dtype=torch.float64))  # type: ignore[operator]
    return value.double()


def intersection(one: Region, other: Region) -> Region | None:
    """What lies in both; None where nothing does."""
    if isinstance(one, Nothing) or isinstance(other, Nothing):
        return None
    if isinstance(one, Interval) and isinstance(other, Interval):
        least, most = max(one.least, other.least), min(one.most, other.most)
        before, upto = max(one.before, other.before), min(one.upto, other.upto)
        return Interval(least, most, before, upto) if before < upto else None
    points, rest = (one, other) if isinstance(one, Points) else (other, one)
    assert isinstance(points, Points)
    inside = tuple(value for value in points.values if bool(rest.contains(torch.tensor(value, dtype=torch.float64))))
    return Points(inside) if inside else None
