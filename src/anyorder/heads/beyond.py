r"""A family whose probability beyond two ends is multiplied by a factor each, and which is normalised again.

$$q(x) = p(x)\, f(x) / Z, \qquad Z = 1 + (f_- - 1)\, A + (f_+ - 1)\, B,$$

with $f = f_-$ below the lower end and $f_+$ above the upper one, 1 between them, and $A$, $B$ what $p$ has there. The
ends are those of what was seen, and lie between two points of a lattice. How often new values lie beyond them is known
from a column alone (:mod:`anyorder.training.ends`), and families that smooth what they saw say it too often, above all
where many cells share an end. Members of a blend are changed one by one: a mixture of such laws is one itself,

$$\sum_m w_m\, p_m f / Z_m = f\, \Big(\sum_m \frac{w_m}{Z_m}\, p_m\Big),$$

so members are folded and merged as without the factors, and a draw of the blend is still a draw of one member.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.distributions.base import Distribution, End
from anyorder.distributions.cut import Cut
from anyorder.distributions.region import Interval

Pair = tuple[float, float]
EVERYTHING = Interval(-math.inf, math.inf, -math.inf, math.inf)


def total(masses: Float[Tensor, "two *batch"], factors: Pair) -> Float[Tensor, "*batch"]:
    """What is left of a law, or has come to it: Z."""
    return 1 + (factors[0] - 1) * masses[0] + (factors[1] - 1) * masses[1]


@dataclass(frozen=True, eq=False)
class BeyondDistribution(Distribution):
    """``base`` with ``factors`` on what it has below the first of its ``ends`` and above the second: ``masses``."""

    base: Distribution
    ends: Pair
    factors: Pair
    masses: Float[Tensor, "two *batch"]

    @classmethod
    def around(cls, base: Distribution, ends: Pair, factors: Pair) -> BeyondDistribution:
        """``base`` with these factors."""
        return cls(base, ends, factors, base.outside(*ends))

    @property
    def discrete(self) -> bool:
        return self.base.discrete

    @property
    def shape(self) -> torch.Size:
        return self.base.shape

    @property
    def jumps(self) -> Pair:
        """Where the density steps."""
        return self.ends

    @property
    def _total(self) -> Float[Tensor, "*batch"]:
        return total(self.masses, self.factors)

    def _factor(self, value: Tensor) -> Tensor:
        below, above = self.factors
        one = torch.ones((), dtype=torch.float64, device=value.device)
        return torch.where(value < self.ends[0], below * one, torch.where(value > self.ends[1], above * one, one))

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        nats = self.base.log_prob(value)
        return nats + (self._factor(value).log() - self._total.log()).to(nats.dtype)

    def mass_at(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        mass = self.base.mass_at(value)
        return mass * (self._factor(value) / self._total).to(mass.dtype)

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        reached = self.base.cdf(value)
        plain = reached.double()
        (below, above), (less, more) = self.masses, self.factors
        upper = (plain - (1 - above)).clamp(min=0)
        counted: Tensor = plain + (less - 1) * torch.minimum(plain, below) + (more - 1) * upper
        return (counted / self._total).clamp(0, 1).to(reached.dtype)

    def outside(self, low: float, high: float) -> Float[Tensor, "two *batch"]:
        if (low, high) != self.ends:
            return super().outside(low, high)
        changed: Tensor = self.masses * self.masses.new_tensor(self.factors).reshape(2, *[1] * len(self.shape))
        return changed / self._total

    def log_between(self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        parts = []
        for factor, least, most in zip(
            (self.factors[0], 1.0, self.factors[1]), (-math.inf, *self.ends), (*self.ends, math.inf), strict=True
        ):
            start, end = low.clamp(least, most), high.clamp(least, most)
            # An end of a part has no probability by itself; a single value inside may have one.
            nothing = (high < least) | (low > most) | ((start == end) & (low != high))
            nats = self.base.log_between(start.masked_fill(nothing, -math.inf), end.masked_fill(nothing, math.inf))
            parts.append((nats + math.log(factor)).masked_fill(nothing, -math.inf))
        nats = torch.stack(parts).logsumexp(0)
        return (nats - self._total.log().to(nats.dtype)).clamp(max=0)

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return self.base.quantile(self._level(level))

    @torch.no_grad()
    def bracket(self, level: Float[Tensor, "*batch"]) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        return self.base.bracket(self._level(level))

    def _level(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The level of the base at which this law reaches ``level``."""
        level, whole = level.double(), self._total
        (below, above), (less, more) = self.masses, self.factors
        counted, left = level * whole, (1 - level) * whole
        inside = counted + (1 - less) * below
        found = torch.where(counted < less * below, counted / less, inside)
        # From above, where a level next to one has more digits.
        found = torch.where(left < more * above, 1 - left / more, found)
        return torch.where((level <= 0) | (level >= 1), level, found.clamp(0, 1))

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        return self._settled(self.base.sample(generator), generator)

    def sample_within(
        self, low: End, high: End, generator: torch.Generator | None = None
    ) -> Float[Tensor, "*batch"] | None:
        if isinstance(low, Tensor) or isinstance(high, Tensor) or math.isfinite(low) or math.isfinite(high):
            return None
        drawn = self.base.sample_within(low, high, generator)
        return None if drawn is None else self._settled(drawn, generator)

    def _settled(self, drawn: Float[Tensor, "*batch"], generator: torch.Generator | None) -> Float[Tensor, "*batch"]:
        """Draws of the base become draws of this law.

        On which side of the ends a draw is to lie is decided apart from it. If it lies there it stays, since among
        those it is as likely as any; the few others are drawn again, there, all of them at once.
        """
        below, above = self.outside(*self.ends)
        level = torch.rand(drawn.shape, generator=generator, dtype=torch.float64, device=drawn.device)
        wanted = (level >= 1 - above).long() - (level < below).long()
        moved = wanted != self._side(drawn)
        if not bool(moved.any()):
            return drawn
        if drawn.ndim != 1:
            again = self._drawn_on(self.base, self.masses, wanted, generator)
            return torch.where(moved, again.to(drawn.dtype), drawn)
        some = moved.nonzero()[:, 0]
        again = self._drawn_on(self.base.rows(some), self.masses[:, some], wanted[some], generator)
        return drawn.index_put((some,), again.to(drawn.dtype))

    def _drawn_on(
        self,
        base: Distribution,
        masses: Float[Tensor, "two *some"],
        side: Int[Tensor, "*some"],
        generator: torch.Generator | None,
    ) -> Float[Tensor, "*some"]:
        """A draw of each element of a base on a side of the ends."""
        ends = torch.tensor([-math.inf, *self.ends, math.inf], dtype=torch.float64, device=side.device)
        drawn = base.sample_within(ends[side + 1], ends[side + 2], generator)
        if drawn is not None:
            return drawn
        level = torch.rand(side.shape, generator=generator, dtype=torch.float64, device=side.device)
        below, above = masses
        inside = below + level * (1 - below - above).clamp(min=0)
        level = torch.where(side < 0, level * below, torch.where(side > 0, 1 - level * above, inside))
        return base.quantile(level.clamp(1e-300, 1 - 1e-16))

    def _side(self, value: Tensor) -> Tensor:
        """-1 below the lower end, 1 above the upper one, 0 between them."""
        return (value > self.ends[1]).long() - (value < self.ends[0]).long()

    def rows(self, index: Int[Tensor, " some"]) -> BeyondDistribution:
        return dataclasses.replace(self, base=self.base.rows(index), masses=self.masses[:, index])

    def mean(self) -> Float[Tensor, "*batch"]:
        return self.expect(lambda value: value).to(self.base.mean().dtype)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """E f h / E f; in one go where the base has a rule that knows of the ends."""
        if fine and not self.discrete:
            found = self.base.expect_within(
                lambda points: function(points) * self._factor(points), -math.inf, math.inf, self.ends
            )
            if found is not None:
                return found[0] / (found[1] * self._total)
        value = self.base.expect(lambda points: function(points) * self._factor(points), fine=fine)
        return value / self.base.expect(self._factor, fine=fine)

    def entropy(self) -> Float[Tensor, "*batch"]:
        return Cut(self, EVERYTHING).entropy().to(self.base.mean().dtype)

    def nodes(
        self, low: float, high: float
    ) -> tuple[Float[Tensor, "*batch nodes"], Float[Tensor, "*batch nodes"]] | None:
        return self.base.nodes(low, high)

    def pieces(self) -> tuple[list[tuple[Tensor, Distribution]], list[tuple[Tensor, float]]]:
        smooth, atoms = self.base.pieces()
        whole = self._total.log()
        parts: list[tuple[Tensor, Distribution]] = []
        for log_weight, part in smooth:
            own = BeyondDistribution.around(part, self.ends, self.factors)
            parts.append((log_weight + own._total.log() - whole, own))
        spikes = []
        for log_weight, atom in atoms:
            factor = self._factor(torch.tensor(atom, dtype=torch.float64, device=whole.device))
            spikes.append((log_weight + factor.log() - whole, atom))
        return parts, spikes

    def tempered(self, temperature: float) -> Distribution:
        return BeyondDistribution.around(self.base.tempered(temperature), self.ends, self.factors)
