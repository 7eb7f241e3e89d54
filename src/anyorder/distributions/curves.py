r"""One distribution on a line as a curve in NumPy: its cdf and its density at many points, its quantiles, and means.

A question is answered by a single law, and with few numbers a step of torch costs more than what is computed in it. The
quantiles of a law, however many, come out of one table of its cdf F and a few Newton steps
$x - (F(x) - \text{level}) / F'(x)$ from the table's own guess, which never leave a bracket that always shrinks.
Means of functions are sums over the points of a rule. A distribution on a lattice is the curve before it is cut into
cells.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from anyorder.distributions.quadrature import component_rule, log_normal
from anyorder.support.roots import inverse_cubic
from anyorder.variables.lattice import Lattice

Numbers = NDArray[np.float64]
Steps = tuple[float, ...]

FEWEST, MOST = 65, 2049  # points of a table
AT_ONCE = 1 << 15  # numbers in one step: what is between two steps should stay near the processor
CLOSE = 1e-9  # a last step, relative to the point above one: the error that it leaves is about its square
CLOSEST = 1e-13  # likewise of a step that halved a bracket
STEPS = 128
TINY, EPSILON = 1e-300, 1e-16
AROUND = np.arange(-2, 2)[:, None]  # the points of a table beside a place between two of them
ROOT_TWO_PI = math.sqrt(2 * math.pi)


class Curve(ABC):
    """One law on a line without atoms."""

    @abstractmethod
    def at(self, points: Numbers) -> tuple[Numbers, Numbers]:
        """The cdf and the density at these points, an array of one dimension."""

    @abstractmethod
    def bracket(self, level: Numbers) -> tuple[Numbers, Numbers]:
        """Points between which the quantiles at levels inside (0, 1) lie."""

    @abstractmethod
    def rule(self, low: float, high: float, steps: Steps = ()) -> tuple[Numbers, Numbers] | None:
        """Points in [low, high], and how much of the law each stands for, for the mean of a function; None without any.

        ``steps``: where the function is not smooth.
        """

    def quantile(self, level: Numbers) -> Numbers:
        """Where the cdf reaches each level; the ends of the line at 0 and 1, NaN where there is no such level."""
        inside = (level > 0) & (level < 1)
        if inside.all():
            return self._search(level) if len(level) else level
        found = np.where(level <= 0, -np.inf, np.inf)
        found[~((level >= 0) & (level <= 1))] = np.nan
        if inside.any():
            found[inside] = self._search(level[inside])
        return found

    def cdf(self, points: Numbers) -> Numbers:
        """The cdf alone."""
        return self.at(points)[0]

    def point(self, level: Numbers, lattice: Lattice) -> Numbers:
        """Where the cdf reaches each level once the line is cut into the cells of a lattice."""
        warp, start, step = lattice.warp, lattice.start, lattice.step
        first, last = (-math.inf, math.inf) if lattice.count is None else (0.0, lattice.count - 1.0)
        index = np.ceil((warp.inverse_array(self.quantile(level)) - start) / step - 0.5)
        index = between(index, first, last)
        # The cdf decides where an edge and the level agree to rounding.
        cells = index + np.array([[-1.0], [0.0]])
        edges = warp.forward_array(start + step * (cells + 0.5))
        edges = np.where(cells < first, -np.inf, np.where(cells >= last, np.inf, edges))
        before, reached = self.cdf(edges.reshape(-1)).reshape(edges.shape)
        index = between(index - (before >= level) + (reached < level), first, last)
        return warp.forward_array(start + step * index)

    def along(self, level: Float[Tensor, "*batch"], shape: torch.Size, lattice: Lattice | None) -> Tensor:
        """:meth:`quantile` of a batch of levels, or :meth:`point` on a lattice, for a law of this batch shape."""
        wanted = level.double().expand(np.broadcast_shapes(level.shape, shape)).contiguous()
        levels = wanted.cpu().numpy().reshape(-1)
        found = self.quantile(levels) if lattice is None else self.point(levels, lattice)
        return torch.from_numpy(found).reshape(wanted.shape).to(level.device)

    def _search(self, level: Numbers) -> Numbers:
        lower, upper = self.bracket(level)
        start, count = lower.min(), min(max(FEWEST, len(level)), MOST)
        table = start + (upper.max() - start) * _evenly(count)
        reached = np.maximum.accumulate(self.cdf(table))
        place = between(reached.searchsorted(level), 1, count - 1)
        lower = np.maximum(lower, table[place - 1])
        upper = np.maximum(np.minimum(upper, table[place]), lower)
        four = between(place + AROUND, 0, count - 1)
        point = inverse_cubic(table[four], reached[four] - level)
        middle = (lower + upper) / 2
        point = np.where((point >= lower) & (point <= upper), point, middle)  # false for NaN
        found, left, moved = point.copy(), np.arange(len(level)), upper - lower
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(STEPS):
                value, slope = self.at(point)
                value = value - level
                below = value < 0
                lower, upper = np.where(below, point, lower), np.where(below, upper, point)
                newton = point - value / slope
                good = (newton >= lower) & (newton <= upper) & (2 * np.abs(newton - point) <= moved)
                following = newton if good.all() else np.where(good, newton, (lower + upper) / 2)
                moved = np.abs(following - point)
                point = found[left] = following
                # What halving leaves is as wide as its step.
                going = moved > np.where(good, CLOSE, CLOSEST) * np.maximum(np.abs(point), 1)
                if not going.any():
                    break
                if len(left) > FEWEST:  # few are not worth the choice
                    left, level, moved = left[going], level[going], moved[going]
                    lower, upper, point = lower[going], upper[going], point[going]
        return found


@dataclass(frozen=True, eq=False)
class Components(Curve):
    """A mixture of normals, or of logistics."""

    weights: Numbers
    means: Numbers
    scales: Numbers
    logistic: bool = False

    def at(self, points: Numbers) -> tuple[Numbers, Numbers]:
        size = max(1, AT_ONCE // len(self.means))
        if len(points) > size:
            return _in_parts(self, points, size)
        standard = (points[:, None] - self.means) / self.scales
        reached = standard_cdf(standard, self.logistic)
        density = reached * (1 - reached) if self.logistic else np.exp(-0.5 * standard * standard) / ROOT_TWO_PI
        return reached @ self.weights, density @ (self.weights / self.scales)

    def cdf(self, points: Numbers) -> Numbers:
        size = max(1, AT_ONCE // len(self.means))
        if len(points) > size:
            return np.concatenate([self.cdf(points[start : start + size]) for start in range(0, len(points), size)])
        found: Numbers = standard_cdf((points[:, None] - self.means) / self.scales, self.logistic) @ self.weights
        return found

    def bracket(self, level: Numbers) -> tuple[Numbers, Numbers]:
        each = self.means + self.scales * standard_quantile(level, self.logistic)[:, None]
        return each.min(axis=1), each.max(axis=1)

    def rule(self, low: float, high: float, steps: Steps = ()) -> tuple[Numbers, Numbers] | None:
        if self.logistic:
            return None
        means, scales = torch.from_numpy(self.means), torch.from_numpy(self.scales)
        points, masses = component_rule(log_normal, means, scales, (low, high), steps)
        return points.numpy().reshape(-1), (masses.numpy() * self.weights[:, None]).reshape(-1)


@dataclass(frozen=True, eq=False)
class Mixed(Curve):
    """A mixture of curves."""

    parts: Sequence[Curve]
    weights: Sequence[float]

    def at(self, points: Numbers) -> tuple[Numbers, Numbers]:
        reached, density = np.zeros(len(points)), np.zeros(len(points))
        for weight, part in zip(self.weights, self.parts, strict=True):
            below, height = part.at(points)
            reached += weight * below
            density += weight * height
        return np.minimum(reached, 1.0), density

    def cdf(self, points: Numbers) -> Numbers:
        each = [weight * part.cdf(points) for weight, part in zip(self.weights, self.parts, strict=True)]
        return np.minimum(sum(each[1:], each[0]), 1.0)

    def bracket(self, level: Numbers) -> tuple[Numbers, Numbers]:
        lows, highs = zip(*(part.bracket(level) for part in self.parts), strict=True)
        return np.min(lows, axis=0), np.max(highs, axis=0)

    def rule(self, low: float, high: float, steps: Steps = ()) -> tuple[Numbers, Numbers] | None:
        points, masses = [], []
        for weight, part in zip(self.weights, self.parts, strict=True):
            if (found := part.rule(low, high, steps)) is None:
                return None
            points.append(found[0])
            masses.append(weight * found[1])
        return np.concatenate(points), np.concatenate(masses)


@dataclass(frozen=True, eq=False)
class Between(Curve):
    """A curve cut off at two points: ``below`` of it lies before the first, ``mass``, which is not little, between."""

    base: Curve
    low: float
    high: float
    below: float
    mass: float

    def at(self, points: Numbers) -> tuple[Numbers, Numbers]:
        reached, density = self.base.at(between(points, self.low, self.high))
        outside = (points < self.low) | (points > self.high)
        return between((reached - self.below) / self.mass, 0, 1), np.where(outside, 0.0, density / self.mass)

    def bracket(self, level: Numbers) -> tuple[Numbers, Numbers]:
        low, high = self.base.bracket(between(self.below + level * self.mass, TINY, 1 - EPSILON))
        return between(low, self.low, self.high), between(high, self.low, self.high)

    def rule(self, low: float, high: float, steps: Steps = ()) -> tuple[Numbers, Numbers] | None:
        low, high = max(low, self.low), min(high, self.high)
        if not low < high:
            return np.zeros(0), np.zeros(0)
        found = self.base.rule(low, high, steps)
        return None if found is None else (found[0], found[1] / self.mass)

    def quantile(self, level: Numbers) -> Numbers:
        value = self.base.quantile(between(self.below + level * self.mass, 0, 1))
        value = between(value, self.low, self.high)
        return np.where(level == 1, self.high, np.where((level >= 0) & (level <= 1), value, np.nan))


@dataclass(frozen=True, eq=False)
class Reweighed(Curve):
    """A curve whose density is multiplied by a factor beyond either of two ends, and which is normalised again.

    ``masses``: what the curve has beyond each of them.
    """

    base: Curve
    ends: tuple[float, float]
    factors: tuple[float, float]
    masses: tuple[float, float]

    @property
    def total(self) -> float:
        """What the factors make of one."""
        return 1 + sum((factor - 1) * mass for factor, mass in zip(self.factors, self.masses, strict=True))

    def at(self, points: Numbers) -> tuple[Numbers, Numbers]:
        reached, density = self.base.at(points)
        return self._counted(reached), density * self._factor(points) / self.total

    def rule(self, low: float, high: float, steps: Steps = ()) -> tuple[Numbers, Numbers] | None:
        found = self.base.rule(low, high, (*steps, *self.ends))
        return None if found is None else (found[0], found[1] * self._factor(found[0]) / self.total)

    def _factor(self, points: Numbers) -> Numbers:
        (low, high), (less, more) = self.ends, self.factors
        return np.where(points < low, less, np.where(points > high, more, 1.0))

    def cdf(self, points: Numbers) -> Numbers:
        return self._counted(self.base.cdf(points))

    def _counted(self, reached: Numbers) -> Numbers:
        (below, above), (less, more) = self.masses, self.factors
        changed = (less - 1) * np.minimum(reached, below) + (more - 1) * np.maximum(reached - (1 - above), 0)
        found: Numbers = between((reached + changed) / self.total, 0, 1)
        return found

    def bracket(self, level: Numbers) -> tuple[Numbers, Numbers]:
        return self.base.bracket(between(self._level(level), TINY, 1 - EPSILON))

    def quantile(self, level: Numbers) -> Numbers:
        return self.base.quantile(self._level(level))

    def _level(self, level: Numbers) -> Numbers:
        """The level of the base at which this curve reaches ``level``."""
        (below, above), (less, more) = self.masses, self.factors
        counted, left = level * self.total, (1 - level) * self.total
        found = np.where(counted < less * below, counted / less, counted + (1 - less) * below)
        # From above, where a level next to one has more digits.
        found = np.where(left < more * above, 1 - left / more, found)
        return np.where((level <= 0) | (level >= 1), level, between(found, 0, 1))


def between(values: Any, low: float, high: float) -> Any:
    """``np.clip``, which takes several times as long for few numbers."""
    return np.minimum(np.maximum(values, low), high)


@functools.cache
def _evenly(count: int) -> Numbers:
    """So many numbers from 0 to 1."""
    return np.linspace(0.0, 1.0, count)


def standard_cdf(standard: Numbers, logistic: bool) -> Numbers:
    """The cdf of a standard normal, or of a standard logistic."""
    values = torch.from_numpy(standard)
    return (torch.sigmoid(values) if logistic else torch.special.ndtr(values)).numpy()


def standard_quantile(level: Numbers, logistic: bool) -> Numbers:
    """The inverse of :func:`standard_cdf`."""
    levels = torch.from_numpy(np.maximum(level, TINY))
    return (torch.logit(levels) if logistic else torch.special.ndtri(levels)).numpy()


def _in_parts(curve: Curve, points: Numbers, size: int) -> tuple[Numbers, Numbers]:
    each = [curve.at(points[start : start + size]) for start in range(0, len(points), size)]
    reached, density = (np.concatenate(part) for part in zip(*each, strict=True))
    return reached, density
