"""Bernoulli masking: every variable is asked with the same probability, independently.

    M(u) = p^|u| (1 - p)^(N - |u|)

with u the asked set and N the number of variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.errors import UserError
from anyorder.masking.base import Masking
from anyorder.query import Query


@dataclass(frozen=True)
class Bernoulli(Masking):
    """p(x_asked) where each variable is asked with ``probability``, independently of the others.

    With many variables nearly all queries have about the same size; where sizes should vary, use
    :class:`~anyorder.masking.cardinality.Cardinality`.
    """

    name: ClassVar[str] = "bernoulli"

    probability: float

    def __post_init__(self) -> None:
        if not isinstance(self.probability, int | float) or not 0 <= self.probability <= 1:
            raise UserError(f"bernoulli masking: probability must be a number from 0 to 1, got {self.probability!r}")

    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        noise = torch.rand(batch, variables, generator=generator, device=generator.device)
        return Query.marginal(noise < self.probability)

    def cardinalities(self, variables: int) -> Float[Tensor, " sizes"]:
        return binomial(variables, self.probability)


def binomial(trials: int, probability: float) -> Float[Tensor, " sizes"]:
    """P(successes = 0..trials), by logarithms so that thousands of trials do not overflow."""
    hits = torch.arange(trials + 1, dtype=torch.float64)
    p = torch.tensor(probability, dtype=torch.float64)
    subsets = torch.lgamma(hits[-1] + 1) - torch.lgamma(hits + 1) - torch.lgamma(trials - hits + 1)
    # xlogy takes 0 log 0 as 0, which makes probabilities 0 and 1 come out right.
    law = (subsets + torch.xlogy(hits, p) + torch.xlogy(trials - hits, 1 - p)).exp()
    return law / law.sum()
