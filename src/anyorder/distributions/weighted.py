"""A weighted mixture of one-dimensional distributions, as one distribution: what weighted draws say together.

    p(x) = sum_m w_m p_m(x),   w normalised

Each member is exact, so only the weights and where the members stand are random: densities, cdfs and means of the
mixture are weighted means of the members' own (Rao-Blackwell), and each comes with its standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.support.roots import SHARP, first_crossing

AT_ONCE = 1 << 19  # values times members held at once: bounds the memory, not the result


@dataclass(frozen=True, eq=False)
class Weighted(Distribution):
    """The mixture of all ``members`` (batch shape [M]) with these weights; its own batch shape is [1]."""

    members: Distribution
    weights: Float[Tensor, " members"]

    @property
    def discrete(self) -> bool:
        return self.members.discrete

    @property
    def shape(self) -> torch.Size:
        return torch.Size([1])

    def each(
        self, function: Callable[[Tensor], Tensor], value: Float[Tensor, "*points one"]
    ) -> Float[Tensor, "*points members"]:
        """A function of the members at every point, [..., M]."""
        points = value.reshape(-1, 1).double()
        size = max(1, AT_ONCE // len(self.weights))
        parts = [function(part).double() for part in points.split(size)]
        return torch.cat(parts).reshape(*value.shape[:-1], len(self.weights))

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return self._pool(value, lambda part: (self.members.log_prob(part) + self.weights.log()).logsumexp(-1))

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return self._pool(value, lambda part: (self.members.cdf(part).double() * self.weights).sum(-1)).clamp(0, 1)

    def mass_at(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return self._pool(value, lambda part: (self.members.mass_at(part).double() * self.weights).sum(-1))

    def _pool(self, value: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        points = value.reshape(-1, 1).double()
        size = max(1, AT_ONCE // len(self.weights))
        return torch.cat([function(part).double() for part in points.split(size)]).reshape(value.shape)

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """Inside the bracket that the members' own quantiles give."""
        level = level.double()
        ends = [self.members.bracket(part) for part in level.reshape(-1, 1).split(max(1, AT_ONCE // len(self.weights)))]
        low = torch.cat([least.double().amin(-1, keepdim=True) for least, _ in ends]).reshape(level.shape)
        high = torch.cat([most.double().amax(-1, keepdim=True) for _, most in ends]).reshape(level.shape)
        low, high = low.clamp(-1e300, 1e300), high.clamp(-1e300, 1e300)
        # One step further down: the lower end must lie below the quantile, also where it is a jump.
        low = low - 1e-9 * low.abs().clamp(min=1.0)
        found = first_crossing(lambda value: self.cdf(value) - level, low, high, SHARP)
        return torch.where(level < 1, found, high).masked_fill(level <= 0, -math.inf)

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        return self.draws(1, generator)

    @torch.no_grad()
    def draws(self, n: int, generator: torch.Generator | None = None) -> Float[Tensor, " n"]:
        """``n`` independent draws: a member by its weight, then one of its own draws."""
        out = torch.empty(n, dtype=torch.float64)
        total = self.weights.cumsum(0)
        member = torch.searchsorted(total, torch.rand(n, generator=generator, dtype=torch.float64) * total[-1])
        member = member.clamp(max=len(total) - 1)
        # Every round draws from all members at once; the most wanted one says how many rounds there are.
        order = member.argsort(stable=True)
        counts = torch.bincount(member, minlength=len(total))
        position = torch.arange(n) - (counts.cumsum(0) - counts)[member[order]]
        for turn in range(int(counts.max()) if n else 0):
            drawn = self.members.sample(generator).double()
            here = order[position == turn]
            out[here] = drawn[member[here]]
        return out

    def mean(self) -> Float[Tensor, "*batch"]:
        return self.expect(lambda value: value)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        return (self.weights * self.members.expect(function, fine=fine)).sum(-1, keepdim=True)

    @torch.no_grad()
    def entropy(self) -> Float[Tensor, "*batch"]:
        """The mean surprise at draws under a fixed seed: within some hundredths."""
        return -self.log_prob(self.draws(1000, torch.Generator().manual_seed(0))[:, None]).mean(0)
