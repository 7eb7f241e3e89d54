"""Uniform masking: every subset of the variables is equally likely to be asked.

    M(u) = 2^-N    for all u, the empty one included

the uniform law on the whole lattice of masks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.masking.base import Masking
from anyorder.masking.bernoulli import binomial
from anyorder.query import Query


@dataclass(frozen=True)
class Uniform(Masking):
    """p(x_asked), uniform over all 2^N sets.

    With many variables nearly every set has about half of them: small and nearly full sets, the ones
    people ask about, are hardly ever drawn.
    """

    name: ClassVar[str] = "uniform"

    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        coins = torch.randint(0, 2, (batch, variables), generator=generator, device=generator.device)
        return Query.marginal(coins.bool())

    def cardinalities(self, variables: int) -> Float[Tensor, " sizes"]:
        return binomial(variables, 0.5)
