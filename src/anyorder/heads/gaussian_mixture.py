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

from anyorder.distributions.base import Distribution
from anyorder.distributions.quadrature import by_component, composite, in_parts, panels, tail_breaks
from anyorder.distributions.tails import finite, log_normal_between
from anyorder.heads._mixture import MixtureHead, bounded, broad, draw
from anyorder.support.roots import increasing_root

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
# The standard normal at the middle of sixteen equally probable parts.
NORMAL_NODES = tuple(torch.special.ndtri((torch.arange(16, dtype=torch.float64) + 0.5) / 16).tolist())
BREAKS = (-9.0, -5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, 9.0)  # panel edges of each component, in its own scales


@dataclass(frozen=True, eq=False)
class GaussianMixtureDistribution(Distribution):
    """A batch of Gaussian mixtures."""

    logits: Float[Tensor, "*batch components"]
    means: Float[Tensor, "*batch components"]
    log_scales: Float[Tensor, "*batch components"]

    @property
    def shape(self) -> torch.Size:
        return self.logits.shape[:-1]

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

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        reached: Tensor = torch.special.ndtr(self._standard(value))
        return (self.logits.softmax(-1) * reached).sum(-1).clamp(max=1)  # rounding may carry it past one

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """By bracketed Newton steps in float64; carries no gradient."""
        level = level.double()
        # Both tails are solved as lower tails: 1 - level is exact where level is above one half.
        sign = torch.where(level > 0.5, -1.0, 1.0).double()[..., None]
        tail = torch.minimum(level, 1 - level)
        weights, means, scales = self.logits.double().softmax(-1), sign * self.means, self.log_scales.double().exp()

        def excess(point: Tensor) -> tuple[Tensor, Tensor]:
            standard = (point[..., None] - means) / scales
            density = (weights / scales * torch.exp(-0.5 * standard.square() - HALF_LOG_TWO_PI)).sum(-1)
            return (weights * torch.special.ndtr(standard)).sum(-1) - tail, density

        # The mixture's quantile lies between the least and the greatest of its components' quantiles.
        each = means + scales * torch.special.ndtri(tail.clamp(min=1e-300))[..., None]
        root = sign[..., 0] * increasing_root(excess, each.amin(-1), each.amax(-1))
        root = root.masked_fill(level == 0, -math.inf).masked_fill(level == 1, math.inf)
        return root.masked_fill(~((level >= 0) & (level <= 1)), math.nan).to(self.logits.dtype)

    def log_between(self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        each = log_normal_between(self._standard(finite(low)), self._standard(finite(high)))
        return (self.logits + each).logsumexp(-1) - self.logits.logsumexp(-1)

    def nodes(self, low: float, high: float) -> tuple[Float[Tensor, "*batch nodes"], Float[Tensor, "*batch nodes"]]:
        means, scales = self.means.detach().double(), self.log_scales.detach().double().exp()
        reach = torch.tensor(BREAKS, dtype=torch.float64, device=means.device)
        breaks = (means[..., None] + scales[..., None] * reach).flatten(-2)
        # The widest component has the heaviest tail, and is what is left beyond the others' reach.
        return composite(torch.cat([breaks, tail_breaks(low, high, scales.amax(-1))], dim=-1), low, high)

    def mean(self) -> Float[Tensor, "*batch"]:
        return (self.logits.softmax(-1) * self.means).sum(-1)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """E[function(X)] for a function that acts on each value alone, by quadrature in float64."""
        if not fine:
            return by_component(function, self.logits, self.means, self.log_scales, NORMAL_NODES)
        return self._integrate(lambda nodes, log_density: function(nodes))

    def entropy(self) -> Float[Tensor, "*batch"]:
        """By quadrature in float64 on panels that follow every component; the error is below 1e-5 nats."""
        return self._integrate(lambda nodes, log_density: -log_density).to(self.logits.dtype)

    def _integrate(self, function: Callable[[Tensor, Tensor], Tensor]) -> Float[Tensor, "*batch"]:
        """The mean of a function of the value and its log-density."""

        def part(logits: Tensor, means: Tensor, log_scales: Tensor) -> Tensor:
            nodes, weights = panels(means.detach(), log_scales.detach().exp(), BREAKS)
            mixture = GaussianMixtureDistribution(logits[:, None], means[:, None], log_scales[:, None])
            log_density = mixture.log_prob(nodes)
            return (weights * log_density.exp() * function(nodes, log_density)).sum(-1)

        cost = 4 * len(BREAKS) * self.logits.shape[-1] ** 2
        parts = (self.logits.double(), self.means.double(), self.log_scales.double())
        return in_parts(part, cost, *parts)

    def _standard(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch components"]:
        return (value[..., None] - self.means) * torch.exp(-self.log_scales)


@dataclass(eq=False)
class GaussianMixture(MixtureHead):
    """Three features per component: all logits, then all means, then all log scales."""

    name: ClassVar[str] = "gaussian_mixture"

    components: int = 10

    def forward(self, features: Float[Tensor, "*batch size"]) -> GaussianMixtureDistribution:
        logits, means, log_scales = features.chunk(3, dim=-1)
        return GaussianMixtureDistribution(logits, means, bounded(log_scales))

    def start(self) -> Float[Tensor, " size"]:
        return broad(self.components, deviation=1.0)
