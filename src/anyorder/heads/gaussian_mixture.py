"""A mixture of K Gaussians: p(x) = sum_k w_k N(x; mean_k, scale_k^2), w = softmax(logits).

The weights are never normalised on the way: log p(x) is the difference of two log-sums over k, with and without the
Gaussian terms. Scales are bounded (:mod:`._mixture`), so no density exceeds e^7 / sqrt(2 pi) in model units.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.distributions.base import End
from anyorder.distributions.curves import Curve
from anyorder.distributions.quadrature import (
    HALF_LOG_TWO_PI,
    by_component,
    in_parts,
    log_normal,
    panels,
    within_components,
)
from anyorder.distributions.tails import finite, log_normal_between, log_normal_beyond
from anyorder.heads._mixture import LineMixture, MixtureHead, by_lower_tail, components_of, draw
from anyorder.support.roots import increasing_root

# The standard normal at the middle of sixteen equally probable parts.
NORMAL_NODES = tuple(torch.special.ndtri((torch.arange(16, dtype=torch.float64) + 0.5) / 16).tolist())
BREAKS = (-9.0, -5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, 9.0)  # panel edges of each component, in its own scales


@dataclass(frozen=True, eq=False)
class GaussianMixtureDistribution(LineMixture):
    """A batch of Gaussian mixtures."""

    breaks: ClassVar[tuple[float, ...]] = BREAKS

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        standard = self._standard(value)
        terms = torch.addcmul(self.logits - self.log_scales, standard, standard, value=-0.5)
        return terms.logsumexp(-1) - self.logits.logsumexp(-1) - HALF_LOG_TWO_PI

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        chosen = draw(self.logits, generator)[..., None]
        mean, log_scale = (part.gather(-1, chosen)[..., 0] for part in (self.means, self.log_scales))
        noise = torch.randn(self.shape, generator=generator, dtype=mean.dtype, device=mean.device)
        return mean + log_scale.exp() * noise

    @torch.no_grad()
    def sample_within(self, low: End, high: End, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        """A component by what it has inside, then its own draw there, by inversion from the nearer tail."""
        if isinstance(low, float) and isinstance(high, float) and (low, high) == (-math.inf, math.inf):
            return self._drawn_anywhere(generator)
        low, high = (torch.as_tensor(end, dtype=torch.float64, device=self.logits.device) for end in (low, high))
        lower, upper = (self._standard(finite(end).expand(self.shape)).double() for end in (low, high))
        held = self.logits.double() + log_normal_between(lower, upper)
        chosen = draw(held, generator)[..., None]
        lower, upper, mean, log_scale = (
            part.gather(-1, chosen)[..., 0].double() for part in (lower, upper, self.means, self.log_scales)
        )
        sign = torch.where(lower + upper > 0, -1.0, 1.0).double()
        near, far = (
            torch.special.ndtr(torch.where(sign < 0, -one, other)) for one, other in ((upper, lower), (lower, upper))
        )
        level = torch.rand(self.shape, generator=generator, dtype=torch.float64, device=mean.device)
        standard: Tensor = sign * torch.special.ndtri(near + level * (far - near))
        return (mean + log_scale.exp() * standard.clamp(lower, upper)).clamp(low, high).to(self.logits.dtype)

    def _drawn_anywhere(self, generator: torch.Generator | None) -> Float[Tensor, "*batch"]:
        """What :meth:`sample_within` draws from the whole line, without a look at its ends."""
        chosen = draw(self.logits.double(), generator)[..., None]
        mean, log_scale = (part.gather(-1, chosen)[..., 0].double() for part in (self.means, self.log_scales))
        level = torch.rand(self.shape, generator=generator, dtype=torch.float64, device=mean.device)
        standard = torch.special.ndtri(level)
        return (mean + log_scale.exp() * torch.where(mean < 0, -standard, standard)).to(self.logits.dtype)

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        reached: Tensor = torch.special.ndtr(self._standard(value))
        return (self.logits.softmax(-1) * reached).sum(-1).clamp(max=1)  # rounding may carry it past one

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """By bracketed Newton steps in float64; carries no gradient."""
        weights, scales = self.logits.double().softmax(-1), self.log_scales.double().exp()

        def search(sign: Tensor, tail: Tensor) -> Tensor:
            means = sign[..., None] * self.means

            def excess(point: Tensor) -> tuple[Tensor, Tensor]:
                standard = (point[..., None] - means) / scales
                density = (weights / scales * torch.exp(-0.5 * standard.square() - HALF_LOG_TWO_PI)).sum(-1)
                return (weights * torch.special.ndtr(standard)).sum(-1) - tail, density

            # The mixture's quantile lies between the least and the greatest of its components' quantiles.
            each = means + scales * torch.special.ndtri(tail.clamp(min=1e-300))[..., None]
            return increasing_root(excess, each.amin(-1), each.amax(-1))

        return by_lower_tail(level, search).to(self.logits.dtype)

    @torch.no_grad()
    def bracket(self, level: Float[Tensor, "*batch"]) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        each = self.means.double() + self.log_scales.double().exp() * torch.special.ndtri(level.double())[..., None]
        return each.amin(-1), each.amax(-1)

    def curve(self) -> Curve | None:
        return components_of(self.logits, self.means, self.log_scales)

    def log_between(self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        each = log_normal_between(self._standard(finite(low)), self._standard(finite(high)))
        return (self.logits + each).logsumexp(-1) - self.logits.logsumexp(-1)

    def log_within(self, low: float, high: float) -> Float[Tensor, "*batch"] | None:
        if high < math.inf:
            return None
        lower = torch.tensor(low, dtype=self.logits.dtype, device=self.logits.device)
        each = log_normal_beyond(self._standard(finite(lower)))
        return (self.logits + each).logsumexp(-1) - self.logits.logsumexp(-1)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """E[function(X)] for a function that acts on each value alone, by quadrature in float64."""
        if not fine:
            return by_component(function, self.logits, self.means, self.log_scales, NORMAL_NODES)
        total, mass = self.expect_within(function, -math.inf, math.inf)
        return total / mass

    def expect_within(
        self, function: Callable[[Tensor], Tensor], low: float, high: float, steps: tuple[float, ...] = ()
    ) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        parts = (self.logits, self.means, self.log_scales)
        return within_components(function, log_normal, parts, (low, high), steps)

    def entropy(self) -> Float[Tensor, "*batch"]:
        """By quadrature in float64 on panels that follow every component; the error is below 1e-5 nats."""
        return self._integrate(lambda nodes, log_density: -log_density).to(self.logits.dtype)

    def _integrate(self, function: Callable[[Tensor, Tensor], Tensor]) -> Float[Tensor, "*batch"]:
        """The mean of a function of the value and its log-density."""

        def part(logits: Tensor, means: Tensor, log_scales: Tensor) -> Tensor:
            nodes, weights = panels(means.detach(), log_scales.detach().exp(), BREAKS)
            mixture = GaussianMixtureDistribution(logits[:, None], means[:, None], log_scales[:, None])
            log_density = mixture.log_prob(nodes)
            mass = weights * log_density.exp()
            # Few components have coarse panels: what their mass lacks to one would be much of a large offset.
            return (mass * function(nodes, log_density)).sum(-1) / mass.sum(-1)

        cost = 4 * len(BREAKS) * self.logits.shape[-1] ** 2
        parts = (self.logits.double(), self.means.double(), self.log_scales.double())
        return in_parts(part, cost, *parts)


@dataclass(eq=False)
class GaussianMixture(MixtureHead):
    """Three features per component: all logits, then all means, then all log scales."""

    name: ClassVar[str] = "gaussian_mixture"
    deviation: ClassVar[float] = 1.0

    components: int = 10

    def forward(self, features: Float[Tensor, "*batch size"]) -> GaussianMixtureDistribution:
        return GaussianMixtureDistribution(*self.parts(features))
