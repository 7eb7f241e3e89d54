"""A smooth, strictly increasing map of the real line with an exact inverse: user units x <-> model units z.

A monotone rational-quadratic spline (Gregory and Delbourgo, 1982) through the knots (x_k, z_k) with the
derivatives slope_k, continued outside by straight lines. In a bin of width w and height h, with secant h / w,
relative end slopes a = slope_k w / h and b = slope_{k+1} w / h, and u = (x - x_k) / w:

    z     = z_k + h (u^2 + a u (1 - u)) / (1 + (a + b - 2) u (1 - u))
    dz/dx = (h / w) (b u^2 + 2 u (1 - u) + a (1 - u)^2) / (1 + (a + b - 2) u (1 - u))^2

and the inverse is the root of a quadratic. A density in model units becomes one in the user's units by adding
``log_slope``. Everything is float64, since x may be 1e12 plus a small variation; only differences of x are used.

Normal scores. The knots of :meth:`Warp.normal_scores` follow

    z = Phi^-1(F(x)),   dz/dx = f(x) / phi(z)

with F the kernel-smoothed cdf of the column. The kernels work on y = asinh((x - median) / spread), in which heavy tails
are only exponential; they are all of one width, or each as wide as its row's neighbourhood. Which of the two, and a
factor on all widths, is what maximises the leave-one-out likelihood, with equal values left out together: ties carry
no news about smoothness and would otherwise drive the width to zero. One pseudo-row (at most 2 %) of a wide normal
keeps F moving where there are no data. Kernels end at the ends of the data, since nothing of what they stand for was
seen beyond; there the tails of :mod:`.tails` begin, which hold 1 / (n + 1) each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.support.roots import first_crossing
from anyorder.variables.tails import Tail

COMPARED = 1000  # rows whose pairs choose the kernel width: the matrix of pairs stays at 8 MB
ONE_WIDTH = 0.5  # in y, where the middle half of a normal column is 1.3 wide: the width before its factor
FACTORS = 12  # tried on the widths
# What narrower kernels must gain over wider ones, in standard errors and in nats a row: else wider ones are preferred.
CLEAR, CHEAP = 1.0, 0.01
TAIL = 0.05  # share of the rows that counts as a tail, on either side
SUMMARY = 2048  # order statistics that stand for a longer column when F is evaluated
LEVEL = 2.8  # evenly spaced z knots end here; the tails beyond have knots that follow the data's own extremes
STRIDE = 0.75  # no bin is longer than this in y, so that x at most doubles across a tail bin
STEEPEST = 20.0  # a knot's slope stays within this factor of the secants beside it: keeps the inverse accurate
SCORES_REACH = 5.0  # normal scores, of however many rows
CLOSE = 1e-6  # of the width of the data: nearer to a bound than this they are at it
STRETCHED = 1.0  # widths beyond the data over which a straight map becomes steep

Ends = tuple[float | None, float | None]
Knots = tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True)
class Warp:
    """The spline through (x_k, z_k) with derivatives slope_k; plain tuples, so it is JSON-ready as it stands."""

    x: tuple[float, ...]
    z: tuple[float, ...]
    slope: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("x", "z", "slope"):
            object.__setattr__(self, name, tuple(float(number) for number in getattr(self, name)))
        if len(self.x) < 2 or not len(self.x) == len(self.z) == len(self.slope):
            lengths = f"{len(self.x)}, {len(self.z)} and {len(self.slope)}"
            raise ValueError(f"a warp needs two or more of x, z and slope, as many of each; got {lengths}")
        rising = all(low < high for knots in (self.x, self.z) for low, high in pairwise(knots))
        if not rising or not all(0 < slope < math.inf for slope in self.slope):
            raise ValueError("the knots of a warp must increase strictly and its slopes must be positive and finite")
        if not all(math.isfinite(knots[-1] - knots[0]) for knots in (self.x, self.z)):
            raise ValueError("the knots of a warp must be finite, and so must the way from the first to the last")

    @classmethod
    def affine(cls, location: float, scale: float) -> Warp:
        """z = (x - location) / scale."""
        if not (scale > 0 and math.isfinite(scale) and math.isfinite(location)):
            raise ValueError(f"expected a finite location and a positive scale, got {location} and {scale}")
        # The second knot must be a float well apart from the first, even where scale is lost beside location.
        second = location + max(scale, abs(location) * 1e-6)
        return cls((location, second), (0.0, (second - location) / scale), (1 / scale, 1 / scale))

    @classmethod
    def normal_scores(
        cls,
        values: Float[np.ndarray, " rows"],
        knots: int = 64,
        minimum_scale: float | None = None,
        bounds: Ends = (None, None),
    ) -> Warp:
        """The map under which these values look standard normal: Phi^-1 of their kernel-smoothed cdf.

        ``minimum_scale``, in the units of the values, is the finest structure worth resolving: the rounding step of
        the data, say. Values of which only one is distinct are merely shifted, and scaled by ``minimum_scale``. Most of
        what lies beyond the values lies within ``bounds``.
        """
        found = normal_score_knots(values, knots, minimum_scale, bounds)
        if found is None:
            finite = values[np.isfinite(values)]
            return cls.affine(float(finite[0]) if len(finite) else 0.0, minimum_scale or 1.0)
        return cls(*found)

    @classmethod
    def standard(cls, values: Float[np.ndarray, " rows"], location: float, scale: float) -> Warp:
        """z = (x - location) / scale where the values are, and ever steeper beyond: see :func:`standard_knots`."""
        return cls(*standard_knots(values, location, scale))

    def forward(self, x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """User units to model units."""
        x = x.to(torch.float64)
        if x.requires_grad or x.device.type != "cpu":
            return self._forward(x, self._bins(self._knots[0], x))  # type: ignore[no-any-return]
        return torch.from_numpy(np.asarray(self.forward_array(x.detach().numpy())))

    def forward_array(self, x: Float[np.ndarray, "*batch"]) -> Float[np.ndarray, "*batch"]:
        """User units to model units; of few numbers, several times as quick as with tensors."""
        return self._forward(x, self._array_bins(self.x, x))  # type: ignore[no-any-return]

    def forward_and_slope(
        self, x: Float[np.ndarray, "*batch"]
    ) -> tuple[Float[np.ndarray, "*batch"], Float[np.ndarray, "*batch"]]:
        """Model units and dz/dx at numbers in user units."""
        if self.straight:
            return self._forward(x, None), np.full(x.shape, self.slope[0])
        bins = self._array_bins(self.x, x)
        left, width, _, height, a, b = bins
        u = (x.clip(self.x[0], self.x[-1]) - left) / width  # at the ends the formula gives the end slopes
        rest = 1 - u
        bend = 1 + (a + b - 2) * u * rest
        return self._forward(x, bins), height / width * (b * u * u + 2 * u * rest + a * rest * rest) / (bend * bend)

    def _forward(self, x: Any, bins: Any) -> Any:
        """The formula, for arrays and tensors alike; ``bins``: what :meth:`_bins` says of each value."""
        if self.straight:
            return (x - self.x[0]) * self.slope[0] + self.z[0]
        return bent(x, bins, self.x[0], self.x[-1], self.slope[0], self.slope[-1])

    def inverse(self, z: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """Model units to user units."""
        z = z.to(torch.float64)
        if z.requires_grad or z.device.type != "cpu":
            return self._inverse(z, self._bins(self._knots[1], z))  # type: ignore[no-any-return]
        return torch.from_numpy(np.asarray(self.inverse_array(z.detach().numpy())))

    def inverse_array(self, z: Float[np.ndarray, "*batch"]) -> Float[np.ndarray, "*batch"]:
        """Model units to user units; of few numbers, several times as quick as with tensors."""
        return self._inverse(z, self._array_bins(self.z, z))  # type: ignore[no-any-return]

    def _inverse(self, z: Any, bins: Any) -> Any:
        """The formula, as in :meth:`_forward`."""
        if self.straight:
            return (z - self.z[0]) / self.slope[0] + self.x[0]
        left, width, bottom, height, a, b = bins
        inside = z.clip(self.z[0], self.z[-1])
        v = (inside - bottom) / height
        bend = (a + b - 2) * v
        # Of the two roots of (1 - a + bend) u^2 + (a - bend) u - v = 0, the one in [0, 1], without cancellation.
        linear = a - bend
        square = (linear * linear + 4 * (1 - a + bend) * v).clip(min=0)
        u = 2 * v / (linear + (square.sqrt() if isinstance(square, Tensor) else np.sqrt(square)))
        beyond = z - inside
        x = left + width * u.clip(0, 1)
        return x + beyond.clip(max=0) / self.slope[0] + beyond.clip(min=0) / self.slope[-1]

    def log_slope(self, x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """log dz/dx at ``x`` in user units: what a log-density in model units gains in the user's units."""
        x = x.to(torch.float64)
        if self.straight:
            return torch.where(x.isnan(), x, math.log(self.slope[0]))
        left, width, _, height, a, b = self._bins(self._knots[0], x)
        u = (x.clamp(self.x[0], self.x[-1]) - left) / width  # at the ends the formula gives the end slopes
        rest = 1 - u
        shape = b * u * u + 2 * u * rest + a * rest * rest
        return height.log() - width.log() + shape.log() - 2 * torch.log1p((a + b - 2) * u * rest)

    @cached_property
    def bends(self) -> bool:
        """Whether it bends in the middle of the data, and not only beyond them."""
        *_, a, b = (float(part) for part in self._bins(self._knots[1], torch.zeros(1, dtype=torch.float64)))
        return not (math.isclose(a, 1.0, rel_tol=1e-9) and math.isclose(b, 1.0, rel_tol=1e-9))

    @property
    def reach(self) -> float | None:
        """How far from zero the data lie in model units, about; None for a map that was made without data.

        Coarse on purpose: columns that reach as far share a head.
        """
        if self.straight:
            return None
        if self.bends:
            return SCORES_REACH
        after = next(index for index, z in enumerate(self.z) if z > 0)
        return max(4.0, 2.0 ** math.ceil(math.log2(max(-self.z[after - 1], self.z[after]))))

    @cached_property
    def straight(self) -> bool:
        """Whether it is one straight line, for which there is nothing to look up."""
        secant = (self.z[1] - self.z[0]) / (self.x[1] - self.x[0])
        return len(self.x) == 2 and all(math.isclose(slope, secant, rel_tol=1e-12) for slope in self.slope)

    @cached_property
    def _knots(self) -> Float[Tensor, "two knots"]:
        return torch.tensor([self.x, self.z], dtype=torch.float64)

    @cached_property
    def _table(self) -> Float[Tensor, "six bins"]:
        x, z = self._knots
        slope = torch.tensor(self.slope, dtype=torch.float64)
        width, height = x.diff(), z.diff()
        return torch.stack([x[:-1], width, z[:-1], height, slope[:-1] * width / height, slope[1:] * width / height])

    def _array_bins(self, knots: tuple[float, ...], value: Float[np.ndarray, "*batch"]) -> Any:
        """:meth:`_bins` of an array; None where nothing is to be looked up."""
        if self.straight:
            return None
        inner = self._inner[0 if knots is self.x else 1]
        return self._array_table[:, inner.searchsorted(value, side="right")]

    @property
    def lookup(self) -> tuple[Float[np.ndarray, " inner"], Float[np.ndarray, "six bins"]]:
        """The knots x between two bins, and what is known of each bin: for whoever looks up many warps at once."""
        return self._inner[0], self._array_table

    @cached_property
    def _inner(self) -> Float[np.ndarray, "two inner"]:
        return np.array([self.x[1:-1], self.z[1:-1]])

    @cached_property
    def _array_table(self) -> Float[np.ndarray, "six bins"]:
        found: Float[np.ndarray, "six bins"] = self._table.numpy()
        return found

    def _bins(self, knots: Float[Tensor, " knots"], value: Tensor) -> tuple[Tensor, ...]:
        """Left edge, width, bottom, height and relative end slopes of the bin each value falls into."""
        index = torch.searchsorted(knots[1:-1].to(value.device), value.detach().contiguous(), right=True)
        return self._table.to(value.device)[:, index].unbind(0)


