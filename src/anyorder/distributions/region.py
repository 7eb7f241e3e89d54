"""A part of one variable's values, in model units: its probability under a distribution, and draws from inside it.

    P(low <= X <= high) = F(high) - F(just below low),        x = F^-1(F(just below low) + u P)

Both ends belong to a region, so on lattices and levels the cdf is taken half a step outside. Everything is float64.
Where the difference of two cdfs would leave few digits, in the upper tail above all, the family itself gives the
logarithm of the probability (:meth:`~anyorder.distributions.base.Distribution.log_between`), and draws are found by
searching.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.sums import lattice_of
from anyorder.support.roots import SHARP, bracket_end, first_crossing
from anyorder.variables.ranges import Extent, Stretch

LITTLE = 1e-4  # a difference of cdfs has an absolute error of 1e-16: below this probability twelve digits are not left
AT_ONCE = 1 << 20  # numbers of a table of points and distributions that are made together
LEAST = math.log(1e-300)  # less than this is nothing, as in the lower tail, where a cdf of float64 ends


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
        shape = np.broadcast_shapes(level.shape, distribution.shape)
        if distribution.shape.numel() == 1:  # one distribution for every level: a search, and no table
            return self._points[torch.searchsorted(reached.reshape(-1), level.contiguous())].expand(shape)
        below = reached.reshape(len(reached), *(1,) * (len(shape) - reached.ndim + 1), *reached.shape[1:]) < level
        return self._points[below.sum(0)].expand(shape)

    def contains(self, value: Float[Tensor, "*batch"]) -> Bool[Tensor, "*batch"]:
        at = value.double().contiguous()
        after = torch.searchsorted(self._points, at).clamp(max=len(self.values) - 1)
        gap = torch.minimum((self._points[after] - at).abs(), (self._points[(after - 1).clamp(min=0)] - at).abs())
        return gap <= 1e-9 * at.abs().clamp(min=1)

    def cdf(self, distribution: Distribution, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        mass = self._each(distribution).exp()
        reached = torch.cat([torch.zeros_like(mass[:1]), mass.cumsum(0)])
        slack = 1e-9 * value.double().abs().clamp(min=1)
        below = torch.searchsorted(self._points, (value.double() + slack).contiguous(), right=True)
        shape = np.broadcast_shapes(value.shape, distribution.shape)
        wide = reached.reshape(len(reached), *(1,) * (len(shape) - reached.ndim + 1), *reached.shape[1:])
        return wide.expand(-1, *shape).gather(0, below.expand(shape)[None])[0]

    def _each(self, distribution: Distribution) -> Float[Tensor, "points *batch"]:
        points = self._points.reshape(-1, *(1,) * len(distribution.shape)).expand(-1, *distribution.shape)
        at_once = max(1, AT_ONCE // max(distribution.shape.numel(), 1))
        return torch.cat([distribution.log_prob(part).double() for part in points.split(at_once)])

    @cached_property
    def _points(self) -> Float[Tensor, " points"]:
        return torch.tensor(self.values, dtype=torch.float64)


@dataclass(frozen=True)
class Interval(Stretch, Region):
    """A stretch of model values, both ends included."""

    def log_mass(self, distribution: Distribution) -> Float[Tensor, "*batch"]:
        _, mass = self._ends(distribution)
        nats = mass.log()
        if keeps_digits(distribution) and bool((mass < LITTLE).any()):
            exact = self._log_between(distribution, self.before)
            nats = torch.where(mass < LITTLE, exact.masked_fill(exact < LEAST, -math.inf), nats)
        return nats

    def draw(self, distribution: Distribution, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        lower, mass = self._ends(distribution)
        # Never quite zero: the quantile at 0 of an open tail is no number.
        at = (lower + level * mass).clamp(min=1e-300, max=1 - 1e-16)
        found = distribution.quantile(at).double()
        # A lower tail has all its digits in the level; of an upper one they are lost.
        few = (mass < LITTLE) & (lower > 0.5)
        if keeps_digits(distribution) and bool(few.any()):
            found = torch.where(few, self._from_above(distribution, level), found)
        return found.clamp(self.least, self.most).nan_to_num(nan=0.0)

    def _from_above(self, distribution: Distribution, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """Where so much of the region lies above that ``level`` of it lies below."""
        nats = self._log_between(distribution, self.before) + torch.log1p(-level.double().clamp(max=1 - 1e-16))

        def excess(value: Tensor) -> Tensor:
            return nats - self._log_between(distribution, value)

        low = torch.full_like(nats, self.before)
        endless = math.isinf(self.upto)
        high = bracket_end(excess, low, upward=True) if endless else torch.full_like(nats, self.upto)
        found = first_crossing(excess, low, high, SHARP)
        lattice = lattice_of(distribution) if distribution.discrete else None
        return found if lattice is None else lattice.nearest(found)

    def contains(self, value: Float[Tensor, "*batch"]) -> Bool[Tensor, "*batch"]:
        return (value >= self.before) & (value <= self.upto)

    def cdf(self, distribution: Distribution, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        lower, mass = self._ends(distribution)
        reached = (distribution.cdf(value.double()).double() - lower).clamp(min=0.0)
        whole = self.log_mass(distribution).exp()
        if keeps_digits(distribution) and bool((mass < LITTLE).any()):
            end = value.double().clamp(self.before, self.upto)
            exact = distribution.log_between(torch.full_like(end, self.before), end).double().exp()
            reached = torch.where(mass < LITTLE, exact.masked_fill(value < self.before, 0.0), reached)
        return torch.where(value >= self.most, whole, torch.minimum(reached, whole))

    def _log_between(self, distribution: Distribution, start: float | Tensor) -> Float[Tensor, "*batch"]:
        """log P(start <= X, and X in the region)."""
        low = torch.as_tensor(start, dtype=torch.float64).expand(
            np.broadcast_shapes(torch.as_tensor(start).shape, distribution.shape)
        )
        return distribution.log_between(low, torch.full_like(low, self.upto)).double()

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
        return torch.zeros(np.broadcast_shapes(level.shape, distribution.shape), dtype=torch.float64)

    def contains(self, value: Float[Tensor, "*batch"]) -> Bool[Tensor, "*batch"]:
        return torch.zeros_like(value, dtype=torch.bool)

    def cdf(self, distribution: Distribution, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return torch.zeros(np.broadcast_shapes(value.shape, distribution.shape), dtype=torch.float64)


@dataclass(frozen=True)
class Union(Region):
    """Regions that share nothing, ascending; made by :func:`union_of`."""

    parts: tuple[Region, ...]

    def log_mass(self, distribution: Distribution) -> Float[Tensor, "*batch"]:
        return torch.stack([part.log_mass(distribution) for part in self.parts]).logsumexp(0)

    def draw(self, distribution: Distribution, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        shares = self.shares(distribution)
        found, below = self.parts[0].draw(distribution, self._within(level, 0.0, shares[0])), shares[0]
        for part, share in zip(self.parts[1:], shares[1:], strict=True):
            # A part without mass is never the right one, though rounding may end at its edge.
            here = (level >= below) & (share > 0)
            found = torch.where(here, part.draw(distribution, self._within(level, below, share)), found)
            below = below + share
        return found

    @staticmethod
    def _within(level: Tensor, below: Tensor | float, share: Tensor) -> Tensor:
        return ((level - below) / share.clamp(min=1e-300)).clamp(0.0, 1.0)

    def shares(self, distribution: Distribution) -> Float[Tensor, "parts *batch"]:
        """How much of the mass lies in each part; 0 everywhere if there is none."""
        each = torch.stack([part.log_mass(distribution) for part in self.parts])
        return (each - each.logsumexp(0)).nan_to_num(nan=-math.inf).exp()

    def contains(self, value: Float[Tensor, "*batch"]) -> Bool[Tensor, "*batch"]:
        return torch.stack([part.contains(value) for part in self.parts]).any(0)

    def cdf(self, distribution: Distribution, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return torch.stack([part.cdf(distribution, value) for part in self.parts]).sum(0)


def union_of(regions: Iterable[Region]) -> Region:
    """What lies in any of the regions."""
    flat = [part for region in regions for part in (region.parts if isinstance(region, Union) else (region,))]
    points = sorted({value for part in flat if isinstance(part, Points) for value in part.values})
    joined: list[Interval] = []
    for part in sorted((part for part in flat if isinstance(part, Interval)), key=lambda part: part.before):
        last = joined[-1] if joined else None
        if last is not None and part.before <= last.upto:
            most, upto = max(last.most, part.most), max(last.upto, part.upto)
            joined[-1] = Interval(last.least, most, last.before, upto)
        else:
            joined.append(part)
    if not joined:
        return Points(tuple(points)) if points else Nothing()
    inside = torch.stack([part.contains(torch.tensor(points, dtype=torch.float64)) for part in joined]).any(0).tolist()
    placed: list[tuple[float, Region]] = [(part.least, part) for part in joined]
    placed += [(value, Points((value,))) for value, covered in zip(points, inside, strict=True) if not covered]
    parts = tuple(part for _, part in sorted(placed, key=lambda pair: pair[0]))
    return parts[0] if len(parts) == 1 else Union(parts)


def region_of_extent(extent: Extent) -> Region:
    """The region that a codec's extent describes."""
    if isinstance(extent, Stretch):
        return Interval(extent.least, extent.most, extent.before, extent.upto)
    return Points(extent) if extent else Nothing()


