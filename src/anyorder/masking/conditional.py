r"""Conditional masking: know one drawn set, ask the rest or a part of it.

    e ~ evidence,  a ~ asks:    query p(x_(a \ e) | x_e),    a = everything if ``asks`` is not given

The arbitrary conditionals of ACE and of MAC's tables 4 and 5. MAC's released code calls this "inpainting".
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
class Conditional(Masking):
    """p(x_rest | x_evidence), evidence being the asked set of a query of the masking ``evidence``.

    With ``asks``, only the part of the rest that lies in the asked set of a second, independent masking is asked.
    A query asks nothing where the evidence covers everything that could be asked; ``Cardinality(least=0, spare=1)``
    as evidence always leaves something.
    """

    name: ClassVar[str] = "conditional"

    evidence: Masking
    asks: Masking | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.evidence, Masking):
            raise UserError(f"conditional masking: evidence must be a masking, got {self.evidence!r}")
        if self.asks is not None and not isinstance(self.asks, Masking):
            raise UserError(f"conditional masking: asks must be a masking or None, got {self.asks!r}")

    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        evidence = self.evidence.draw(batch, variables, generator).asked
        asks = None if self.asks is None else self.asks.draw(batch, variables, generator).asked
        return Query(evidence, ~evidence if asks is None else asks & ~evidence)

    def draw_for(self, values: Float[Tensor, "batch variables"], generator: torch.Generator) -> Query:
        evidence = self.evidence.draw_for(values, generator).asked
        asks = None if self.asks is None else self.asks.draw_for(values, generator).asked
        return Query(evidence, ~evidence if asks is None else asks & ~evidence)