def bent(x: Any, bins: Any, first: Any, last: Any, below: Any, above: Any) -> Any:
    """The spline of a warp: ``first`` and ``last`` are its outer knots, ``below`` and ``above`` its slopes there."""
    left, width, bottom, height, a, b = bins
    inside = x.clip(first, last)
    u = (inside - left) / width
    spread = u * (1 - u)
    z = bottom + height * (u * u + a * spread) / (1 + (a + b - 2) * spread)
    beyond = x - inside
    return z + beyond.clip(max=0) * below + beyond.clip(min=0) * above


def normal_score_knots(
    values: Float[np.ndarray, " rows"], knots: int, minimum_scale: float | None, bounds: Ends = (None, None)
) -> Knots | None:
    """The knots x, z and slopes of the normal-score map; ``None`` if fewer than two finite values are distinct."""
    column = np.sort(np.asarray(values, dtype=np.float64))
    column = column[np.isfinite(column)]
    if len(column) == 0 or column[0] == column[-1]:
        return None
    location = float(np.median(column))
    spread = _spread(column - location)
    half = min(minimum_scale or float(np.diff(np.unique(column)).min()), float(column[-1] - column[0])) / 2
    ends = torch.tensor([column[0] - half, column[-1] + half], dtype=torch.float64)
    compressed = (torch.from_numpy(column - location) / spread).asinh()
    first, last = ((ends - location) / spread).asinh().tolist()
    smooth = _Smoothed(compressed, (minimum_scale or 0.0) / spread, first, last)

    y = smooth.spread_knots(min(knots, 2 + math.isqrt(16 * len(column))))
    x = location + spread * y.sinh()
    z, dz_dy = smooth.score(y)
    keep = _apart(x, z)
    x, z, slope = x[keep], z[keep], dz_dy[keep] / y[keep].cosh() / spread
    return _with_tails(x, z, slope, column, minimum_scale or 0.0, bounds)


