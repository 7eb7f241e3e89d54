"""A family cut off at bounds: p(x) = base(x) / base([low, high]) inside, 0 outside.

The mass inside may be small (a base whose bulk has moved outside), so it is kept as a logarithm from the start
(:meth:`~.base.Distribution.log_between`): the density stays finite, and its gradient leads the bulk back inside.
Over a base on a lattice the points within the bounds share all the probability. Over a histogram the outer bins end at
the bounds: a bin keeps the probability that its feature says, and only its shape is cut.

Bounds that are not ``firm`` were read off the data. Nothing is drawn beyond them, and no probability is counted there,
but a value that lies there all the same is not impossible: its density is 1e-12 exp(-distance), which is less than what
rounding makes of any probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.distributions.base import Distribution, End
from anyorder.distributions.curves import Between, Curve
from anyorder.distributions.quadrature import composite
from anyorder.errors import UserError
from anyorder.heads.base import Head
from anyorder.heads.binned import BinnedDistribution
from anyorder.support.checks import inside
from anyorder.support.roots import SHARP, bracket_end, first_crossing
from anyorder.variables.lattice import LOG_WRONG, Lattice

# Where bounds may lie, in model units: single precision can hold them, and they do not rule out all that was learned.
LOWER, UPPER = "[-1e30, 1e6]", "[-1e6, 1e30]"
LITTLE = 1e-3  # below this mass inside, a base's own quantile has too few digits left
LOG_LITTLE = math.log(LITTLE)
LEVELS = (0.0, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.15, 0.3)  # panel edges in levels, and their mirror image
NODES = 32
LEFT_OUT = 1e-10  # probability beyond the points that are summed, on either side
MOST_POINTS = 4096


@dataclass(frozen=True, eq=False)
class BoundedDistribution(Distribution):
    """A batch of cut families, in model units; an end may be infinite."""

    base: Distribution
    low: float
    high: float
    dtype: torch.dtype
    device: torch.device
    firm: bool = True
    log_inside: Float[Tensor, "*batch"] | None = None  # what the bounds leave of the base, where that is known already

    @property
    def discrete(self) -> bool:
        return self.base.discrete

    @property
    def shape(self) -> torch.Size:
        return self.base.shape

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        inside = self._inside(value)
        # Outside, the base is asked for a value inside: what is masked must have a gradient too.
        log_prob = self.base.log_prob(value.clamp(self.low, self.high)) - self.log_mass()
        if self.firm:
            return log_prob.masked_fill(~inside, -math.inf)
        return torch.where(inside, log_prob, LOG_WRONG - (value - value.clamp(self.low, self.high)).abs())

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        level = torch.rand(self.shape, generator=generator, dtype=torch.float64, device=self.device)
        return self.quantile(level)

    def sample_within(
        self, low: End, high: End, generator: torch.Generator | None = None
    ) -> Float[Tensor, "*batch"] | None:
        if bool((self.log_mass() < LOG_LITTLE).any()):
            return None
        low = low.clamp(min=self.low) if isinstance(low, Tensor) else max(low, self.low)
        high = high.clamp(max=self.high) if isinstance(high, Tensor) else min(high, self.high)
        return self.base.sample_within(low, high, generator)

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        at = value.clamp(self.low, self.high)
        reached = self._reached(at)
        # An exact zero below and one above, whatever rounding made of the mass.
        below = ~self._inside(value) & (value < self.low)
        return reached.clamp(0, 1).masked_fill(below, 0.0).masked_fill(value >= self.high, 1.0)

    def _reached(self, at: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """P(low <= X <= at) of a value between the bounds."""
        log_mass = self.log_mass()
        plain = at.dtype == torch.float64 and not torch.is_grad_enabled() and not self.discrete
        if plain and bool((log_mass > LOG_LITTLE).all()):
            # A difference of cdfs has digits enough then, and logarithms cost several times as much.
            # One value is all that is asked of each element below, however many are asked at.
            first = at[:1] if at.ndim > len(self.shape) else at
            before = self.base.cdf(torch.full_like(first, self.low)) if math.isfinite(self.low) else 0.0
            return (self.base.cdf(at) - before) * (-log_mass).exp()
        return (self.base.log_between(torch.full_like(at, self.low), at) - log_mass).exp()

    def log_between(self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        start, end = low.clamp(self.low, self.high), high.clamp(self.low, self.high)
        nothing = (high < self.low) | (low > self.high)
        if not self.discrete:
            nothing = nothing | (end <= start)
        nats = self.base.log_between(start, torch.where(nothing, math.inf, end)) - self.log_mass()
        return nats.clamp(max=0).masked_fill(nothing, -math.inf)

    def outside(self, low: float, high: float) -> Float[Tensor, "two *batch"]:
        if self.discrete or bool((self.log_mass() < LOG_LITTLE).any()):
            return super().outside(low, high)
        low, high = max(low, self.low), min(high, self.high)
        if isinstance(self.base, BinnedDistribution):
            beyond = self.base.within_each((self.low, low), (high, self.high))
        else:
            first, last = math.isfinite(self.low), math.isfinite(self.high)
            at = [self.low if first else low, low, high, self.high if last else high]
            values = torch.tensor(at, dtype=torch.float64, device=self.device).reshape(4, *[1] * len(self.shape))
            start, below, upto, end = self.base.cdf(values.expand(4, *self.shape)).double().unbind(0)
            beyond = torch.stack([below - start * first, (end if last else 1) - upto])
        return (beyond * (-self.log_mass().double()).exp()).clamp(0, 1)

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The base's quantile at the level inside; by a search where little mass is inside. Carries no gradient."""
        mass = self.log_mass().double().exp()
        start = self._below() if math.isfinite(self.low) else torch.zeros_like(mass)
        whole = (start + level.double().clamp(0, 1) * mass).clamp(0, 1)
        value = self.base.quantile(whole).double()
        few = mass.expand(whole.shape) < LITTLE
        if bool(few.any()):
            value = torch.where(few, self._by_search(level), value)
        value = value.clamp(self.low, self.high).masked_fill(level == 1, self.high)
        return value.masked_fill(~((level >= 0) & (level <= 1)), math.nan).to(self.dtype).clamp(self.low, self.high)

    def curve(self) -> Curve | None:
        base = None if self.discrete else self.base.curve()
        if base is None or float(self.log_mass()) < LOG_LITTLE:
            return None
        below = float(base.at(np.array([self.low]))[0][0]) if math.isfinite(self.low) else 0.0
        return Between(base, self.low, self.high, below, math.exp(float(self.log_mass())))

    def mean(self) -> Float[Tensor, "*batch"]:
        return self.expect(lambda values: values).to(self.dtype)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """By the base's own quadrature inside the bounds, or over its lattice; without ``fine``, over quantiles."""
        points = self._points() if self.discrete and fine else None
        if points is not None:
            return (self._at_many(points).double().exp() * function(points)).sum(-1)
        if not fine or self.discrete:
            return self._over_quantiles(function, fine)
        # Where next to nothing is inside, only a rule for the far tail sees it.
        inside = (
            None
            if bool((self.log_mass() < LOG_LITTLE).any())
            else self.base.expect_within(function, self.low, self.high)
        )
        if inside is not None:
            return inside[0] / inside[1]
        return self._integrate(lambda values, log_density: function(values))

    def expect_within(
        self, function: Callable[[Tensor], Tensor], low: float, high: float, steps: tuple[float, ...] = ()
    ) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]] | None:
        if self.discrete or bool((self.log_mass() < LOG_LITTLE).any()):
            return None
        least, most = max(low, self.low), min(high, self.high)
        if not least < most:
            nothing = torch.zeros(self.shape, dtype=torch.float64, device=self.device)
            return nothing, nothing
        found = self.base.expect_within(function, least, most, steps)
        scale = (-self.log_mass().double()).exp()
        return None if found is None else (found[0] * scale, found[1] * scale)

    def entropy(self) -> Float[Tensor, "*batch"]:
        points = self._points() if self.discrete else None
        if points is not None:
            log_mass = self._at_many(points).double()
            return -(log_mass.exp() * log_mass.clamp(min=-1e300)).sum(-1).to(self.dtype)
        if self.discrete:
            return self._over_quantiles(lambda values: -self._at_many(values).double(), True).to(self.dtype)
        return self._integrate(lambda values, log_density: -log_density).to(self.dtype)

    def nodes(
        self, low: float, high: float
    ) -> tuple[Float[Tensor, "*batch nodes"], Float[Tensor, "*batch nodes"]] | None:
        return self.base.nodes(max(low, self.low), min(high, self.high))

    def _integrate(self, function: Callable[[Tensor, Tensor], Tensor]) -> Float[Tensor, "*batch"]:
        rule = self.base.nodes(self.low, self.high)
        if rule is None:
            return self._over_quantiles(lambda values: function(values, self._at_many(values)), True)
        points, weights = rule
        log_density = self._at_many(points).double()
        share = weights * log_density.exp()
        # Divided by what the rule finds in all: where the mass inside is a far tail, the rule sees little else.
        return (share * function(points, log_density)).sum(-1) / share.sum(-1)

    def _over_quantiles(self, function: Callable[[Tensor], Tensor], fine: bool) -> Float[Tensor, "*batch"]:
        """The mean of ``function`` over levels: all values of the lattice, or of the line, by their probability."""
        device = self.device
        if fine:
            edges = torch.tensor([*LEVELS, *(1 - level for level in LEVELS)], dtype=torch.float64, device=device)
            levels, weights = composite(edges)
        else:
            levels = (torch.arange(NODES, dtype=torch.float64, device=device) + 0.5) / NODES
            weights = torch.full_like(levels, 1 / NODES)
        values = torch.stack([self.quantile(level.expand(self.shape)) for level in levels], dim=-1).double()
        return (weights * function(values)).sum(-1)

    @torch.no_grad()
    def _points(self) -> Float[Tensor, "*batch points"] | None:
        """All lattice points that hold nearly all mass; None where there are too many to list or no lattice."""
        lattice = getattr(self.base, "lattice", None)
        if not isinstance(lattice, Lattice):
            return None
        level = torch.full(self.shape, LEFT_OUT, dtype=torch.float64, device=self.device)
        first, last = (lattice.index(self.quantile(end).double()) for end in (level, 1 - level))
        count = int((last - first).max()) + 1 if first.numel() else 1
        if count > MOST_POINTS:
            return None
        index = first[..., None] + torch.arange(count, dtype=torch.float64, device=self.device)
        return lattice.at(index)

    def _at_many(self, points: Float[Tensor, "*batch points"]) -> Float[Tensor, "*batch points"]:
        """log p at several points of each element."""
        return self.log_prob(points.movedim(-1, 0)).movedim(0, -1)

    def _by_search(self, level: Tensor) -> Tensor:
        def excess(value: Tensor) -> Tensor:
            return self.cdf(value.to(self.dtype)).double() - level

        shape = np.broadcast_shapes(level.shape, self.shape)
        low = torch.full(shape, self.low, dtype=torch.float64, device=self.device)
        high = torch.full(shape, self.high, dtype=torch.float64, device=self.device)
        if math.isinf(self.high):
            high = bracket_end(excess, low, upward=True)
        elif math.isinf(self.low):
            low = bracket_end(excess, high, upward=False)
        return first_crossing(excess, low, high, SHARP)

    def _below(self) -> Float[Tensor, "*batch"]:
        """P(X < low) of the base."""
        if isinstance(self.base, BinnedDistribution) and not self.discrete:
            return self.base.within(-math.inf, self.low)
        return (self.base.cdf(self._end(self.low)) - self.base.mass_at(self._end(self.low))).double()

    def _inside(self, value: Tensor) -> Bool[Tensor, "*batch"]:
        # A bound as float64 and the same bound as float32 are both at the bound.
        slack = 4 * torch.finfo(value.dtype).eps
        low = self.low - slack * max(1.0, abs(self.low)) if math.isfinite(self.low) else self.low
        high = self.high + slack * max(1.0, abs(self.high)) if math.isfinite(self.high) else self.high
        return (value >= low) & (value <= high)

    def log_mass(self) -> Float[Tensor, "*batch"]:
        """The logarithm of what the bounds leave of the base."""
        if self.log_inside is not None:
            return self.log_inside
        # Searches ask for it at every step; it is kept only where no gradient could be lost with it.
        return self._inner_mass() if torch.is_grad_enabled() else self._kept_mass

    def _inner_mass(self) -> Float[Tensor, "*batch"]:
        within = None if self.discrete else self.base.log_within(self.low, self.high)
        return self.base.log_between(self._end(self.low), self._end(self.high)) if within is None else within

    @cached_property
    def _kept_mass(self) -> Float[Tensor, "*batch"]:
        return self._inner_mass()

    def _end(self, end: float) -> Tensor:
        return torch.full(self.shape, end, dtype=self.dtype, device=self.device)


