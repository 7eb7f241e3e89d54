"""One Gaussian: p(x) = N(x; mean, scale^2). The log scale is bounded as in the mixtures (:mod:`._mixture`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.tails import finite, log_normal_between
from anyorder.heads._mixture import bounded
from anyorder.heads.base import Head
from anyorder.heads.gaussian_mixture import GaussianMixtureDistribution

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class GaussianDistribution(Distribution):
    """A batch of Gaussians."""

    location: Float[Tensor, "*batch"]
    log_scale: Float[Tensor, "*batch"]

    @property
    def shape(self) -> torch.Size:
        return self.location.shape

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return -0.5 * self._standard(value).square() - self.log_scale - HALF_LOG_TWO_PI

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        noise = torch.randn(self.shape, generator=generator, dtype=self.location.dtype, device=self.location.device)
        return self.location + self.log_scale.exp() * noise

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        reached: Tensor = torch.special.ndtr(self._standard(value))
        return reached

    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        standard: Tensor = torch.special.ndtri(level)
        return self.location + self.log_scale.exp() * standard

    def log_between(self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return log_normal_between(self._standard(finite(low)), self._standard(finite(high)))

    def nodes(self, low: float, high: float) -> tuple[Float[Tensor, "*batch nodes"], Float[Tensor, "*batch nodes"]]:
        return self._as_mixture().nodes(low, high)

    def mean(self) -> Float[Tensor, "*batch"]:
        return self.location

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """E[function(X)] for a function that acts on each value alone, by quadrature in float64."""
        return self._as_mixture().expect(function, fine=fine)

    def entropy(self) -> Float[Tensor, "*batch"]:
        return self.log_scale + (HALF_LOG_TWO_PI + 0.5)

    def _as_mixture(self) -> GaussianMixtureDistribution:
        single = (torch.zeros_like(self.location), self.location, self.log_scale)
        return GaussianMixtureDistribution(*(part[..., None] for part in single))

    def _standard(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return (value - self.location) * torch.exp(-self.log_scale)


@dataclass(eq=False)
class Gaussian(Head):
    """Two features: mean and log scale."""

    name: ClassVar[str] = "gaussian"

    @property
    def size(self) -> int:
        return 2

    @property
    def locations(self) -> tuple[int, ...]:
        return (0,)

    @property
    def log_scales(self) -> tuple[int, ...]:
        return (1,)

    def forward(self, features: Float[Tensor, "*batch size"]) -> GaussianDistribution:
        return GaussianDistribution(features[..., 0], bounded(features[..., 1]))
