"""Cardinality masking: first how many variables, then which.

    |u| ~ Uniform{least, ..., N - spare},    u ~ Uniform{subsets of that size}

With the defaults this is M_card, the test masks of MAC (Mcard-mask, section 4.1), ARDM and ACE:
M(u) = 1 / (N C(N, |u|)) for every non-empty u.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.masking.base import Masking
from anyorder.query import Query, random_subset


@dataclass(frozen=True)
class Cardinality(Masking):
    """p(x_asked) with |asked| uniform on ``least .. variables - spare``, then a uniform set of that size.

    As the evidence of a :class:`~anyorder.masking.conditional.Conditional`, ``least=0, spare=1`` leaves
    from one variable to all of them to be asked.
    """

    name: ClassVar[str] = "cardinality"

    least: int = 1
    spare: int = 0

    def __post_init__(self) -> None:
        for option in ("least", "spare"):
            value = getattr(self, option)
            if not isinstance(value, int) or value < 0:
                raise UserError(f"cardinality masking: {option} must be a whole number from 0 up, got {value!r}")

    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        self._check(variables)
        sizes = torch.randint(
            self.least, variables - self.spare + 1, (batch,), generator=generator, device=generator.device
        )
        return Query.marginal(masks_of_size(sizes, variables, generator))

    def cardinalities(self, variables: int) -> Float[Tensor, " sizes"]:
        self._check(variables)
        law = torch.zeros(variables + 1, dtype=torch.float64)
        law[self.least : variables - self.spare + 1] = 1 / (variables - self.spare - self.least + 1)
        return law

    def _check(self, variables: int) -> None:
        if self.least > variables - self.spare:
            raise UserError(
                f"cardinality masking: no size lies between least={self.least} and {variables} variables minus "
                f"spare={self.spare}; make least or spare smaller"
            )


def masks_of_size(
    sizes: Int[Tensor, " batch"], variables: int, generator: torch.Generator
) -> Bool[Tensor, "batch variables"]:
    """One uniformly drawn set per row, of the size given for that row."""
    everything = torch.ones(len(sizes), variables, dtype=torch.bool, device=generator.device)
    return random_subset(everything, sizes, generator)
