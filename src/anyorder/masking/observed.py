"""As-observed masking: ask for what the rows of a data set have filled in.

    M(u) = sum of the weights of the patterns equal to u / sum of all weights

Its patterns are the patterns of missingness of a table, so a model trained with it is tuned to the
marginals p(x_observed) that such a table will ask of it; as the evidence of a conditional masking, it is
tuned to filling such a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from anyorder.errors import UserError
from anyorder.masking.base import Masking
from anyorder.query import Query


@dataclass(frozen=True)
class Observed(Masking):
    """p(x_pattern), the pattern drawn from ``patterns`` in proportion to ``weights``.

    A pattern has one 0 or 1 (False or True) per variable; 1 is asked.
    """

    name: ClassVar[str] = "observed"

    patterns: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.patterns or len(self.patterns) != len(self.weights):
            raise UserError(
                f"observed masking: give at least one pattern and one weight for each, "
                f"got {len(self.patterns)} patterns and {len(self.weights)} weights"
            )
        if len({len(pattern) for pattern in self.patterns}) != 1:
            raise UserError("observed masking: all patterns must have the same number of variables")
        if any(entry not in (0, 1) for pattern in self.patterns for entry in pattern):
            raise UserError("observed masking: a pattern holds 0 (missing) and 1 (observed) only")
        check_weights("observed masking", self.weights)

    @classmethod
    def from_observed(cls, observed: Bool[Tensor, "rows variables"], most: int = 1024) -> Observed:
        """Count the patterns of a data set and keep the ``most`` frequent ones.

        Of equally frequent patterns the one seen first stays: where all rows differ that is a sample of the rows, not
        those that happen to sort first.
        """
        if observed.ndim != 2 or observed.shape[0] == 0:
            raise UserError(f"observed masking: needs a table with at least one row, got shape {tuple(observed.shape)}")
        if most < 1:
            raise UserError(f"observed masking: most must be at least 1, got {most}")
        distinct = observed.cpu().bool().unique(dim=0, return_inverse=True, return_counts=True)
        patterns, which, counts = distinct
        rows = torch.arange(len(which))
        seen_first = torch.full_like(counts, len(which)).scatter_reduce(0, which, rows, "amin")
        by_age = seen_first.argsort()
        kept = by_age[counts[by_age].argsort(descending=True, stable=True)][:most]
        return cls(
            tuple(tuple(int(entry) for entry in pattern) for pattern in patterns[kept].tolist()),
            tuple(float(count) for count in counts[kept].tolist()),
        )

    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        width = len(self.patterns[0])
        if width != variables:
            raise UserError(f"observed masking: its patterns have {width} variables, the data {variables}")
        weights = torch.tensor(self.weights, dtype=torch.float64, device=generator.device)
        table = self._table.to(generator.device)
        if batch == 0:  # multinomial refuses to draw nothing
            return Query.marginal(table[:0])
        return Query.marginal(table[torch.multinomial(weights, batch, replacement=True, generator=generator)])

    @cached_property
    def _table(self) -> Bool[Tensor, "patterns variables"]:
        return torch.tensor(self.patterns, dtype=torch.bool)


def check_weights(whose: str, weights: tuple[float, ...]) -> None:
    """Weights to draw by: finite, none negative, not all zero."""
    if any(not 0 <= weight < float("inf") for weight in weights) or not sum(weights) > 0:
        raise UserError(f"{whose}: weights must be finite, none below 0 and at least one above 0, got {weights!r:.80}")
