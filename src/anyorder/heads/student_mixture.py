"""A mixture for heavy tails: Student's t with 2 and with 4 degrees of freedom, and normals, in turn.

    p(x) = sum_k w_k t(x; mean_k, scale_k, degrees_k),   degrees = 2, 4, infinity, 2, 4, infinity, ...

For these degrees the cdf is algebraic, so nothing needs the incomplete beta function; the weights choose among them.
With two degrees of freedom there is a mean but no variance: a standard deviation of such an answer is a number only
because its quadrature ends somewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.distributions.tails import finite
from anyorder.heads._mixture import LineMixture, MixtureHead, by_lower_tail, draw
from anyorder.support.roots import increasing_root

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
LOG_TWO = -1.5 * math.log(2)  # of t's density at 0: 2 degrees of freedom
LOG_FOUR = math.log(3 / 8)
NODES = 32
FARTHEST = 1e15  # in scales: its square is still a float32
REACH = (0.5, 1.2, 2.2, 4.0, 8.0, 16.0, 40.0, 100.0, 3e2, 1e3, 3e3, 1e4, 1e5, 1e6)
BREAKS = (*(-end for end in reversed(REACH)), 0.0, *REACH)  # panel edges of each component, in its own scales


@dataclass(frozen=True, eq=False)
class StudentMixtureDistribution(LineMixture):
    """A batch of mixtures of t2, t4 and normal components, in turn."""

    breaks: ClassVar[tuple[float, ...]] = BREAKS

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        square = self._standard(value).square()
        two = LOG_TWO - 1.5 * torch.log1p(square / 2)
        four = LOG_FOUR - 2.5 * torch.log1p(square / 4)
        terms = self._choose(two, four, -0.5 * square - HALF_LOG_TWO_PI)
        return (self.logits - self.log_scales + terms).logsumexp(-1) - self.logits.logsumexp(-1)

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        chosen = draw(self.logits, generator)[..., None]
        mean, log_scale = (part.gather(-1, chosen)[..., 0] for part in (self.means, self.log_scales))
        dtype, device = mean.dtype, mean.device
        normal = torch.randn(*self.shape, 5, generator=generator, dtype=dtype, device=device)
        # t with v degrees of freedom is a normal over the root of a mean of v squared ones.
        two = normal[..., 0] / normal[..., 1:3].square().mean(-1).sqrt()
        four = normal[..., 0] / normal[..., 1:5].square().mean(-1).sqrt()
        turn = chosen[..., 0] % 3
        return mean + log_scale.exp() * torch.where(turn == 0, two, torch.where(turn == 1, four, normal[..., 0]))

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return (self.logits.softmax(-1) * self._component_cdf(self._standard(value))).sum(-1).clamp(max=1)

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """By bracketed Newton steps in float64; carries no gradient."""

        def search(sign: Tensor, tail: Tensor) -> Tensor:
            mirrored = StudentMixtureDistribution(
                self.logits.double(), sign[..., None] * self.means.double(), self.log_scales.double()
            )

            def excess(point: Tensor) -> tuple[Tensor, Tensor]:
                return mirrored.cdf(point) - tail, mirrored.log_prob(point).exp()

            # Of the three, two degrees of freedom reach furthest, and its quantile is a closed form.
            least = tail.clamp(min=1e-300)
            furthest = -((1 - 2 * least) / (2 * least * (1 - least)).sqrt())[..., None]
            lower = (mirrored.means + mirrored.log_scales.exp() * furthest).amin(-1)
            return increasing_root(excess, lower, mirrored.means.amax(-1))

        return by_lower_tail(level, search).to(self.logits.dtype)

    def log_between(self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        start, end = self._standard(finite(low)), self._standard(finite(high))
        first, last = self._tail(start.abs()), self._tail(end.abs())
        mass = torch.where(start > 0, first - last, torch.where(end < 0, last - first, 1 - first - last))
        total = (self.logits.softmax(-1) * mass).sum(-1)
        return total.clamp(min=torch.finfo(total.dtype).tiny).log()

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """By quadrature in float64 on panels that follow every component out to a million scales."""
        if not fine:
            levels = (torch.arange(NODES, dtype=torch.float64, device=self.logits.device) + 0.5) / NODES
            return function(self._over().quantile(levels.expand(*self.shape, -1)).double()).mean(-1)
        return self._integrate(lambda values, log_density: function(values))

    def entropy(self) -> Float[Tensor, "*batch"]:
        return self._integrate(lambda values, log_density: -log_density).to(self.logits.dtype)

    def _integrate(self, function: Callable[[Tensor, Tensor], Tensor]) -> Float[Tensor, "*batch"]:
        points, weights = self.nodes(-math.inf, math.inf)
        log_density = self._over().log_prob(points)
        return (weights * log_density.exp() * function(points, log_density)).sum(-1)

    def _component_cdf(self, standard: Tensor) -> Tensor:
        tail = self._tail(standard.abs())
        return torch.where(standard > 0, 1 - tail, tail)

    def _tail(self, size: Tensor) -> Tensor:
        """P(T > size) for size >= 0, each as a product and not as a half minus nearly a half."""
        size = size.clamp(max=FARTHEST)
        root = (2 + size.square()).sqrt()
        two = 1 / (root * (root + size))
        root = (4 + size.square()).sqrt()
        # With u = size / root: 1/2 - 3/4 u + 1/4 u^3 = (1 - u)^2 (2 + u) / 4, and 1 - u = 4 / (root (root + size)).
        four = (4 / (root * (root + size))).square() * (2 + size / root) / 4
        normal: Tensor = torch.special.ndtr(-size)
        return self._choose(two, four, normal)

    def _choose(self, two: Tensor, four: Tensor, normal: Tensor) -> Tensor:
        turn = self._turn()
        return torch.where(turn == 0, two, torch.where(turn == 1, four, normal))

    def _turn(self) -> Tensor:
        return torch.arange(self.logits.shape[-1], device=self.logits.device) % 3

    def _over(self) -> StudentMixtureDistribution:
        parts = (part.double()[..., None, :] for part in (self.logits, self.means, self.log_scales))
        return StudentMixtureDistribution(*parts)


@dataclass(eq=False)
class StudentMixture(MixtureHead):
    """Three features per component: all logits, then all means, then all log scales."""

    name: ClassVar[str] = "student_mixture"
    deviation: ClassVar[float] = 0.7

    components: int = 9

    def forward(self, features: Float[Tensor, "*batch size"]) -> StudentMixtureDistribution:
        return StudentMixtureDistribution(*self.parts(features))