def standard_knots(values: Float[np.ndarray, " rows"], location: float, scale: float) -> Knots:
    """z = (x - location) / scale as far as the values reach; beyond, each further width of theirs is worth more of z.

    With t the distance in widths, z grows by (t + 2 t^2) widths, up to STRETCHED of them, and then on like a line.
    """
    low, high = float(values.min()), float(values.max())
    width = high - low
    reach = torch.tensor([step * STRETCHED / 4 for step in range(1, 5)], dtype=torch.float64)
    more, slope = (reach + 2 * reach**2) * width / scale, (1 + 4 * reach) / scale
    inner_x, inner_z = [low, high], [(low - location) / scale, (high - location) / scale]
    x = torch.cat([low - width * reach.flip(0), torch.tensor(inner_x, dtype=torch.float64), high + width * reach])
    z = torch.cat([inner_z[0] - more.flip(0), torch.tensor(inner_z, dtype=torch.float64), inner_z[1] + more])
    straight = torch.full((2,), (inner_z[1] - inner_z[0]) / width, dtype=torch.float64)
    return tuple(x.tolist()), tuple(z.tolist()), tuple(torch.cat([slope.flip(0), straight, slope]).tolist())


def _with_tails(
    x: Tensor, z: Tensor, slope: Tensor, column: Float[np.ndarray, " rows"], least: float, bounds: Ends
) -> Knots:
    """The knots of the data continued on both sides by what exceeds them."""
    low, high = bounds
    for bound in (high, None if low is None else -low):  # the upper side, and the lower one in a mirror
        room = math.inf if bound is None else bound - float(x[-1])
        tail = Tail.fit(column, least, room if room > CLOSE * float(x[-1] - x[0]) else math.inf)
        reach = torch.cat([torch.zeros(1, dtype=torch.float64), tail.knots()])
        score, steep = tail.scores(reach, float(z[-1]))
        # The last knot of the data belongs to both.
        x = torch.cat([x, x[-1] + reach[1:]])
        z = torch.cat([z, score[1:]])
        slope = torch.cat([slope[:-1], (slope[-1:] * steep[:1]).sqrt(), steep[1:]])
        x, z, slope, column = -x.flip(0), -z.flip(0), slope.flip(0), -column[::-1]
    keep = _apart(x, z)
    x, z, slope = x[keep], z[keep], slope[keep]
    secant = z.diff() / x.diff()
    beside = torch.stack([torch.cat([secant[:1], secant]), torch.cat([secant, secant[-1:]])])
    slope = torch.maximum(torch.minimum(slope, beside.amin(0) * STEEPEST), beside.amax(0) / STEEPEST)
    return tuple(x.tolist()), tuple(z.tolist()), tuple(slope.tolist())