def keeps_digits(distribution: Distribution) -> bool:
    """Whether the family has a way of its own to say a small probability, or only the difference of its cdfs."""
    return type(distribution).log_between is not Distribution.log_between


def _at(function: object, distribution: Distribution, end: float, without: float) -> Float[Tensor, "*batch"]:
    if math.isinf(end):
        return torch.full(distribution.shape, without, dtype=torch.float64)
    value: Tensor = function(torch.full(distribution.shape, end, dtype=torch.float64))  # type: ignore[operator]
    return value.double()


def intersection(one: Region, other: Region) -> Region | None:
    """What lies in both; None where nothing does."""
    if isinstance(one, Nothing) or isinstance(other, Nothing):
        return None
    if isinstance(one, Union) or isinstance(other, Union):
        pairs = itertools.product(*(said.parts if isinstance(said, Union) else (said,) for said in (one, other)))
        shared = [both for pair in pairs if (both := intersection(*pair)) is not None]
        return union_of(shared) if shared else None
    if isinstance(one, Interval) and isinstance(other, Interval):
        least, most = max(one.least, other.least), min(one.most, other.most)
        before, upto = max(one.before, other.before), min(one.upto, other.upto)
        return Interval(least, most, before, upto) if before < upto else None
    points, rest = (one, other) if isinstance(one, Points) else (other, one)
    assert isinstance(points, Points)
    kept = rest.contains(torch.tensor(points.values, dtype=torch.float64)).tolist()
    inside = tuple(itertools.compress(points.values, kept))
    return Points(inside) if inside else None


def agreement(one: float | Region, other: float | Region) -> float | Region | None:
    """What two statements about one variable leave of it, each a value or a region; None where they contradict."""
    regions = [said if isinstance(said, Region) else Points((said,)) for said in (one, other)]
    shared = intersection(*regions)
    return shared.values[0] if isinstance(shared, Points) and len(shared.values) == 1 else shared
