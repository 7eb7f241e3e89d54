"""A histogram with a smooth shape inside each bin: what a classifier over K bins says about a number.

A fixed warp w carries the line to normal scores, under which the variable looks standard normal before anything is
known. Between the edges e_k the density keeps that marginal shape, and K logits say how much of it each bin holds:

    p(z) = pi_k phi(w(z)) w'(z) / (Phi(w(e_{k+1})) - Phi(w(e_k)))   for z in bin k,   pi = softmax(logits).

The outer bins reach to infinity with the tails of the marginal. On a lattice the same cdf is cut into cells.
Boosted trees answer with this head, since trees can only tell bins apart; a network may use it too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.quadrature import composite
from anyorder.distributions.tails import log_normal_between
from anyorder.errors import UserError
from anyorder.heads._mixture import draw
from anyorder.heads.base import Head
from anyorder.variables.codecs import Space
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
REACH = 9.0  # normal scores beyond which nothing is left
GRID = tuple(step / 2 for step in range(-18, 19))  # panels no wider than half a standard deviation
MOST_POINTS = 4096  # up to so many lattice points are summed; beyond, an integral over the line stands for the sum


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of one variable, the same for every element of a batch."""

    edges: tuple[float, ...]
    warp: Warp
    lattice: Lattice | None

    @cached_property
    def scores(self) -> Float[Tensor, " bounds"]:
        """The normal scores of all K + 1 bounds, the outer ones infinite."""
        inner = self.warp.forward(torch.tensor(self.edges, dtype=torch.float64))
        end = torch.tensor([math.inf], dtype=torch.float64)
        return torch.cat([-end, inner, end])

    @cached_property
    def ends(self) -> Float[Tensor, " bounds"]:
        """All K + 1 bounds on the line, the outer ones where nothing is left beyond."""
        return self.warp.inverse(self.scores.clamp(-REACH, REACH))

    @cached_property
    def knots(self) -> Float[Tensor, " knots"]:
        """The normal scores where the warp bends: no rule is accurate across them."""
        return torch.tensor(self.warp.z, dtype=torch.float64)

    @cached_property
    def log_widths(self) -> Float[Tensor, " bins"]:
        """The log of what each bin holds before anything is known."""
        return log_normal_between(self.scores[:-1], self.scores[1:])

    def log_inside(self, low: float, high: float) -> Float[Tensor, " bins"]:
        """The log of the share of what each bin holds that lies between two bounds, before anything is known."""
        if (low, high) not in self._inside:
            ends = self.warp.forward(torch.tensor([low, high], dtype=torch.float64))
            inside = self.scores.clamp(float(ends[0]), float(ends[1]))
            meets = inside[1:] > inside[:-1]
            kept = log_normal_between(inside[:-1].where(meets, -1.0), inside[1:].where(meets, 1.0))
            self._inside[low, high] = (kept - self.log_widths).masked_fill(~meets, -math.inf)
        return self._inside[low, high]

    @cached_property
    def _inside(self) -> dict[tuple[float, float], Float[Tensor, " bins"]]:
        return {}

    @cached_property
    def rule(self) -> tuple[Float[Tensor, " nodes"], Float[Tensor, "bins nodes"]]:
        """Points on the line, and the weight of each under each bin's own distribution."""
        if self.lattice is not None:
            points = self._points()
            if points is not None:
                lower, upper = (self.warp.forward(edge) for edge in self.lattice.cell(points))
                lower, upper = lower[None].maximum(self.scores[:-1, None]), upper[None].minimum(self.scores[1:, None])
                inside = log_normal_between(lower.minimum(upper), upper).exp() * (lower < upper)
                return points, inside / inside.sum(dim=1, keepdim=True)
        breaks = torch.cat([self.scores[1:-1], self.knots, torch.tensor(GRID, dtype=torch.float64)])
        breaks = breaks.clamp(-REACH, REACH)
        nodes, weights = composite(breaks)
        mass = weights * torch.exp(-0.5 * nodes.square())
        bins = torch.bucketize(nodes, self.scores[1:-1])
        inside = mass * (bins == torch.arange(len(self.log_widths))[:, None])
        return self._on_lattice(self.warp.inverse(nodes)), inside / inside.sum(dim=1, keepdim=True)

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
class BinnedDistribution(Distribution):
    """A batch of histograms over the same bins."""

    logits: Float[Tensor, "*batch bins"]
    bins: Bins

    @property
    def discrete(self) -> bool:
        return self.bins.lattice is not None

    @property
    def lattice(self) -> Lattice | None:
        return self.bins.lattice

    @property
    def shape(self) -> torch.Size:
        return self.logits.shape[:-1]

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        if self.bins.lattice is not None:
            lower, upper = self.bins.lattice.cell(value.double())
            nats = self._log_between(self.bins.warp.forward(lower), self.bins.warp.forward(upper))
            return torch.where(self.bins.lattice.reaches(value), nats, self.bins.lattice.log_beyond(value)).to(
                self.logits.dtype
            )
        z = value.double()
        score = self.bins.warp.forward(z)
        density = -0.5 * score.square() - HALF_LOG_TWO_PI + self.bins.warp.log_slope(z)
        return (self._height(self._bin(score)) + density).to(self.logits.dtype)

    def log_between(self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        low, high = low.double(), high.double()
        if self.bins.lattice is not None:
            first, last = self.bins.lattice.index_below(low), self.bins.lattice.index_below(high)
            rounding = 1e-12 * low.abs().clamp(min=1)
            first = torch.where(self.bins.lattice.at(first) >= low - rounding, first, first + 1)
            none = last < first
            low, high = self.bins.lattice.edge(first - 1), self.bins.lattice.edge(torch.maximum(first, last))
            nats = self._log_between(self.bins.warp.forward(low), self.bins.warp.forward(high))
            return nats.masked_fill(none, -math.inf).to(self.logits.dtype)
        return self._log_between(self.bins.warp.forward(low), self.bins.warp.forward(high)).to(self.logits.dtype)

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        chosen = draw(self.logits, generator)
        share = torch.rand(self.shape, generator=generator, dtype=torch.float64, device=self.logits.device)
        return self._at(chosen, share).to(self.logits.dtype)

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        z = value.double()
        if self.bins.lattice is not None:
            z = self.bins.lattice.edge(self.bins.lattice.index_below(value))
        score = self.bins.warp.forward(z)
        chosen = self._bin(score)
        probs, before = self._added_up() if torch.is_grad_enabled() else self._kept
        below, held = (self._of(chosen, table) for table in (before, probs))
        reached = (below + held * self._share(chosen, score)).clamp(0, 1)
        return reached.masked_fill(score.isnan(), math.nan).to(self.logits.dtype)

    def _added_up(self) -> tuple[Float[Tensor, "*batch bins"], Float[Tensor, "*batch bins"]]:
        """The probability of every bin and of those below it."""
        probs = self.logits.double().softmax(-1)
        # Bins below are added up from the lowest on, so that a far tail keeps its digits.
        return probs, F.pad(probs.cumsum(-1)[..., :-1], (1, 0))

    @cached_property
    def _kept(self) -> tuple[Float[Tensor, "*batch bins"], Float[Tensor, "*batch bins"]]:
        return self._added_up()  # searches ask for it at every step; kept only where no gradient could be lost with it

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        shape = np.broadcast_shapes(level.shape, self.shape)
        level = level.double().expand(shape)
        probs = self.logits.double().softmax(-1)
        total = probs.cumsum(-1).expand(*shape, -1)
        chosen = (total[..., :-1] < level[..., None]).sum(-1)
        held = probs.expand(*shape, -1).gather(-1, chosen[..., None])[..., 0]
        reached = total.gather(-1, chosen[..., None])[..., 0]
        share = 1 - ((reached - level) / held.clamp(min=1e-300)).clamp(0, 1)
        z = self._at(chosen, share)
        z = z.masked_fill(level <= 0, -math.inf).masked_fill(level >= 1, math.inf)
        if self.bins.lattice is not None and self.bins.lattice.count is not None:
            ends = self.bins.lattice.at(torch.tensor([0.0, self.bins.lattice.count - 1.0], dtype=torch.float64))
            z = z.clamp(*ends.tolist())
        return z.masked_fill(~((level >= 0) & (level <= 1)), math.nan).to(self.logits.dtype)

    @torch.no_grad()
    def bracket(self, level: Float[Tensor, "*batch"]) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        """The bounds of the bin that the quantile lies in."""
        level = level.double()
        probs, before = self._kept
        chosen = ((before + probs)[..., :-1] < level[..., None]).sum(-1)
        ends = self.bins.ends.to(level.device)
        low, high = (
            end.masked_fill(level <= 0, -math.inf)
            .masked_fill(~(level < 1), math.inf)
            .masked_fill(level.isnan(), math.nan)
            for end in (ends[chosen], ends[chosen + 1])
        )
        if self.bins.lattice is not None and self.bins.lattice.count is not None:
            points = self.bins.lattice.at(torch.tensor([0.0, self.bins.lattice.count - 1.0], dtype=torch.float64))
            low, high = low.clamp(*points.tolist()), high.clamp(*points.tolist())
        return low, high

    def nodes(
        self, low: float, high: float
    ) -> tuple[Float[Tensor, "*batch nodes"], Float[Tensor, "*batch nodes"]] | None:
        if self.bins.lattice is not None:
            return None
        ends = self.bins.warp.forward(torch.tensor([low, high], dtype=torch.float64)).clamp(-REACH, REACH)
        grid = torch.linspace(float(ends[0]), float(ends[1]), 37, dtype=torch.float64)
        breaks = torch.cat([self.bins.scores[1:-1], self.bins.knots, grid])
        scores, weights = composite(breaks, float(ends[0]), float(ends[1]))
        z = self.bins.warp.inverse(scores)
        weights = weights * torch.exp(-self.bins.warp.log_slope(z))  # dz = ds / w'(z)
        return z.expand(*self.shape, -1), weights.expand(*self.shape, -1)

    def mean(self) -> Float[Tensor, "*batch"]:
        return self.expect(lambda z: z).to(self.logits.dtype)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """The mean of a function within each bin does not depend on the logits: one small table for the whole batch."""
        points, weights = self.bins.rule
        table = (weights * function(points)).sum(dim=1).to(self.logits.device)
        return (self.logits.double().softmax(-1) * table).sum(-1)

    def entropy(self) -> Float[Tensor, "*batch"]:
        """That of the bins, and the mean of that inside each bin."""
        points, weights = self.bins.rule
        alone = BinnedDistribution(torch.zeros(len(self.bins.log_widths), dtype=torch.float64), self.bins)
        # log p of a point within its own bin: its log-probability without the weight that the logits give the bin.
        inside = alone.log_prob(points) + math.log(len(self.bins.log_widths))
        table = -(weights * inside).sum(dim=1).to(self.logits.device)
        log_probs = self.logits.double().log_softmax(-1)
        return (log_probs.exp() * (table - log_probs)).sum(-1).to(self.logits.dtype)

    def _bin(self, score: Float[Tensor, "*batch"]) -> Int[Tensor, "*batch"]:
        return torch.bucketize(score.contiguous(), self.bins.scores[1:-1].to(score.device), right=True)

    def _height(self, chosen: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """log (pi_k / width_k) of these bins."""
        return self._of(chosen, self.logits.double().log_softmax(-1) - self.bins.log_widths.to(self.logits.device))

    def _of(self, chosen: Int[Tensor, "*batch"], table: Float[Tensor, "*batch bins"]) -> Float[Tensor, "*batch"]:
        """What a table, with a row for each element, says of these bins."""
        if math.prod(self.shape) == 1 and chosen.ndim >= len(self.shape):
            return table.reshape(-1)[chosen]
        shape = np.broadcast_shapes(chosen.shape, self.shape)
        return table.expand(*shape, -1).gather(-1, chosen.expand(shape)[..., None])[..., 0]

    def _share(self, chosen: Int[Tensor, "*batch"], score: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """How much of what a bin holds lies below a normal score within it."""
        start = self.bins.scores.to(score.device)[chosen]
        inside = score > start
        log_part = log_normal_between(torch.where(inside, start, -1.0), torch.where(inside, score, 1.0))
        return (log_part - self.bins.log_widths.to(score.device)[chosen]).exp().masked_fill(~inside, 0.0)

    def _log_between(self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """log P of the line between two normal scores, bin by bin, so that a far tail keeps its digits."""
        bounds = self.bins.scores.to(self.logits.device)
        chosen = self._bin(low)
        if bool(((low < high) & (high <= bounds[chosen + 1])).all()):  # as it is with cells of a lattice
            return self._height(chosen) + log_normal_between(low, high)
        lower, upper = low[..., None].maximum(bounds[:-1]), high[..., None].minimum(bounds[1:])
        meets = lower < upper
        share = log_normal_between(torch.where(meets, lower, bounds[:-1]), torch.where(meets, upper, bounds[1:]))
        heights = self.logits.double().log_softmax(-1) - self.bins.log_widths.to(self.logits.device)
        return (heights + share.masked_fill(~meets, -math.inf)).logsumexp(-1)

    def _at(self, chosen: Int[Tensor, "*batch"], share: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The point in a bin below which ``share`` of what the bin holds lies."""
        bounds = self.bins.scores.to(share.device)
        low, high = bounds[chosen], bounds[chosen + 1]
        # Taken from the side of the median, so that far tails keep their digits.
        upper = low + high > 0
        near, far = torch.where(upper, -high, low), torch.where(upper, -low, high)
        share = torch.where(upper, 1 - share, share)
        level = torch.special.ndtr(near) + share * (torch.special.ndtr(far) - torch.special.ndtr(near))
        score = torch.special.ndtri(level).clamp(-REACH, REACH)
        z = self.bins.warp.inverse(torch.where(upper, -score, score))
        return z if self.bins.lattice is None else self.bins.lattice.nearest(z)


@dataclass(eq=False)
class Binned(Head):
    """One feature per bin: its logit. ``edges`` part the bins and ``warp`` gives normal scores, both in model units."""

    name: ClassVar[str] = "binned"
    space: ClassVar[Space] = Space.LATTICE

    edges: tuple[float, ...] = (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5)
    warp: Warp | Mapping[str, Any] | None = None
    lattice: Lattice | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.edges = tuple(float(edge) for edge in self.edges)
        if not self.edges or not all(low < high for low, high in pairwise(self.edges)):
            raise UserError(f"the edges of a binned head must be one or more rising numbers, got {self.edges}")
        if isinstance(self.warp, Mapping):  # as it comes out of a model file
            self.warp = Warp(**self.warp)
        if not isinstance(self.warp, Warp | None):
            raise UserError(f"the warp of a binned head needs x, z and slope, got {self.warp!r:.80}")
        if self.lattice is not None:
            self.lattice = Lattice.read(self.lattice)
        self.bins = Bins(self.edges, self.warp or Warp.affine(0.0, 1.0), self.lattice)

    @classmethod
    def fit(
        cls,
        values: Float[np.ndarray, " rows"],
        bins: int,
        shift: float = 0.5,
        lattice: Lattice | None = None,
        warp: Warp | None = None,
    ) -> Binned:
        """Bins of equal counts of ``values``, in model units; one for each value where these are no more than ``bins``.

        ``shift`` in [0, 1) moves the edges by that share of a bin, so that several heads can differ. ``warp`` gives
        their normal scores; found from ``values`` if it is None.
        """
        warp = warp or Warp.normal_scores(values)
        seen = np.unique(values)
        if lattice is not None and len(seen) <= bins:
            return cls(_cells_of(lattice, seen) or cls.edges, warp, lattice)
        if len(seen) <= bins:
            edges = (seen[1:] + seen[:-1]) / 2 if len(seen) > 1 else seen
        else:
            levels = (np.arange(bins) + shift) / bins
            edges = np.unique(np.quantile(values, levels[(levels > 0.25 / bins) & (levels < 1 - 0.25 / bins)]))
        if lattice is not None:
            # Between two points: a bin then holds whole cells.
            index = lattice.index_reaching(torch.as_tensor(edges))
            edges = np.unique(lattice.edge(index).numpy())
            edges = edges[np.isfinite(edges)]
        return cls(tuple(edges.tolist()) or cls.edges, warp, lattice)

    @property
    def points(self) -> Lattice | None:
        return self.bins.lattice

    @property
    def size(self) -> int:
        return len(self.edges) + 1

    def classes(self, values: Float[Tensor, "*batch"]) -> tuple[Int[Tensor, "*batch"], int]:
        edges = torch.tensor(self.edges, dtype=torch.float64)
        return torch.bucketize(values.double(), edges, right=True), self.size

    def forward(self, features: Float[Tensor, "*batch size"]) -> BinnedDistribution:
        return BinnedDistribution(features, self.bins)

    def start(self) -> Float[Tensor, " size"]:
        """The marginal itself."""
        return self.bins.log_widths.float()


def _cells_of(lattice: Lattice, seen: Float[np.ndarray, " values"]) -> tuple[float, ...]:
    """Edges that give every value seen a bin, those at the ends too: what lies beyond was never seen.

    Found by the numbers of the points: half way between two neighbours lies an edge, which rounding must not decide.
    """
    index = lattice.index(torch.as_tensor(seen))
    between = torch.floor((index[:-1] + index[1:]) / 2 - 0.25)
    edges = lattice.edge(torch.cat([index[:1] - 1, between, index[-1:]]))
    return tuple(edges[edges.isfinite()].tolist())