def _spread(centred: Float[np.ndarray, " rows"]) -> float:
    """A standard deviation that outliers do not move: from the narrowest central range that is not a single atom."""
    for tail, normal_width in ((0.25, 1.349), (0.1, 2.563), (0.02, 4.108)):
        low, high = np.quantile(centred, [tail, 1 - tail])
        if high > low:
            return float(high - low) / normal_width
    return float(centred[-1] - centred[0]) / 4


def _widths(column: Float[Tensor, " rows"]) -> Float[Tensor, " rows"]:
    """How far the neighbourhood of each row of a sorted column reaches, on its nearer side."""
    rows = len(column)
    reach = min(math.ceil(0.4 * rows**0.8), rows - 1)  # the usual n^(-1/5) law for the width, as a rank
    side = column[reach:] - column[:-reach]
    none = torch.full((reach,), math.inf, dtype=column.dtype)
    width = torch.minimum(torch.cat([side, none]), torch.cat([none, side]))
    # An atom has no width of its own: it gets that of a small part of the whole.
    typical = float(width[width > 0].median()) if bool((width > 0).any()) else float(column[-1] - column[0])
    return width.clamp(min=0.05 * typical)


def _kernel_widths(column: Float[Tensor, " rows"]) -> Float[Tensor, " rows"]:
    """The width of each row's kernel: as wide as its neighbourhood, or the same for all, whichever predicts better.

    Neighbourhoods follow long tails, one width follows clusters of equal shape; leave-one-out likelihood decides.
    """
    rows = len(column)
    if rows > COMPARED:
        chosen = torch.from_numpy(np.sort(np.random.default_rng(0).choice(rows, COMPARED, replace=False)))
    else:
        chosen = torch.arange(rows)
    few = column[chosen]
    near, neighbourhoods = _widths(few), _widths(column)
    near_score, near_factor = _factor(few, near)
    one_score, one_factor = _factor(few, torch.full_like(few, ONE_WIDTH))
    neighbourhoods = near_factor * neighbourhoods
    if near_score >= one_score:
        return neighbourhoods
    one = torch.full_like(column, one_factor * ONE_WIDTH)
    # In the tails the wider of the two: narrow kernels there make slopes, and what lies beyond, a matter of chance.
    tail = max(1, round(TAIL * rows))
    for ends in (slice(None, tail), slice(rows - tail, None)):
        one[ends] = torch.maximum(one[ends], neighbourhoods[ends])
    return one


