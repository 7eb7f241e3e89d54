"""Where to put the knots of a warp that makes a column look standard normal.

    z = Phi^-1(F(x)),   dz/dx = f(x) / phi(z)

with F the kernel-smoothed cdf of the column. The kernels work on y = asinh((x - median) / spread), in which heavy tails
are only exponential; they are all of one width, or each as wide as its row's neighbourhood. Which of the two, and a
factor on all widths, is what maximises the leave-one-out likelihood, with equal values left out together: ties carry
no news about smoothness and would otherwise drive the width to zero. One pseudo-row (at most 2 %) of a wide normal
keeps F moving where there are no data.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

COMPARED = 1000  # rows whose pairs choose the kernel width: the matrix of pairs stays at 8 MB
ONE_WIDTH = 0.5  # in y, where the middle half of a normal column is 1.3 wide: the width before its factor
FACTORS = 12  # tried on the widths
TAIL = 0.05  # share of the rows that counts as a tail, on either side
SUMMARY = 2048  # order statistics that stand for a longer column when F is evaluated
LEVEL = 2.8  # evenly spaced z knots end here; the tails beyond have knots that follow the data's own extremes
STRIDE = 0.75  # no bin is longer than this in y, so that x at most doubles across a tail bin
STEEPEST = 20.0  # a knot's slope stays within this factor of the secants beside it: keeps the inverse accurate
WIDEN = 1.25  # smoothing shrinks the scores; they are stretched back to unit deviation by at most this

Knots = tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]


def normal_score_knots(values: Float[np.ndarray, " rows"], knots: int, minimum_scale: float | None) -> Knots | None:
    """The knots x, z and slopes of the normal-score map; ``None`` if fewer than two finite values are distinct."""
    column = np.sort(np.asarray(values, dtype=np.float64))
    column = column[np.isfinite(column)]
    if len(column) == 0 or column[0] == column[-1]:
        return None
    location = float(np.median(column))
    spread = _spread(column - location)
    compressed = (torch.from_numpy(column - location) / spread).asinh()
    smooth = _Smoothed(compressed, (minimum_scale or 0.0) / spread)

    y = smooth.places(min(knots, 2 + math.isqrt(16 * len(column))))
    x = location + spread * y.sinh()
    z, dz_dy = smooth.score(y)
    widen = min(WIDEN, max(1.0, 1 / float(smooth.score(smooth.column[:: 1 + len(smooth.column) // 128])[0].std())))
    keep = _apart(x, z)
    x, z = x[keep], z[keep] * widen
    slope = widen * dz_dy[keep] / y[keep].cosh() / spread
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
    """The greatest leave-one-out likelihood over factors 2^(1 - j/2) on all kernel widths, and that factor."""
    rows = len(column)
    distance = column[:, None] - column
    # Halving the square of the factor squares every kernel value: one exp serves the whole grid.
    kernel = torch.exp(-0.5 * (distance / (2 * width)).square()).masked_fill(distance == 0, 0.0)
    wide = 1e-2 / float(column[-1] - column[0]) if rows > 1 and column[-1] > column[0] else 1.0
    best, factor, result = -math.inf, 2.0, 2.0
    for _ in range(FACTORS):
        # The pseudo-row is a floor: no single isolated value may decide.
        score = float(torch.log((kernel / width).sum(1) / factor + wide).sum())
        if score > best:
            best, result = score, factor
        kernel *= kernel
        factor /= math.sqrt(2)
    return best, result


class _Smoothed:
    """The kernel-smoothed cdf of a sorted column and its normal scores."""

    def __init__(self, column: Float[Tensor, " rows"], least: float) -> None:
        rows = len(column)
        index = torch.linspace(0, rows - 1, min(rows, SUMMARY), dtype=torch.float64).round().long()
        self.column = column[index]
        self.width = _kernel_widths(column)[index].clamp(min=least)
        self.middle = float(column.mean())
        self.wide = max(2 * float(column.std(correction=0)), float(column[-1] - column[0]) / 4, least)
        self.pseudo = min(0.02, 1 / (rows + 1))

    def score(self, y: Float[Tensor, " places"]) -> tuple[Float[Tensor, " places"], Float[Tensor, " places"]]:
        """z = Phi^-1(F(y)) and dz/dy, the upper tail as accurate as the lower one."""
        near = (y[:, None] - self.column) / self.width
        far = (y - self.middle) / self.wide
        lower = self._mix(torch.special.ndtr(near).mean(1), torch.special.ndtr(far))
        upper = self._mix(torch.special.ndtr(-near).mean(1), torch.special.ndtr(-far))
        z = torch.where(lower < upper, torch.special.ndtri(lower), -torch.special.ndtri(upper))
        # f / phi(z), both in units of 1 / sqrt(2 pi).
        density = self._mix((torch.exp(-0.5 * near.square()) / self.width).mean(1), (-0.5 * far**2).exp() / self.wide)
        return z, density / torch.exp(-0.5 * z.square())

    def places(self, knots: int) -> Float[Tensor, " places"]:
        """Knots in y: evenly spaced in z, out to the extremes of the data, and none too far apart in y."""
        first, last = self.column[:1], self.column[-1:]
        (z_first,), (z_last,) = self.score(first)[0].tolist(), self.score(last)[0].tolist()
        levels = torch.linspace(max(z_first, -LEVEL), min(z_last, LEVEL), max(knots, 2), dtype=torch.float64)
        lower, upper = first.expand_as(levels), last.expand_as(levels)
        for _ in range(45):  # plain bisection: float precision is not needed for where a knot stands
            middle = (lower + upper) / 2
            short = self.score(middle)[0] < levels
            lower, upper = torch.where(short, middle, lower), torch.where(short, upper, middle)
        y = np.unique(torch.cat([first, (lower + upper) / 2, last]).numpy())
        between = [
            torch.linspace(low, high, 1 + math.ceil((high - low) / STRIDE), dtype=torch.float64)
            for low, high in pairwise(y.tolist())
        ]
        return torch.from_numpy(np.unique(torch.cat(between).numpy()))

    def _mix(self, kernel: Tensor, wide: Tensor) -> Tensor:
        return (1 - self.pseudo) * kernel + self.pseudo * wide


def _apart(x: Float[Tensor, " places"], z: Float[Tensor, " places"]) -> list[int]:
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
