r"""A histogram whose edges may be soft: what a classifier over K bins says about a number.

With the bins of :mod:`anyorder.heads.bins`, a warp w to normal scores and u = Phi(w(z)), K logits say how much each bin
holds:

    p(z) = sum_k pi_k B_k(u) phi(w(z)) w'(z),   pi = softmax(logits).

The density is linear in u between breakpoints, and continuous where the edges are soft: its cdf is a piece of a
parabola, its quantile the root of one. Boosted trees answer with this head, since trees can only tell bins apart; a
network may use it too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.curves import Curve
from anyorder.distributions.quadrature import composite, in_parts
from anyorder.distributions.tails import log_normal_between
from anyorder.errors import UserError
from anyorder.heads.base import Head
from anyorder.heads.bins import HALF_LOG_TWO_PI, NARROWEST, REACH, Bins, Histogram, reaching
from anyorder.support.checks import inside
from anyorder.variables.codecs import Space
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp


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
        piece = self.bins.piece(score)
        start, end = (self._of(piece, table) for table in self._heights())
        height = start if self.bins.flat else torch.lerp(start, end, self.bins.share(piece, score))
        return (_log(height) + density).to(self.logits.dtype)

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

    def within(self, low: float, high: float) -> Float[Tensor, "*batch"]:
        """P of the line between two model values that are asked for again and again: a sum over the bins."""
        return self._probs() @ self.bins.held_within(low, high).to(self.logits.device)

    def log_within(self, low: float, high: float) -> Float[Tensor, "*batch"]:
        """log P of the line between two model values; see :meth:`within`."""
        return _log(self.within(low, high)).to(self.logits.dtype)

    def within_each(self, *stretches: tuple[float, float]) -> Float[Tensor, "stretches *batch"]:
        """P of the line between pairs of model values, as :meth:`within` has it for one."""
        held = torch.stack([self.bins.held_within(*ends) for ends in stretches], dim=1)
        return (self._probs() @ held.to(self.logits.device)).movedim(-1, 0)

    def outside(self, low: float, high: float) -> Float[Tensor, "two *batch"]:
        # The values lie where the cells of a lattice end, if there is one.
        return self.within_each((-math.inf, low), (high, math.inf))

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        level = torch.rand(self.shape, generator=generator, dtype=torch.float64, device=self.logits.device)
        return self._on_lattice(self._reaching(level)).to(self.logits.dtype)

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        z = value.double()
        if self.bins.lattice is not None:
            z = self.bins.lattice.edge(self.bins.lattice.index_below(value))
        score = self.bins.warp.forward(z)
        piece = self.bins.piece(score)
        left, right = self._heights()
        # Pieces below are added up from the lowest on, so that a far tail keeps its digits.
        before = F.pad(self._masses().cumsum(-1)[..., :-1], (1, 0))
        below, start, end = (self._of(piece, table) for table in (before, left, right))
        share, length = self.bins.share(piece, score), self.bins.lengths.to(score.device)[piece]
        reached = (below + length * share * torch.lerp(start, end, share / 2)).clamp(0, 1)
        return reached.masked_fill(score.isnan(), math.nan).to(self.logits.dtype)

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        z = self._on_lattice(self._reaching(level.double()))
        z = z.masked_fill(level <= 0, -math.inf).masked_fill(level >= 1, math.inf)
        if self.bins.lattice is not None and self.bins.lattice.count is not None:
            ends = self.bins.lattice.at(torch.tensor([0.0, self.bins.lattice.count - 1.0], dtype=torch.float64))
            z = z.clamp(*ends.tolist())
        return z.masked_fill(~((level >= 0) & (level <= 1)), math.nan).to(self.logits.dtype)

    @torch.no_grad()
    def bracket(self, level: Float[Tensor, "*batch"]) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        """The ends of the piece that the quantile lies on."""
        level = level.double()
        piece = (self._masses().cumsum(-1)[..., :-1] < level[..., None]).sum(-1)
        ends = self.bins.ends.to(level.device)
        low, high = (
            end.masked_fill(level <= 0, -math.inf)
            .masked_fill(~(level < 1), math.inf)
            .masked_fill(level.isnan(), math.nan)
            for end in (ends[piece], ends[piece + 1])
        )
        if self.bins.lattice is not None and self.bins.lattice.count is not None:
            points = self.bins.lattice.at(torch.tensor([0.0, self.bins.lattice.count - 1.0], dtype=torch.float64))
            low, high = low.clamp(*points.tolist()), high.clamp(*points.tolist())
        return low, high

    def curve(self) -> Curve | None:
        """The histogram before it is cut into cells; None for a batch of several."""
        if math.prod(self.shape) != 1 or torch.is_grad_enabled():
            return None
        return Histogram(self.bins, self._probs().cpu().numpy().reshape(-1))

    def _reaching(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The point on the line at which the cdf reaches a level."""
        # Many small steps, which are quicker in NumPy than in torch.
        levels = level.expand(np.broadcast_shapes(level.shape, self.shape)).cpu().numpy()
        found = reaching(self.bins, self._probs().cpu().numpy(), levels)
        return torch.from_numpy(np.asarray(found)).to(level.device)

    def nodes(
        self, low: float, high: float
    ) -> tuple[Float[Tensor, "*batch nodes"], Float[Tensor, "*batch nodes"]] | None:
        if self.bins.lattice is not None:
            return None
        ends = self.bins.warp.forward(torch.tensor([low, high], dtype=torch.float64)).clamp(-REACH, REACH)
        grid = torch.linspace(float(ends[0]), float(ends[1]), 37, dtype=torch.float64)
        breaks = torch.cat([self.bins.breaks[1:-1], self.bins.knots, grid])
        scores, weights = composite(breaks, float(ends[0]), float(ends[1]))
        z = self.bins.warp.inverse(scores)
        weights = weights * torch.exp(-self.bins.warp.log_slope(z))  # dz = ds / w'(z)
        return z.expand(*self.shape, -1), weights.expand(*self.shape, -1)

    def mean(self) -> Float[Tensor, "*batch"]:
        return self.expect(lambda z: z).to(self.logits.dtype)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """The mean of a function within each bin does not depend on the logits: one small table for the whole batch."""
        points, weights, _ = self.bins.rule
        table = (weights * function(points)).sum(dim=1).to(self.logits.device)
        return (self.logits.double().softmax(-1) * table).sum(-1)

    def expect_within(
        self, function: Callable[[Tensor], Tensor], low: float, high: float, steps: tuple[float, ...] = ()
    ) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]] | None:
        if self.bins.lattice is not None:
            return None
        points, weights = self.bins.rule_within(low, high, steps)
        tables = torch.stack([(weights * function(points)).sum(dim=1), weights.sum(dim=1)], dim=1)
        total, mass = (self.logits.double().softmax(-1) @ tables.to(self.logits.device)).unbind(-1)
        return total, mass

    def entropy(self) -> Float[Tensor, "*batch"]:
        """The mean of -log p over the rule of all bins, at whose nodes both are sums over the bins."""
        points, weights, marginal = self.bins.rule
        if self.bins.lattice is None:
            score = self.bins.warp.forward(points)
            base = -0.5 * score.square() - HALF_LOG_TWO_PI + self.bins.warp.log_slope(points)
        elif bool((marginal == 1).all()):  # every point of the lattice
            base = torch.zeros_like(points)
        else:
            lower, upper = (self.bins.warp.forward(edge) for edge in self.bins.lattice.cell(points))
            base = log_normal_between(lower, upper)
        weights, marginal, base = (part.to(self.logits.device) for part in (weights, marginal, base))

        def surprise(logits: Tensor) -> Tensor:
            mass = logits.double().softmax(-1) @ weights
            return -(mass * (_log(mass / marginal.clamp(min=NARROWEST)) + base)).sum(-1)

        return in_parts(surprise, 4 * len(points), self.logits).to(self.logits.dtype)

    def _heights(self) -> tuple[Float[Tensor, "*batch pieces"], Float[Tensor, "*batch pieces"]]:
        """The density in u at either end of every piece."""
        # Searches ask for it at every step; it is kept only where no gradient could be lost with it.
        return self._made_heights() if torch.is_grad_enabled() else self._kept_heights

    def _made_heights(self) -> tuple[Tensor, Tensor]:
        probs, device = self._probs(), self.logits.device
        left = probs @ self.bins.left.to(device)
        return left, left if self.bins.flat else probs @ self.bins.right.to(device)

    def _probs(self) -> Float[Tensor, "*batch bins"]:
        """What each bin holds; kept as :meth:`_heights` is."""
        return self.logits.double().softmax(-1) if torch.is_grad_enabled() else self._kept_probs

    @cached_property
    def _kept_probs(self) -> Tensor:
        return self.logits.double().softmax(-1)

    @cached_property
    def _kept_heights(self) -> tuple[Tensor, Tensor]:
        return self._made_heights()

    def _masses(self) -> Float[Tensor, "*batch pieces"]:
        left, right = self._heights()
        return (left + right) / 2 * self.bins.lengths.to(self.logits.device)

    def _of(self, chosen: Int[Tensor, "*batch"], table: Float[Tensor, "*batch pieces"]) -> Float[Tensor, "*batch"]:
        """What a table, with a row for each element, says of these pieces."""
        if math.prod(self.shape) == 1 and chosen.ndim >= len(self.shape):
            return table.reshape(-1)[chosen]
        shape = np.broadcast_shapes(chosen.shape, self.shape)
        return table.expand(*shape, -1).gather(-1, chosen.expand(shape)[..., None])[..., 0]

    def _log_between(self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """log P of the line between two normal scores, in parts that are added up, so that a far tail keeps its digits.

        Those are the rest of the piece where it begins, whole pieces, and the beginning of the piece where it ends.
        """
        bins, (left, right) = self.bins, self._heights()
        breaks = bins.breaks.to(low.device)
        first, last = bins.piece(low), bins.piece(high)
        same = first == last
        begin = torch.lerp(self._of(first, left), self._of(first, right), self._middle(first, low, high, same))
        nats = _log(begin) + log_normal_between(low, torch.where(same, high, breaks[first + 1]))
        nats = nats.masked_fill(same & (low >= high), -math.inf)
        if bool(same.all()):  # as it is with the cells of a lattice
            return nats
        start = breaks[last]
        ends = ~same & (high > start)
        finish = torch.lerp(self._of(last, left), self._of(last, right), self._middle(last, start, high, ends))
        part = _log(finish) + log_normal_between(torch.where(ends, start, -1.0), torch.where(ends, high, 1.0))
        numbers = torch.arange(len(breaks) - 1, device=low.device)
        whole = (numbers > first[..., None]) & (numbers < last[..., None])
        between = _log(self._masses()).masked_fill(~whole, -math.inf)
        parts = torch.cat([between, torch.stack([nats, part.masked_fill(~ends, -math.inf)], -1)], -1)
        return parts.logsumexp(-1)

    def _middle(
        self, piece: Int[Tensor, "*batch"], low: Tensor, high: Tensor, ends: Bool[Tensor, "*batch"]
    ) -> Float[Tensor, "*batch"]:
        """Where on a piece the middle of a part lies, from ``low`` to ``high`` or, unless it ``ends``, all the rest."""
        if self.bins.flat:
            return torch.zeros((), dtype=torch.float64, device=low.device)
        upto = self.bins.share(piece, high) if bool(ends.any()) else torch.ones_like(low)
        return (self.bins.share(piece, low) + upto.where(ends, 1.0)) / 2

    def _on_lattice(self, z: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return z if self.bins.lattice is None else self.bins.lattice.nearest(z)


def _log(height: Tensor) -> Tensor:
    return height.clamp(min=torch.finfo(torch.float64).tiny).log()


@dataclass(eq=False)
class Binned(Head):
    """One feature per bin: its logit. ``edges`` part the bins and ``warp`` gives normal scores, both in model units."""

    name: ClassVar[str] = "binned"
    space: ClassVar[Space] = Space.LATTICE

    edges: tuple[float, ...] = (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5)
    warp: Warp | Mapping[str, Any] | None = None
    lattice: Lattice | Mapping[str, Any] | None = None
    blur: float = field(default=0.0, metadata={"later": True})

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
        if not inside(self.blur, "[0, 1]"):
            raise UserError(f"the blur of a binned head must be a share in [0, 1], got {self.blur!r:.80}")
        self.bins = Bins.parted(self.edges, self.warp or Warp.affine(0.0, 1.0), self.lattice, self.blur)

    def blurred(self, blur: float) -> Binned:
        """The head with other ramps between its bins, for the same features."""
        return Binned(self.edges, self.warp, self.lattice, blur)

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
        scores = self.bins.warp.forward(torch.tensor(self.edges, dtype=torch.float64))
        scores = F.pad(F.pad(scores, (1, 0), value=-math.inf), (0, 1), value=math.inf)
        return log_normal_between(scores[:-1], scores[1:]).float()


def _cells_of(lattice: Lattice, seen: Float[np.ndarray, " values"]) -> tuple[float, ...]:
    """Edges that give every value seen a bin, those at the ends too: what lies beyond was never seen.

    Found by the numbers of the points: half way between two neighbours lies an edge, which rounding must not decide.
    """
    index = lattice.index(torch.as_tensor(seen))
    between = torch.floor((index[:-1] + index[1:]) / 2 - 0.25)
    edges = lattice.edge(torch.cat([index[:1] - 1, between, index[-1:]]))
    return tuple(edges[edges.isfinite()].tolist())
