r"""One distribution on a line as a curve in NumPy: its cdf and its density at many points, and its quantiles.

A question is answered by a single law, and with few numbers a step of torch costs more than what is computed in it. The
quantiles of a law, however many, come out of one table of its cdf F and a few Newton steps
$x - (F(x) - \text{level}) / F'(x)$ from the table's own guess, which never leave a bracket that always shrinks.
A distribution on a lattice is the curve before it is cut into cells.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from anyorder.support.roots import inverse_cubic

Numbers = NDArray[np.float64]

FEWEST, MOST = 65, 2049  # points of a table
AT_ONCE = 1 << 15  # numbers in one step: what is between two steps should stay near the processor
CLOSE = 1e-9  # a last step, relative to the point above one: the error that it leaves is about its square
STEPS = 128
TINY, EPSILON = 1e-300, 1e-16
ROOT_TWO_PI = math.sqrt(2 * math.pi)


class Curve(ABC):
    """One law on a line without atoms."""

    @abstractmethod
    def at(self, points: Numbers) -> tuple[Numbers, Numbers]:
        """The cdf and the density at these points, an array of one dimension."""

    @abstractmethod
    def bracket(self, level: Numbers) -> tuple[Numbers, Numbers]:
        """Points between which the quantiles at levels inside (0, 1) lie."""

    def quantile(self, level: Numbers) -> Numbers:
        """Where the cdf reaches each level; the ends of the line at 0 and 1, NaN where there is no such level."""
        found = np.where(level <= 0, -np.inf, np.inf)
        found[~((level >= 0) & (level <= 1))] = np.nan
        inside = (level > 0) & (level < 1)
        if inside.any():
            found[inside] = self._search(level[inside])
        return found

    def _search(self, level: Numbers) -> Numbers:
        lower, upper = self.bracket(level)
        table = np.linspace(lower.min(), upper.max(), min(max(FEWEST, len(level)), MOST))
        reached = np.maximum.accumulate(self.at(table)[0])
        place = np.searchsorted(reached, level).clip(1, len(table) - 1)
        lower = np.maximum(lower, table[place - 1])
        upper = np.maximum(np.minimum(upper, table[place]), lower)
        four = (place + np.arange(-2, 2)[:, None]).clip(0, len(table) - 1)
        point = inverse_cubic(table[four], reached[four] - level)
        point = np.where((point >= lower) & (point <= upper), point, (lower + upper) / 2)  # false for NaN
        found, left, moved = point.copy(), np.arange(len(level)), upper - lower
        for _ in range(STEPS):
            value, slope = self.at(point)
            value -= level
            below = value < 0
            lower, upper = np.where(below, point, lower), np.where(below, upper, point)
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = point - value / slope
            good = (newton >= lower) & (newton <= upper) & (2 * np.abs(newton - point) <= moved)
            following = np.where(good, newton, (lower + upper) / 2)
            moved = np.abs(following - point)
            point = found[left] = following
            going = moved > CLOSE * np.maximum(np.abs(point), 1)
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
        if self.logistic:
            reached = torch.sigmoid(torch.from_numpy(standard)).numpy()
            density = reached * (1 - reached)
        else:
            reached = torch.special.ndtr(torch.from_numpy(standard)).numpy()
            density = np.exp(-0.5 * standard * standard) / ROOT_TWO_PI
        return reached @ self.weights, density @ (self.weights / self.scales)

    def bracket(self, level: Numbers) -> tuple[Numbers, Numbers]:
        levels = torch.from_numpy(level)
        standard = (torch.logit(levels) if self.logistic else torch.special.ndtri(levels)).numpy()
        each = self.means + self.scales * standard[:, None]
        return each.min(axis=1), each.max(axis=1)


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

    def bracket(self, level: Numbers) -> tuple[Numbers, Numbers]:
        lows, highs = zip(*(part.bracket(level) for part in self.parts), strict=True)
        return np.min(lows, axis=0), np.max(highs, axis=0)


@dataclass(frozen=True, eq=False)
class Between(Curve):
    """A curve cut off at two points: ``below`` of it lies before the first, ``mass``, which is not little, between."""

    base: Curve
    low: float
    high: float
    below: float
    mass: float

    def at(self, points: Numbers) -> tuple[Numbers, Numbers]:
        reached, density = self.base.at(points.clip(self.low, self.high))
        outside = (points < self.low) | (points > self.high)
        return ((reached - self.below) / self.mass).clip(0, 1), np.where(outside, 0.0, density / self.mass)

    def bracket(self, level: Numbers) -> tuple[Numbers, Numbers]:
        low, high = self.base.bracket((self.below + level * self.mass).clip(TINY, 1 - EPSILON))
        return low.clip(self.low, self.high), high.clip(self.low, self.high)

    def quantile(self, level: Numbers) -> Numbers:
        value = self.base.quantile((self.below + level * self.mass).clip(0, 1)).clip(self.low, self.high)
        return np.where(level == 1, self.high, np.where((level >= 0) & (level <= 1), value, np.nan))


def _in_parts(curve: Curve, points: Numbers, size: int) -> tuple[Numbers, Numbers]:
    each = [curve.at(points[start : start + size]) for start in range(0, len(points), size)]
    reached, density = (np.concatenate(part) for part in zip(*each, strict=True))
    return reached, density
