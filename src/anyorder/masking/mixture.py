"""Mixture of maskings: each query comes from one of several maskings, in proportion to their weights.

    M(q) = sum_k weight_k M_k(q) / sum_k weight_k

The way to train for several kinds of question at once: marginals and conditionals, for example.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.errors import UserError
from anyorder.masking.base import Masking
from anyorder.masking.observed import check_weights
from anyorder.query import Query


@dataclass(frozen=True)
class Mixture(Masking):
    """Each row independently drawn from one of ``maskings``, chosen in proportion to ``weights``."""

    name: ClassVar[str] = "mixture"

    maskings: tuple[Masking, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.maskings or len(self.maskings) != len(self.weights):
            raise UserError(
                f"mixture masking: give at least one masking and one weight for each, "
                f"got {len(self.maskings)} maskings and {len(self.weights)} weights"
            )
        for masking in self.maskings:
            if not isinstance(masking, Masking):
                raise UserError(f"mixture masking: {masking!r} is not a masking")
        check_weights("mixture masking", self.weights)

    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        return self._draw(batch, variables, generator, lambda part, rows: part.draw(len(rows), variables, generator))

    def draw_for(self, values: Float[Tensor, "batch variables"], generator: torch.Generator) -> Query:
        batch, variables = values.shape
        return self._draw(batch, variables, generator, lambda part, rows: part.draw_for(values[rows], generator))

    def _draw(
        self, batch: int, variables: int, generator: torch.Generator, draw: Callable[[Masking, Tensor], Query]
    ) -> Query:
        device = generator.device
        evidence = torch.zeros(batch, variables, dtype=torch.bool, device=device)
        asked = torch.zeros_like(evidence)
        choice = torch.zeros(batch, dtype=torch.long, device=device)
        if batch:
            weights = torch.tensor(self.weights, dtype=torch.float64, device=device)
            choice = torch.multinomial(weights, batch, replacement=True, generator=generator)
        for part, masking in enumerate(self.maskings):
            rows = (choice == part).nonzero().squeeze(1)
            query = draw(masking, rows)
            evidence[rows] = query.evidence
            asked[rows] = query.asked
        return Query(evidence, asked)

    def cardinalities(self, variables: int) -> Float[Tensor, " sizes"] | None:
        # A mixture of laws that only look at the size only looks at the size.
        laws = [masking.cardinalities(variables) for masking in self.maskings]
        known = [law for law in laws if law is not None]
        if len(known) < len(laws):
            return None
        weights = torch.tensor(self.weights, dtype=torch.float64)
        return (weights / weights.sum()) @ torch.stack(known)
