"""A batch of one-dimensional distributions, each cut to the same region: p(x | x in region) = p(x) / P(region).

Quantiles are those of the region, so draws need no rejection. Expectations over a lattice are sums; on a line they are
sums over the atoms inside the region and integrals of the smooth parts by their own quadrature. A family without one
is integrated over levels of the cdf, E f(X) = integral of f(Q(u)) du, on panels that are fine towards both ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.quadrature import composite
from anyorder.distributions.region import Interval, Points, Region, Union
from anyorder.distributions.sums import joint_rule, lattice_mean, lattice_of, rule_mean

TAIL = tuple(10 ** (-half / 2) for half in range(18, 0, -1))  # a quantile runs off like a logarithm of the level
EDGES = (0.0, *TAIL, *(1 - level for level in reversed(TAIL)), 1.0)
NODES = 5  # on each panel of levels
STEPS = 512


@dataclass(frozen=True, eq=False)
class Cut(Distribution):
    """``base`` given that its value lies in ``region``."""

    base: Distribution
    region: Region

    @property
    def discrete(self) -> bool:
        return self.base.discrete

    @property
    def shape(self) -> torch.Size:
        return self.base.shape

    def log_mass(self) -> Float[Tensor, "*batch"]:
        """log P(region) under ``base``."""
        return self.region.log_mass(self.base)

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        inside = self.region.contains(value)
        return (self.base.log_prob(value).double() - self.log_mass()).masked_fill(~inside, -math.inf)

    def mass_at(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        inside = self.region.contains(value)
        return (self.base.mass_at(value).double() / self.log_mass().exp()).masked_fill(~inside, 0.0)

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        return self.quantile(torch.rand(self.shape, generator=generator, dtype=torch.float64))

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        share = self.region.cdf(self.base, value) / self.log_mass().exp()
        return share.nan_to_num(nan=0.0).clamp(0.0, 1.0)

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return self.region.draw(self.base, level.double())

    def mean(self) -> Float[Tensor, "*batch"]:
        return self.expect(lambda value: value)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """E[function(X)] in float64: a sum over points, or over atoms and the quadrature of what is smooth."""
        if isinstance(self.region, Points):
            points = torch.tensor(self.region.values, dtype=torch.float64).reshape(-1, *(1,) * len(self.shape))
            return (self.log_prob(points.expand(-1, *self.shape)).exp() * function(points)).sum(0)
        if isinstance(self.region, Union):
            means = [Cut(self.base, part).expect(function, fine=fine) for part in self.region.parts]
            return self._over_parts(self.region, means)
        lattice = lattice_of(self.base) if self.discrete else None
        if lattice is not None:
            found = lattice_mean(self, lattice, function)
            return self._over_levels(function) if found is None else found
        smooth, atoms = self.base.pieces()
        parts = [
            (self._share(log_weight, part), self._mean_inside([part], part, function)) for log_weight, part in smooth
        ]
        return self._together(parts, atoms, function)

    def _over_levels(self, function: Callable[[Tensor], Tensor]) -> Float[Tensor, "*batch"]:
        """The mean over equally spaced levels: within some 1e-3 of the spread, for large batches over long lattices."""
        levels = (torch.arange(STEPS, dtype=torch.float64) + 0.5) / STEPS
        return function(self.quantile(levels.reshape((-1,) + (1,) * len(self.shape)))).mean(0)

    def entropy(self) -> Float[Tensor, "*batch"]:
        def surprise(value: Tensor) -> Tensor:
            return -self.log_prob(value).clamp(min=-1e300)

        if self.discrete:
            return self.expect(surprise)
        if isinstance(self.region, Union):  # within a part the density is its share times that of the part
            shares = self.region.shares(self.base)
            each = [Cut(self.base, part).entropy() for part in self.region.parts]
            return self._over_parts(self.region, [one - share.log() for one, share in zip(each, shares, strict=True)])
        smooth, atoms = self.base.pieces()
        whole = torch.stack([self._share(log_weight, part) for log_weight, part in smooth]).sum(0)
        # The log of a sum of parts steps wherever one of them does: one rule for them all.
        return self._together(
            [(whole, self._mean_inside([part for _, part in smooth], self.base, surprise))], atoms, surprise
        )

    def _over_parts(self, region: Union, means: Sequence[Tensor]) -> Float[Tensor, "*batch"]:
        shares = region.shares(self.base)
        return torch.where(shares > 0, shares * torch.stack(list(means)), 0.0).sum(0)

    def _share(self, log_weight: Tensor, part: Distribution) -> Float[Tensor, "*batch"]:
        return (log_weight + self.region.log_mass(part)).exp()

    def _together(
        self,
        smooth: Sequence[tuple[Tensor, Tensor]],
        atoms: Sequence[tuple[Tensor, float]],
        function: Callable[[Tensor], Tensor],
    ) -> Float[Tensor, "*batch"]:
        """The mean over all: shares and means of what is smooth, and the atoms inside the region."""
        total, mass = torch.zeros(self.shape, dtype=torch.float64), torch.zeros(self.shape, dtype=torch.float64)
        for share, mean in smooth:
            total, mass = total + torch.where(share > 0, share * mean, 0.0), mass + share
        for log_weight, atom in atoms:
            point = torch.full((1, *self.shape), atom, dtype=torch.float64)
            if bool(self.region.contains(point).all()):
                total, mass = total + log_weight.exp() * function(point)[0], mass + log_weight.exp()
        return total / mass

    def _mean_inside(
        self, parts: Sequence[Distribution], density: Distribution, function: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "*batch"]:
        """The mean of a function inside the region under ``density``, by a rule that suits all ``parts`` of it."""
        rule = joint_rule(parts, self.region.least, self.region.most) if isinstance(self.region, Interval) else None
        if rule is not None:
            # Divided by what the rule finds in all: where the region is a far tail, the rule sees little else.
            mean, found = rule_mean(rule, density, lambda points, _: function(points))
            if bool((found > 0).all()):
                return mean
        levels, weights = composite(torch.tensor(EDGES, dtype=torch.float64), count=NODES)
        columns = (-1,) + (1,) * len(self.shape)
        values = function(self.region.draw(density, levels.reshape(columns).expand(-1, *self.shape)))
        return (values * weights.reshape(columns)).sum(0)