def _factor(column: Float[Tensor, " rows"], width: Float[Tensor, " rows"]) -> tuple[float, float]:
    """The greatest leave-one-out likelihood over factors 2^(1 - j/2) on all widths, and the widest that is as good."""
    rows = len(column)
    distance = column[:, None] - column
    # Halving the square of the factor squares every kernel value: one exp serves the whole grid.
    kernel = torch.exp(-0.5 * (distance / (2 * width)).square()).masked_fill(distance == 0, 0.0)
    wide = 1e-2 / float(column[-1] - column[0]) if rows > 1 and column[-1] > column[0] else 1.0
    factors, scores = [], []
    factor = 2.0
    for _ in range(FACTORS):
        # The pseudo-row is a floor: no single isolated value may decide.
        scores.append(torch.log((kernel / width).sum(1) / factor + wide))
        factors.append(factor)
        kernel *= kernel
        factor /= math.sqrt(2)
    best = max(range(FACTORS), key=lambda index: float(scores[index].sum()))
    # Bumps that do not clearly pay are chance: the widest kernels that are no worse than the best ones by much.
    for index in range(best):
        loss = scores[best] - scores[index]
        if float(loss.mean()) <= min(CLEAR * float(loss.std()) / math.sqrt(rows), CHEAP):
            return float(scores[best].sum()), factors[index]
    return float(scores[best].sum()), factors[best]


