"""K levels, coded 0..K-1: p(k) = softmax(logits)_k. Every level is one a cell can have; none stands for "unknown"."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.errors import UserError
from anyorder.heads._mixture import draw
from anyorder.heads.base import Head


@dataclass(frozen=True, eq=False)
class CategoricalDistribution(Distribution):
    """A batch of distributions over codes; mean, cdf and quantile read the codes as numbers."""

    logits: Float[Tensor, "*batch levels"]

    @property
    def discrete(self) -> bool:
        return True

    @property
    def shape(self) -> torch.Size:
        return self.logits.shape[:-1]

    @property  # not cached: whoever asks first may do so without gradients
    def _log_probs(self) -> Float[Tensor, "*batch levels"]:
        return self.logits.log_softmax(-1)

    def probs(self) -> Float[Tensor, "*batch levels"]:
        """The probability of every level."""
        return self._log_probs.exp()

    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        shape = np.broadcast_shapes(value.shape, self.shape)
        code = value.long().clamp(0, self.logits.shape[-1] - 1)
        table = self._log_probs.expand(*shape, -1)
        found = table.gather(-1, code.expand(shape)[..., None])[..., 0]
        return found.masked_fill(value != code, -math.inf)

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        return draw(self.logits, generator).to(self.logits.dtype)

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        shape = np.broadcast_shapes(value.shape, self.shape)
        last = self.logits.shape[-1] - 1
        code = value.floor().clamp(0, last).long()
        found = self._totals().expand(*shape, -1).gather(-1, code.expand(shape)[..., None])[..., 0]
        return torch.where(value < 0, 0.0, found).masked_fill(value >= last, 1.0)

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        short = self._totals()[..., :-1] < level[..., None]
        code = short.sum(-1).to(self.logits.dtype)
        return code.masked_fill(~((level >= 0) & (level <= 1)), math.nan)

    def mean(self) -> Float[Tensor, "*batch"]:
        return self.expect(lambda codes: codes).to(self.logits.dtype)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """E[function(X)] for a function that acts on each value alone."""
        codes = torch.arange(self.logits.shape[-1], dtype=torch.float64, device=self.logits.device)
        return (self.probs().double() * function(codes)).sum(-1)

    def tempered(self, temperature: float) -> CategoricalDistribution:
        return CategoricalDistribution(self.logits / temperature)

    def entropy(self) -> Float[Tensor, "*batch"]:
        # The clamp makes 0 log 0 = 0 also for a level ruled out by a logit of -inf.
        return -(self.probs() * self._log_probs.clamp(min=torch.finfo(self.logits.dtype).min)).sum(-1)

    def _totals(self) -> Float[Tensor, "*batch levels"]:
        return self.probs().cumsum(-1)


@dataclass(eq=False)
class Categorical(Head):
    """One feature per level: its logit."""

    name: ClassVar[str] = "categorical"

    levels: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.levels < 1:
            raise UserError(f"a categorical head needs at least one level, got {self.levels}")

    @property
    def size(self) -> int:
        return self.levels

    @property
    def free(self) -> bool:
        return True

    def forward(self, features: Float[Tensor, "*batch size"]) -> CategoricalDistribution:
        return CategoricalDistribution(features)