@dataclass(eq=False)
class Bounded(Head):
    """The features of ``base``; ``low`` and ``high`` in model units, None where there is no bound."""

    name: ClassVar[str] = "bounded"
    wraps: ClassVar[bool] = True

    base: Head
    low: float | None = None
    high: float | None = None
    firm: bool = field(default=True, metadata={"later": True})

    def __post_init__(self) -> None:
        if not isinstance(self.base, Head) or self.base.levels:
            raise UserError(f"a bounded head needs a base head for numbers on a line, got {self.base!r}")
        for end, where in ((self.low, LOWER), (self.high, UPPER)):
            if end is not None and not inside(end, where):
                raise UserError(f"a bound must be a number in {where} or None, got {end!r:.80}")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise UserError(f"the lower bound must be below the upper one, got {self.low} and {self.high}")
        if not isinstance(self.firm, bool):
            raise UserError(f"bounds are firm or not, got {self.firm!r:.80}")

    @property
    def size(self) -> int:
        return self.base.size

    @property
    def locations(self) -> tuple[int, ...]:
        return self.base.locations

    @property
    def log_scales(self) -> tuple[int, ...]:
        return self.base.log_scales

    @property
    def atom_count(self) -> int:
        return self.base.atom_count

    def classes(self, values: Float[Tensor, "*batch"]) -> tuple[Int[Tensor, "*batch"], int]:
        return self.base.classes(values)

    def with_family(
        self, family: Callable[[Head, Float[np.ndarray, " values"]], Head], values: Float[np.ndarray, " values"]
    ) -> Bounded:
        return Bounded(self.base.with_family(family, values), self.low, self.high, self.firm)

    def forward(self, features: Float[Tensor, "*batch size"]) -> BoundedDistribution:
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        base = self.base(features)
        if isinstance(base, BinnedDistribution) and not base.discrete:
            base = _within(base, low, high)
        return BoundedDistribution(base, low, high, features.dtype, features.device, self.firm)

    def start(self) -> Float[Tensor, " size"]:
        return self.base.start()


def _within(histogram: BinnedDistribution, low: float, high: float) -> BinnedDistribution:
    """A histogram whose outer bins, once cut at the bounds, hold what they held before."""
    logits, bins = histogram.logits, histogram.bins
    return BinnedDistribution((logits + bins.lost_within(low, high).to(logits.device)).to(logits.dtype), bins)
