"""The distribution of one cell given the latent vector.

Numbers are Gaussian, or Student's t as in MIWAE, which forgives outliers; pixels have two levels, or a discretised
logistic.

A log scale is bounded as in the library's own heads, so that densities of different models compare.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from anyorder.heads import Gaussian, Head
from anyorder.heads.gaussian import GaussianDistribution

LEAST_FREEDOM = 3.0  # degrees of freedom of Student's t: the variance stays finite


class Observation(ABC):
    """p(x_i | z) with ``size`` parameters a cell; ``values`` broadcast against the draws."""

    size: ClassVar[int]

    @abstractmethod
    def log_prob(
        self, values: Float[Tensor, "*cells"], parameters: Float[Tensor, "*cells size"]
    ) -> Float[Tensor, "*cells"]:
        """Log density of every cell."""

    @abstractmethod
    def sample(self, parameters: Float[Tensor, "*cells size"], generator: torch.Generator) -> Float[Tensor, "*cells"]:
        """One draw for every cell."""


class GaussianCell(Observation):
    """Mean and log scale."""

    size: ClassVar[int] = 2

    def log_prob(self, values: Tensor, parameters: Tensor) -> Tensor:
        return self._law(parameters).log_prob(values)

    def sample(self, parameters: Tensor, generator: torch.Generator) -> Tensor:
        return self._law(parameters).sample(generator)

    def _law(self, parameters: Tensor) -> GaussianDistribution:
        return Gaussian().forward(parameters)


class StudentCell(Observation):
    """Location, log scale and degrees of freedom (softplus of the feature, plus three)."""

    size: ClassVar[int] = 3

    def log_prob(self, values: Tensor, parameters: Tensor) -> Tensor:
        law, freedom = self._law(parameters)
        standard = (values - law.location) * torch.exp(-law.log_scale)
        constant = torch.lgamma((freedom + 1) / 2) - torch.lgamma(freedom / 2) - 0.5 * torch.log(math.pi * freedom)
        return constant - law.log_scale - (freedom + 1) / 2 * torch.log1p(standard.square() / freedom)

    def sample(self, parameters: Tensor, generator: torch.Generator) -> Tensor:
        law, freedom = self._law(parameters)
        # A normal over the root of a chi-square per degree of freedom.
        spread = 2 * torch._standard_gamma(freedom / 2, generator=generator) / freedom
        normal = torch.randn(freedom.shape, generator=generator, dtype=freedom.dtype)
        return law.location + law.log_scale.exp() * normal * spread.rsqrt()

    def _law(self, parameters: Tensor) -> tuple[GaussianDistribution, Tensor]:
        return Gaussian().forward(parameters[..., :2]), LEAST_FREEDOM + F.softplus(parameters[..., 2])


class HeadCell(Observation):
    """The law of one of the library's own heads, so that pictures are scored by the same families."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.size = head.size  # type: ignore[misc]  # of this one, not of all

    def log_prob(self, values: Tensor, parameters: Tensor) -> Tensor:
        return self.head(parameters).log_prob(values)  # type: ignore[no-any-return]  # a module's call is untyped

    def sample(self, parameters: Tensor, generator: torch.Generator) -> Tensor:
        return self.head(parameters).sample(generator)  # type: ignore[no-any-return]  # as above


observation_models: dict[str, Observation] = {"gaussian": GaussianCell(), "student": StudentCell()}
