"""One variable given evidence: the edges (i, e) themselves, e from a masking (M_card-edge of MAC eq. 3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch

from anyorder.errors import UserError
from anyorder.masking.base import Masking
from anyorder.masking.cardinality import Cardinality
from anyorder.query import Query


@dataclass(frozen=True)
class Univariate(Masking):
    """p(x_i | x_e): e is the asked set of a query of ``evidence``, i is uniform among the other variables.

    With the default, |e| is uniform on 0..N-1 and e uniform given its size: what ARDM trains on (its eq. 4), whatever
    the protocol, since a query of one variable has only one order. Nothing is asked where the evidence is everything.
    """

    name: ClassVar[str] = "univariate"

    evidence: Masking = field(default_factory=lambda: Cardinality(least=0, spare=1))

    def __post_init__(self) -> None:
        if not isinstance(self.evidence, Masking):
            raise UserError(f"univariate masking: evidence must be a masking, got {self.evidence!r}")

    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        evidence = self.evidence.draw(batch, variables, generator).asked
        luck = torch.rand(batch, variables, generator=generator, device=generator.device)
        chosen = luck.masked_fill(evidence, -1.0).argmax(dim=1, keepdim=True)
        asked = torch.zeros_like(evidence).scatter(1, chosen, True) & ~evidence
        return Query(evidence, asked)