class _Smoothed:
    """The kernel-smoothed cdf of a sorted column between two ends.

    Kernels are cut off at the ends, but those of extreme values that occur more than once are folded back. One row in
    n + 1 is kept for each side beyond the ends: so often is the next value the greatest of all.
    """

    def __init__(self, column: Float[Tensor, " rows"], least: float, first: float, last: float) -> None:
        rows = len(column)
        index = torch.linspace(0, rows - 1, min(rows, SUMMARY), dtype=torch.float64).round().long()
        self.column = column[index]
        self.width = _kernel_widths(column)[index].clamp(min=least)
        self.lowest, self.highest = ((self.column == end) & ((column == end).sum() > 1) for end in column[[0, -1]])
        self.first, self.last = first, last
        self.middle = float(column.mean())
        self.wide = max(2 * float(column.std(correction=0)), float(column[-1] - column[0]) / 4, least)
        self.pseudo = min(0.02, 1 / (rows + 1))
        self.beyond = 1 / (rows + 1)

    def score(self, y: Float[Tensor, " values"]) -> tuple[Float[Tensor, " values"], Float[Tensor, " values"]]:
        """z = Phi^-1(F(y)) and dz/dy between the ends, the upper tail as accurate as the lower one."""
        low, high = self._cdf(torch.tensor([self.first, self.last], dtype=torch.float64)).tolist()
        reached = (self._cdf(y) - low) / (high - low)
        lower, upper = (self.beyond + (1 - 2 * self.beyond) * part.clamp(0, 1) for part in (reached, 1 - reached))
        z = torch.where(lower < upper, torch.special.ndtri(lower), -torch.special.ndtri(upper))
        # f / phi(z), both in units of 1 / sqrt(2 pi).
        density = (1 - 2 * self.beyond) * self._density(y) / (high - low)
        return z, density / torch.exp(-0.5 * z.square())

    def _cdf(self, y: Float[Tensor, " values"]) -> Float[Tensor, " values"]:
        near, far = (y[:, None] - self.column) / self.width, (y - self.middle) / self.wide
        reached = torch.special.ndtr(near)
        for here, mirrored in self._mirrored(y):
            reached[:, here] -= torch.special.ndtr(mirrored)  # up to a constant, which no difference knows
        return self._mix(reached.mean(1), torch.special.ndtr(far))

    def _density(self, y: Float[Tensor, " values"]) -> Float[Tensor, " values"]:
        near, far = (y[:, None] - self.column) / self.width, (y - self.middle) / self.wide
        height = torch.exp(-0.5 * near.square())
        for here, mirrored in self._mirrored(y):
            height[:, here] += torch.exp(-0.5 * mirrored.square())
        return self._mix((height / self.width).mean(1), (-0.5 * far**2).exp() / self.wide)

    def _mirrored(self, y: Float[Tensor, " values"]) -> Iterator[tuple[Tensor, Tensor]]:
        """The kernels of the lowest and of the highest values, and where the mirror images of ``y`` lie on them."""
        for here, end in ((self.lowest, self.first), (self.highest, self.last)):
            yield here, (2 * end - y[:, None] - self.column[here]) / self.width[here]

    def spread_knots(self, knots: int) -> Float[Tensor, " knots"]:
        """Knots in y: evenly spaced in z, out to the extremes of the data, and none too far apart in y."""
        first, last = torch.full_like(self.column[:1], self.first), torch.full_like(self.column[:1], self.last)
        (z_first,), (z_last,) = self.score(first)[0].tolist(), self.score(last)[0].tolist()
        levels = torch.linspace(max(z_first, -LEVEL), min(z_last, LEVEL), max(knots, 2), dtype=torch.float64)
        reached = first_crossing(lambda y: self.score(y)[0] - levels, first.expand_as(levels), last.expand_as(levels))
        y = np.unique(torch.cat([first, reached, last]).numpy())
        between = [
            torch.linspace(low, high, 1 + math.ceil((high - low) / STRIDE), dtype=torch.float64)
            for low, high in pairwise(y.tolist())
        ]
        return torch.from_numpy(np.unique(torch.cat(between).numpy()))

    def _mix(self, kernel: Tensor, wide: Tensor) -> Tensor:
        return (1 - self.pseudo) * kernel + self.pseudo * wide


def _apart(x: Float[Tensor, " knots"], z: Float[Tensor, " knots"]) -> list[int]:
    """Indices of knots that differ clearly in x and z as floats, both ends among them."""
    last = len(x) - 1
    at: list[float] = x.tolist()
    score: list[float] = z.tolist()

    def clear(low: int, high: int) -> bool:
        return at[high] - at[low] > 4 * math.ulp(max(abs(at[low]), abs(at[high]))) and score[high] - score[low] > 1e-6

    keep = [0]
    for index in range(1, last):
        if clear(keep[-1], index) and clear(index, last):
            keep.append(index)
    return [*keep, last]
