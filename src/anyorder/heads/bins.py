r"""Bins of a line, with soft edges or hard ones: K densities, each linear between breakpoints.

A fixed warp w carries the line to normal scores, and u = Phi(w(z)) is the share of the marginal below z. B_k is the
density of bin k in u: a box between its edges, 1 / width_k high, if ``blur`` is 0. Else a trapezoid: from one box to
the next there is a ramp, over the share ``blur`` of the narrower of the two bins, half of it on either side of the
edge, so that every bin still holds 1, and bins as probable as they are wide still give the marginal itself. The outer
bins reach to infinity with the tails of the marginal. On a lattice the same cdf is cut into cells. What the bins alone
decide (breakpoints, lengths, quadrature rules) is found once, for every distribution over them
(:mod:`anyorder.heads.binned`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from anyorder.distributions.curves import Curve
from anyorder.distributions.quadrature import composite
from anyorder.distributions.tails import log_normal_between
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
APART = 1e-12  # normal scores that are nearer are one: what lies between has no digits
NARROWEST = 1e-300  # width of a bin, before a number is divided by it
SHORTEST = 1e-100  # of a piece on which a density has a slope
REACH = 9.0  # normal scores beyond which nothing is left
GRID = tuple(step / 2 for step in range(-18, 19))  # panels no wider than half a standard deviation
LEAST_KEPT = 1e-6  # of a bin, to be stretched to the whole of it
MOST_POINTS = 4096  # up to so many lattice points are summed; beyond, an integral over the line stands for the sum


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of one variable, the same for every element of a batch: K densities, each linear in u between breakpoints.

    ``breaks`` are normal scores, the outer ones infinite; ``left`` and ``right`` say how high each bin's density in u
    is at either end of every piece.
    """

    breaks: Float[Tensor, " breaks"]
    left: Float[Tensor, "bins pieces"]
    right: Float[Tensor, "bins pieces"]
    warp: Warp
    lattice: Lattice | None
    cuts: dict[tuple[float, float], Tensor] = field(default_factory=dict, repr=False)
    lost: dict[tuple[float, float], Tensor] = field(default_factory=dict, repr=False)
    rules: dict[tuple[float, ...], tuple[Tensor, Tensor]] = field(default_factory=dict, repr=False)
    shares: dict[tuple[tuple[float, float], ...], NDArray[np.float64]] = field(default_factory=dict, repr=False)

    @classmethod
    def parted(cls, edges: tuple[float, ...], warp: Warp, lattice: Lattice | None, blur: float = 0.0) -> Bins:
        """The bins between ``edges``, in model units."""
        inner = warp.forward(torch.tensor(edges, dtype=torch.float64))
        bounds = F.pad(inner, (1, 0), value=-math.inf)
        bounds = F.pad(bounds, (0, 1), value=math.inf)
        width = log_normal_between(bounds[:-1], bounds[1:]).exp().clamp(min=NARROWEST)
        height = 1 / width
        if not blur:
            return cls(bounds, height.diag(), height.diag(), warp, lattice)
        half = blur / 2 * torch.minimum(width[:-1], width[1:])
        # From the nearer end of (0, 1), where a share has more digits.
        sign = torch.where(inner > 0, -1.0, 1.0)
        level = torch.special.ndtr(sign * inner)
        ramps = torch.stack([sign * torch.special.ndtri(level + step * half) for step in (-1, 1)])
        ramps = torch.where(inner > 0, ramps.flip(0), ramps)
        breaks = torch.cat([bounds[:1], ramps.T.reshape(-1), bounds[-1:]]).cummax(0).values
        pieces = torch.arange(len(breaks) - 1)
        bin_ = torch.arange(len(width))[:, None]
        # Pieces are, in turn, the top of a bin and the ramp to the next.
        left = torch.where((pieces + 0) // 2 == bin_, height[:, None], 0.0)
        right = torch.where((pieces + 1) // 2 == bin_, height[:, None], 0.0)
        return cls(breaks, left, right, warp, lattice)

    @classmethod
    def joined(cls, each: Sequence[Bins]) -> Bins:
        """The bins of all, in turn; they must share a warp and a lattice."""
        inner = torch.cat([bins.breaks[1:-1] for bins in each]).sort().values
        apart = F.pad(inner.diff() > APART * inner[1:].abs().clamp(min=1), (1, 0), value=True)
        breaks = torch.cat([each[0].breaks[:1], inner[apart], each[0].breaks[-1:]])
        middle = torch.cat([breaks[1:2] - 1, (breaks[1:-2] + breaks[2:-1]) / 2, breaks[-2:-1] + 1])
        sides = []
        for ends in (breaks[:-1], breaks[1:]):
            parts = []
            for bins in each:
                piece = bins.piece(middle)
                share = bins.share(piece, ends)
                parts.append(bins.left[:, piece] + (bins.right - bins.left)[:, piece] * share)
            sides.append(torch.cat(parts))
        return cls(breaks, sides[0], sides[1], each[0].warp, each[0].lattice)

    @property
    def count(self) -> int:
        """How many bins there are."""
        return len(self.left)

    @cached_property
    def flat(self) -> bool:
        """Whether the density in u is constant on every piece."""
        return torch.equal(self.left, self.right)

    @cached_property
    def kinks(self) -> tuple[float, ...]:
        """Where a density of these bins steps or bends, in model units."""
        return tuple(self.warp.inverse(self.breaks[1:-1]).tolist())

    @cached_property
    def ends(self) -> Float[Tensor, " breaks"]:
        """All breakpoints on the line, the outer ones where nothing is left beyond."""
        return self.warp.inverse(self.breaks.clamp(-REACH, REACH))

    @cached_property
    def knots(self) -> Float[Tensor, " knots"]:
        """The normal scores where the warp bends: no rule is accurate across them."""
        return torch.tensor(self.warp.z, dtype=torch.float64)

    @cached_property
    def log_lengths(self) -> Float[Tensor, " pieces"]:
        """The log of how much of u each piece takes."""
        return log_normal_between(self.breaks[:-1], self.breaks[1:])

    @cached_property
    def lengths(self) -> Float[Tensor, " pieces"]:
        return self.log_lengths.exp().masked_fill(self.breaks[:-1] >= self.breaks[1:], 0.0)

    @cached_property
    def plain(self) -> Pieces:
        """The pieces as arrays."""
        starts = torch.special.ndtr(self.breaks[:-1])
        lengths = self.lengths.clamp(min=NARROWEST)
        parts = (self.breaks[1:-1], starts, lengths, self.ends, self.left, self.right)
        return Pieces(*(part.numpy() for part in parts))

    def below(self, piece: NDArray[np.int64], share: NDArray[np.float64]) -> NDArray[np.float64]:
        """The points on these pieces below which ``share`` of the piece lies, measured in u."""
        upper, near, width = self._sides
        # Taken from the side of the median, so that far tails keep their digits.
        upper = upper[piece]
        level = near[piece] + np.where(upper, 1 - share, share) * width[piece]
        score = torch.special.ndtri(torch.from_numpy(np.asarray(level))).numpy().clip(-REACH, REACH)
        return self.warp.inverse_array(np.where(upper, -score, score))

    @cached_property
    def _sides(self) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
        """Whether each piece lies above the median; the levels of its outer end, and how far it reaches from there."""
        low, high = self.breaks[:-1], self.breaks[1:]
        upper = low + high > 0
        near, far = (torch.special.ndtr(torch.where(upper, -one, other)) for one, other in ((high, low), (low, high)))
        return upper.numpy(), near.numpy(), (far - near).numpy()

    def piece(self, score: Float[Tensor, "*batch"]) -> Int[Tensor, "*batch"]:
        """The piece on which each score lies."""
        return torch.bucketize(score.contiguous(), self.breaks[1:-1].to(score.device), right=True)

    def share(self, piece: Int[Tensor, "*batch"], score: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """How much of a piece, measured in u, lies below a score on it."""
        start = self.breaks.to(score.device)[piece]
        inside = score > start
        log_part = log_normal_between(torch.where(inside, start, -1.0), torch.where(inside, score, 1.0))
        return (log_part - self.log_lengths.to(score.device)[piece]).exp().masked_fill(~inside, 0.0).clamp(max=1)

    def parts(
        self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]
    ) -> tuple[Float[Tensor, "*batch pieces"], Float[Tensor, "*batch pieces"] | float]:
        """The log of how much of u each piece has between two scores, and where on it the middle of that part lies."""
        breaks = self.breaks.to(low.device)
        lower, upper = low[..., None].maximum(breaks[:-1]), high[..., None].minimum(breaks[1:])
        meets = lower < upper
        starts, ends = breaks[:-1].expand_as(lower), breaks[1:].expand_as(lower)
        length = log_normal_between(lower.where(meets, -1.0), upper.where(meets, 1.0)).masked_fill(~meets, -math.inf)
        if self.flat:
            return length, 0.5
        numbers = torch.arange(len(breaks) - 1, device=low.device).expand_as(lower)
        first = self.share(numbers, lower.where(meets, starts)).masked_fill(lower <= starts, 0.0)
        last = self.share(numbers, upper.where(meets, ends)).masked_fill(upper >= ends, 1.0)
        return length, (first + last) / 2

    def held(self, low: Float[Tensor, " points"], high: Float[Tensor, " points"]) -> Float[Tensor, "bins points"]:
        """How much of each bin lies between two scores."""
        length, middle = self.parts(low, high)
        length = length.exp()
        return self.left @ (length * (1 - middle)).T + self.right @ (length * middle).T

    def held_within(self, low: float, high: float) -> Float[Tensor, " bins"]:
        """How much of each bin lies between two model values; kept, since a column is always asked for its bounds."""
        if (low, high) not in self.cuts:
            ends = self.warp.forward(torch.tensor([low, high], dtype=torch.float64))
            self.cuts[low, high] = self.held(ends[:1], ends[1:])[:, 0]
        return self.cuts[low, high]

    def held_in(self, stretches: tuple[tuple[float, float], ...]) -> NDArray[np.float64]:
        """How much of each bin lies between pairs of model values, a row for each pair; kept."""
        if stretches not in self.shares:
            self.shares[stretches] = np.stack([self.held_within(*ends).numpy() for ends in stretches])
        return self.shares[stretches]

    def lost_within(self, low: float, high: float) -> Float[Tensor, " bins"]:
        """What must be added to the logits so that bins, once cut at two model values, hold what they held; kept."""
        if (low, high) not in self.lost:
            kept = self.held_within(low, high)
            # A bin of which next to nothing lies inside is left as it is: there is no shape to stretch.
            self.lost[low, high] = torch.where(kept > LEAST_KEPT, -kept.clamp(min=LEAST_KEPT).log(), 0.0)
        return self.lost[low, high]

    @cached_property
    def rule(self) -> tuple[Float[Tensor, " nodes"], Float[Tensor, "bins nodes"], Float[Tensor, " nodes"]]:
        """Points on the line, the weight of each under each bin's own distribution, and under the marginal."""
        points = self._points() if self.lattice is not None else None
        if points is not None:
            assert self.lattice is not None
            lower, upper = (self.warp.forward(edge) for edge in self.lattice.cell(points))
            inside = self.held(lower, upper)
            return points, inside / inside.sum(dim=1, keepdim=True), torch.ones_like(points)
        nodes, inside, mass = self._between(-REACH, REACH)
        return self._on_lattice(self.warp.inverse(nodes)), inside / inside.sum(dim=1, keepdim=True), mass

    def rule_within(
        self, low: float, high: float, steps: tuple[float, ...] = ()
    ) -> tuple[Float[Tensor, " nodes"], Float[Tensor, "bins nodes"]]:
        """Points between two model values, and the weight of each under each bin's own distribution; kept.

        ``steps``: model values, in any order, across which no function of the points is smooth.
        """
        edges = (low, *sorted(step for step in steps if low < step < high), high)
        if edges not in self.rules:
            parts = []
            for pair in pairwise(edges):
                ends = self.warp.forward(torch.tensor(pair, dtype=torch.float64)).clamp(-REACH, REACH)
                nodes, inside, _ = self._between(*ends.tolist())
                parts.append((self.warp.inverse(nodes), inside))
            points, inside = (torch.cat(own, dim=-1) for own in zip(*parts, strict=True))
            self.rules[edges] = points, inside
        return self.rules[edges]

    def _between(
        self, low: float, high: float
    ) -> tuple[Float[Tensor, " nodes"], Float[Tensor, "bins nodes"], Float[Tensor, " nodes"]]:
        """Normal scores between two of them, how much of each bin each stands for, and how much of the marginal."""
        breaks = torch.cat([self.breaks[1:-1], self.knots, torch.tensor(GRID, dtype=torch.float64)])
        nodes, weights = composite(breaks, low, high)
        mass = weights * torch.exp(-0.5 * nodes.square() - HALF_LOG_TWO_PI)
        piece = self.piece(nodes)
        density = self.left[:, piece] + (self.right - self.left)[:, piece] * self.share(piece, nodes)
        return nodes, mass * density, mass

    def _on_lattice(self, z: Tensor) -> Tensor:
        return z if self.lattice is None else self.lattice.nearest(z)

    def _points(self) -> Tensor | None:
        """All points of the lattice that can be drawn, if they are few."""
        assert self.lattice is not None
        ends = self.warp.inverse(torch.tensor([-REACH, REACH], dtype=torch.float64))
        first, last = self.lattice.index(ends).tolist()
        if last - first >= MOST_POINTS:
            return None
        return self.lattice.at(torch.arange(first, last + 1, dtype=torch.float64))


@dataclass(frozen=True, eq=False)
class Pieces:
    """Bins as arrays: inner breakpoints, where in u each piece begins and how long it is, and all ends on the line."""

    inner: NDArray[np.float64]
    starts: NDArray[np.float64]
    lengths: NDArray[np.float64]
    ends: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]

    @cached_property
    def totals(self) -> NDArray[np.float64]:
        """How much of each bin lies on each piece and below it."""
        return np.cumsum((self.left + self.right) / 2 * self.lengths, axis=1)

    @cached_property
    def parabolas(self) -> NDArray[np.float64]:
        """How much of each bin lies below each piece, its density in u at the beginning, and half the slope of that."""
        below = np.concatenate([np.zeros((len(self.left), 1)), self.totals[:, :-1]], axis=1)
        # On a piece without length there is no way to go, and nothing to bend.
        rise = np.where(self.lengths > SHORTEST, self.right - self.left, 0.0)
        return np.concatenate([below, self.left, rise / (2 * np.maximum(self.lengths, SHORTEST))], axis=1)


def reaching(bins: Bins, probs: Float[np.ndarray, "*batch bins"], levels: Float[np.ndarray, "*batch"]) -> Any:
    """The points on the line at which cdfs reach these levels, by what each bin holds: roots of parabolas."""
    pieces = bins.plain
    total = probs @ pieces.totals
    piece = (total[..., :-1] < levels[..., None]).sum(axis=-1)
    ends = np.broadcast_to(
        np.concatenate([np.zeros((*total.shape[:-1], 1)), total], -1), (*levels.shape, total.shape[-1] + 1)
    )
    below, reached = (np.take_along_axis(ends, at[..., None], -1)[..., 0] for at in (piece, piece + 1))
    start, end = ((probs * side.T[piece]).sum(axis=-1) for side in (pieces.left, pieces.right))
    length = pieces.lengths[piece]
    # From the end of (0, 1) that is nearer, so that levels next to it keep their digits.
    whole = (start + end) / 2
    from_below = (levels - below) / length
    wanted = np.where(levels < 0.5, from_below, whole - (reached - levels) / length)
    wanted = np.minimum(np.maximum(wanted, 0), whole)
    root = np.sqrt(np.maximum(start * start + 2 * (end - start) * wanted, 0))
    share = (2 * wanted / np.maximum(start + root, NARROWEST)).clip(0, 1)
    return bins.below(piece, share)


@dataclass(frozen=True, eq=False)
class Histogram(Curve):
    """A histogram by what each of its bins holds."""

    bins: Bins
    probs: NDArray[np.float64]

    def at(self, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        score, slope = self.bins.warp.forward_and_slope(points)
        below, height, bend, way = self._on_pieces(score)
        return below + way * (height + bend * way), (height + 2 * bend * way) * slope * np.exp(
            -0.5 * score * score - HALF_LOG_TWO_PI
        )

    def cdf(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        below, height, bend, way = self._on_pieces(self.bins.warp.forward_array(points))
        found: NDArray[np.float64] = below + way * (height + bend * way)
        return found

    def rule(
        self, low: float, high: float, steps: tuple[float, ...] = ()
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        points, inside = self.bins.rule_within(low, high, steps)
        return points.numpy(), self.probs @ inside.numpy()

    def _on_pieces(self, score: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """What lies below the pieces of these scores, the parabola of the cdf there, and how far along it they are."""
        pieces = self.bins.plain
        piece = pieces.inner.searchsorted(score, side="right")
        u = torch.special.ndtr(torch.from_numpy(score)).numpy()
        below, height, bend = self._table[:, piece]
        way = np.minimum(np.maximum(u - pieces.starts[piece], 0.0), pieces.lengths[piece])
        return below, height, bend, way

    def bracket(self, level: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        piece = self._table[0, 1:].searchsorted(level)
        return self.bins.plain.ends[piece], self.bins.plain.ends[piece + 1]

    @cached_property
    def _table(self) -> NDArray[np.float64]:
        """For every piece: what lies below, the density in u where it begins, and half its slope."""
        found: NDArray[np.float64] = (self.probs @ self.bins.plain.parabolas).reshape(3, -1)
        return found
