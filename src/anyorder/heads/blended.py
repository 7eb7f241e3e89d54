"""A mixture of several distributions of one variable, as a blend of heads answers with: p(x) = sum_m w_m p_m(x).

Where many values are asked for, members of one family are first made one (:mod:`.merging`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.curves import Curve
from anyorder.distributions.sums import joint_rule, lattice_mean, lattice_of, rule_mean
from anyorder.heads._mixture import draw
from anyorder.heads.bounded import BoundedDistribution
from anyorder.heads.categorical import CategoricalDistribution
from anyorder.heads.merging import Joins, cut_together, mixed_curve, with_fewest
from anyorder.support.roots import crossing_by_sections, least_index

FEW, TABLE = 16, 512  # levels of one distribution beyond which its cdf is tabulated, and the points of the table
MOST_POINTS = 4096  # of a lattice that are tabulated
FEW_MEMBERS = 2  # of which a cdf is had sooner than they are merged
LEVELS = 128  # equally probable points of a member, where it has no quadrature of its own


@dataclass(frozen=True, eq=False)
class BlendDistribution(Distribution):
    """A batch of mixtures of the members' distributions."""

    members: tuple[Distribution, ...]
    log_weights: Float[Tensor, "*batch members"]  # or one set of them for the whole batch
    levels: int = 0
    joins: Joins = field(default_factory=dict, repr=False)

    @property
    def merged(self) -> Distribution:
        """An equal distribution with the fewest members: dearer to make, and cheaper to ask for many values."""
        # It is kept only where no gradient could be lost with it.
        return self._merge() if torch.is_grad_enabled() else self._kept

    @cached_property
    def _kept(self) -> Distribution:
        return self._merge()

    def _merge(self) -> Distribution:
        members, log_weights = with_fewest(self.members, self.log_weights, self.joins)
        if len(members) == len(self.members):
            return self
        return members[0] if len(members) == 1 else BlendDistribution(members, log_weights, self.levels, self.joins)

    @cached_property
    def _cut_once(self) -> Distribution | None:
        """An equal distribution, where all members have the same bounds: what they say without them, mixed and cut."""
        found = cut_together(self.members, self.log_weights)
        if found is None:
            return None
        bases, log_weights, inside, bounded = found
        base = BlendDistribution(bases, log_weights, self.levels, self.joins)
        return dataclasses.replace(bounded, base=base, log_inside=inside)

    @property
    def discrete(self) -> bool:
        return self.members[0].discrete

    @property
    def shape(self) -> torch.Size:
        return self.members[0].shape

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return self._log_mean([member.log_prob(value) for member in self.members])

    def mass_at(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return self._mean([member.mass_at(value) for member in self.members])

    def log_between(self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return self._log_mean([member.log_between(low, high) for member in self.members])

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        drawn = torch.stack([member.sample(generator) for member in self.members], dim=-1)
        chosen = draw(self.log_weights.to(drawn.dtype).expand(drawn.shape), generator)
        return drawn.gather(-1, chosen[..., None])[..., 0]

    def rows(self, index: Int[Tensor, " some"]) -> BlendDistribution:
        own = self.log_weights if self.log_weights.ndim == 1 else self.log_weights[index]
        return dataclasses.replace(self, members=tuple(one.rows(index) for one in self.members), log_weights=own)

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        if len(self.members) > FEW_MEMBERS and (merged := self.merged) is not self:
            return merged.cdf(value)
        return self._mean([member.cdf(value) for member in self.members])

    def outside(self, low: float, high: float) -> Float[Tensor, "two *batch"]:
        return self._mean([member.outside(low, high) for member in self.members])

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """Between the members' quantiles, to a member's own point where the cdf jumps."""
        if (curve := self.curve()) is not None:
            lattice = lattice_of(self) if self.discrete else None
            return curve.along(level, self.shape, lattice).to(self._dtype)
        if self._cut_once is not None:
            return self._cut_once.quantile(level)
        if (merged := self.merged) is not self:
            return merged.quantile(level)
        if self.levels:
            return self._level_quantile(level)
        low, high = self.bracket(level)
        level = level.double().expand(low.shape)
        # The least value that reaches the level: `high` always does, `low` may.
        known = (low == high) | ~low.isfinite() | ~high.isfinite()
        below, above = (end.masked_fill(known, 0.0) for end in (low, high))
        dtype = torch.float64
        many = math.prod(self.shape) == 1 and level.numel() > FEW and not bool(known.any())

        def missing(value: Tensor) -> Tensor:
            nonlocal dtype
            reached = self.cdf(value)
            dtype = reached.dtype
            return (reached.double() - level).masked_fill(known, 0.0)

        lattice = lattice_of(self) if self.discrete else None
        if lattice is not None:
            first, last = lattice.index(below), lattice.index(above)
            if many and (span := float(last.max() - first.min())) < MOST_POINTS:
                index = first.min() + torch.arange(span + 1, dtype=torch.float64, device=first.device)
                found = lattice.at(index[self._first_reaching(lattice.at(index), level)])
                return low.where(known, found).to(self._dtype)
            if bool((first == last).all()):
                missing(lattice.at(last))  # nothing to search, but the dtype is still to be told
            found = lattice.at(least_index(lambda index: missing(lattice.at(index)), first, last))
            return low.where(known, found).to(dtype)
        jumps = any(member.pieces()[1] for member in self.members)
        # Beside a jump a digit decides on which side of it an answer is.
        precision = torch.finfo(torch.float64).eps if jumps else 1e-12
        if many:
            below, above = self._tabulated(level, below, above)
        answer = low.where(known, crossing_by_sections(missing, below, above, precision))
        return self._snapped(answer, dtype) if jumps else answer.to(dtype)

    def curve(self) -> Curve | None:
        return None if torch.is_grad_enabled() else self._curve

    @cached_property
    def _curve(self) -> Curve | None:
        if math.prod(self.shape) != 1:
            return None
        if self._cut_once is not None:
            return self._cut_once.curve()
        each = [member.curve() for member in self.members]
        known = [curve for curve in each if curve is not None]
        weights: list[float] = self.log_weights.double().exp().reshape(-1).tolist()
        return mixed_curve(known, weights, self.joins) if len(known) == len(each) == len(weights) else None

    def bracket(self, level: Float[Tensor, "*batch"]) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        """Between the least and the greatest of the members' quantiles."""
        each = [member.bracket(level) for member in self.members]
        low = torch.stack([least.double() for least, _ in each]).amin(0)
        return low, torch.stack([most.double() for _, most in each]).amax(0)

    def _level_quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        codes = torch.arange(self.levels, dtype=torch.float64, device=level.device)
        if math.prod(self.shape) == 1:
            found = self._first_reaching(codes, level.double()).double()
        else:
            reached = self.cdf(codes[:-1].reshape(-1, *[1] * max(level.ndim, len(self.shape)))).double()
            found = (reached < level.double()).sum(0).double()
        found = found.expand(np.broadcast_shapes(level.shape, self.shape))
        return found.masked_fill(~((level >= 0) & (level <= 1)), math.nan).to(self._dtype)

    def _first_reaching(
        self, points: Float[Tensor, " points"], level: Float[Tensor, "*batch"]
    ) -> Int[Tensor, "*batch"]:
        """The number of the first of these ascending points at which the one distribution reaches a level, or last."""
        reached = self.cdf(points.reshape(-1, *[1] * len(self.shape))).double().reshape(-1).cummax(0).values
        return torch.searchsorted(reached, level.contiguous()).clamp(max=len(points) - 1)

    def _tabulated(self, level: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Closer ends for many levels of one distribution, out of one table of its cdf."""
        first, last = low.min(), high.max()
        points = torch.linspace(0, 1, TABLE, dtype=torch.float64, device=level.device) * (last - first) + first
        position = self._first_reaching(points, level)
        below, above = points[(position - 1).clamp(min=0)], points[position]
        return torch.maximum(low, below).minimum(high), torch.minimum(high, above).maximum(low)

    @cached_property
    def _dtype(self) -> torch.dtype:
        first = self.members[0]
        logits = first.dtype if isinstance(first, BoundedDistribution) else getattr(first, "logits", None)
        if logits is not None:
            return logits if isinstance(logits, torch.dtype) else logits.dtype
        return self.cdf(torch.zeros((0, *self.shape), dtype=torch.float64, device=self.log_weights.device)).dtype

    def _snapped(self, value: Tensor, dtype: torch.dtype) -> Tensor:
        """Where there are points, the point that the search closed in on, bit by bit as a member spells it."""
        finite = value.isfinite()
        for member in self.members:
            # A member's own quantile at its own cdf is one of its points, if it has any there.
            point = member.quantile(member.cdf(value.where(finite, 0.0)).double().clamp(1e-300, 1.0))
            near = (point.double() - value).abs() <= 1e-6 * value.abs().clamp(min=1)
            jumps = self.mass_at(point) > 0
            value = torch.where(finite & near & jumps, point.double(), value)
        return value.to(dtype)

    def expect_within(
        self, function: Callable[[Tensor], Tensor], low: float, high: float, steps: tuple[float, ...] = ()
    ) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]] | None:
        each = [member.expect_within(function, low, high, steps) for member in self.members]
        found = [one for one in each if one is not None]
        if len(found) < len(each):
            return None
        return self._mean([part for part, _ in found]), self._mean([mass for _, mass in found])

    def mean(self) -> Float[Tensor, "*batch"]:
        return self._mean([member.mean() for member in self.members])

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        return self._mean([member.expect(function, fine=fine) for member in self.members])

    def entropy(self) -> Float[Tensor, "*batch"]:
        """A sum over levels or a lattice; else the mean of -log p at the atoms and by one quadrature for all parts.

        A large batch over a long lattice is answered over the members' quantiles, within some 1e-2 nats.
        """
        if (merged := self.merged) is not self:
            return merged.entropy()
        if self.levels:
            codes = torch.arange(self.levels, dtype=torch.float64).reshape(-1, *[1] * len(self.shape))
            log_mass = self.log_prob(codes.to(self.log_weights.device))
            return -(log_mass.exp() * log_mass.clamp(min=-1e30)).sum(0)
        lattice = lattice_of(self) if self.discrete else None
        if lattice is not None:
            nats = lattice_mean(self, lattice, lambda points: -self.log_prob(points).double())
            if nats is not None:
                return nats.to(self.members[0].mean().dtype)
        smooth, atoms = self.pieces() if lattice is None else ([*zip(self._shares(), self.members, strict=True)], [])
        total = self._smooth_surprise(smooth)
        for log_weight, atom in atoms:
            surprise = -self.log_prob(torch.full(self.shape, atom, dtype=torch.float64, device=log_weight.device))
            total = total + log_weight.exp() * surprise.double()
        return total.to(self.members[0].mean().dtype)

    def tempered(self, temperature: float) -> Distribution:
        if not self.levels:
            return super().tempered(temperature)
        codes = torch.arange(self.levels, dtype=torch.float64, device=self.log_weights.device)
        log_probs = self.log_prob(codes.reshape(-1, *[1] * len(self.shape))).movedim(0, -1)
        return CategoricalDistribution(log_probs / temperature)

    def pieces(self) -> tuple[list[tuple[Tensor, Distribution]], list[tuple[Tensor, float]]]:
        if (merged := self.merged) is not self:
            return merged.pieces()
        smooth, atoms = [], []
        for member, weight in zip(self.members, self.log_weights.double().unbind(-1), strict=True):
            parts, spikes = member.pieces()
            smooth += [(weight + log_weight, part) for log_weight, part in parts]
            atoms += [(weight + log_weight, point) for log_weight, point in spikes]
        return smooth, atoms

    def _smooth_surprise(self, parts: Sequence[tuple[Tensor, Distribution]]) -> Float[Tensor, "*batch"]:
        """The integral of -p log p over the smooth parts; over a part's quantiles if one has no quadrature."""
        rule = joint_rule([part for _, part in parts], -math.inf, math.inf)
        if rule is not None:
            mean, _ = rule_mean(rule, self, lambda points, log_density: -log_density)
            return torch.stack([log_weight for log_weight, _ in parts]).exp().sum(0) * mean
        levels = (torch.arange(LEVELS, dtype=torch.float64) + 0.5) / LEVELS
        levels = levels.reshape(-1, *[1] * len(self.shape)).to(self.log_weights.device)
        each = [log_weight.exp() * -self.log_prob(part.quantile(levels)).double().mean(0) for log_weight, part in parts]
        return torch.stack(each).sum(0)

    def _shares(self) -> list[Tensor]:
        """The log weight of each member, for every element of the batch."""
        return [weight.expand(self.shape) for weight in self.log_weights.double().unbind(-1)]

    def _log_mean(self, parts: Sequence[Tensor]) -> Tensor:
        stacked = torch.stack(tuple(parts), dim=-1)
        return (stacked + self.log_weights.to(stacked.dtype)).logsumexp(-1)

    def _mean(self, parts: Sequence[Tensor]) -> Tensor:
        stacked = torch.stack(tuple(parts), dim=-1)
        return (stacked * self.log_weights.exp().to(stacked.dtype)).sum(-1)
