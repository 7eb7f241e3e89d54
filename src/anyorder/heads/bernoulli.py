"""Two levels, 0 and 1: p(1) = sigmoid(logit)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.heads.base import Head


@dataclass(frozen=True, eq=False)
class BernoulliDistribution(Distribution):
    """A batch of distributions over the codes 0 and 1."""

    logit: Float[Tensor, "*batch"]

    @property
    def discrete(self) -> bool:
        return True

    @property
    def shape(self) -> torch.Size:
        return self.logit.shape

    def probs(self) -> Float[Tensor, "*batch levels"]:
        """The probability of every level."""
        return torch.stack([torch.sigmoid(-self.logit), torch.sigmoid(self.logit)], dim=-1)

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        valid = (value == 0) | (value == 1)
        one = value > 0.5
        return F.logsigmoid(torch.where(one, self.logit, -self.logit)).masked_fill(~valid, -math.inf)

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        level = torch.rand(self.shape, generator=generator, dtype=self.logit.dtype, device=self.logit.device)
        return (level < torch.sigmoid(self.logit)).to(self.logit.dtype)

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        first = torch.sigmoid(-self.logit)
        return torch.where(value < 0, 0.0, torch.where(value < 1, first, torch.ones_like(first)))

    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        reached = (level > torch.sigmoid(-self.logit)).to(self.logit.dtype)
        return reached.masked_fill(~((level >= 0) & (level <= 1)), math.nan)

    def mean(self) -> Float[Tensor, "*batch"]:
        return torch.sigmoid(self.logit)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """E[function(X)] for a function that acts on each value alone."""
        codes = torch.arange(2, dtype=torch.float64, device=self.logit.device)
        return (self.probs().double() * function(codes)).sum(-1)

    def tempered(self, temperature: float) -> BernoulliDistribution:
        return BernoulliDistribution(self.logit / temperature)

    def entropy(self) -> Float[Tensor, "*batch"]:
        surprise = self.logit.abs()  # of the unlikely level, beyond that of the likely one
        return F.softplus(-surprise) + surprise * torch.sigmoid(-surprise)


@dataclass(eq=False)
class Bernoulli(Head):
    """One feature: the logit of level 1."""

    name: ClassVar[str] = "bernoulli"

    @property
    def size(self) -> int:
        return 1

    @property
    def levels(self) -> int:
        return 2

    @property
    def free(self) -> bool:
        return True

    def forward(self, features: Float[Tensor, "*batch size"]) -> BernoulliDistribution:
        return BernoulliDistribution(features[..., 0])
