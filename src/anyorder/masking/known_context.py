r"""Questions that know a context: another masking about the other variables, and the context known in every query.

    (e, u) ~ M on the N - C variables that are no context:    query p(x_u | x_e, x_context)

What M says of its own variables holds as it stands. The induced distribution and cardinality reweighting are those of M
on N - C variables too: known context is no step of any chain, so it counts for nothing there
(:mod:`anyorder.training.induced`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.errors import UserError
from anyorder.masking.base import Masking, Stage
from anyorder.query import Query
from anyorder.support.checks import whole


@dataclass(frozen=True)
class KnownContext(Masking):
    """``masking`` about the variables outside ``context`` (indices, from 0), which is known in every query."""

    name: ClassVar[str] = "known_context"

    masking: Masking
    context: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.masking, Masking):
            raise UserError(f"known_context masking: masking must be a masking, got {self.masking!r}")
        if not self.context or len(set(self.context)) != len(self.context):
            raise UserError(f"known_context masking: give at least one variable and none twice, got {self.context!r}")
        for index in self.context:
            whole("known_context masking: a variable", index, 0)

    @property
    def staged(self) -> bool:  # type: ignore[override]  # as the masking inside
        return self.masking.staged

    @property
    def mode_names(self) -> tuple[str, ...]:
        return self.masking.mode_names

    @property
    def always_known(self) -> tuple[int, ...]:
        return self.context

    @property
    def beyond_context(self) -> Masking:
        return self.masking

    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        rest = self.rest(variables)
        drawn = self.masking.draw(batch, len(rest), generator)
        return Query(self._with_context(drawn.evidence, variables), spread(drawn.asked, rest, variables))

    def draw_for(self, values: Float[Tensor, "batch variables"], generator: torch.Generator) -> Query:
        variables = values.shape[1]
        rest = self.rest(variables)
        drawn = self.masking.draw_for(values[:, rest], generator)
        return Query(self._with_context(drawn.evidence, variables), spread(drawn.asked, rest, variables))

    def stage(self, batch: int, variables: int, generator: torch.Generator) -> Stage:
        rest = self.rest(variables)
        drawn = self.masking.stage(batch, len(rest), generator)
        known = self._with_context(drawn.known, variables)
        return replace(drawn, known=known, next=spread(drawn.next, rest, variables))

    def rest(self, variables: int) -> list[int]:
        """The variables that are no context."""
        if max(self.context) >= variables:
            raise UserError(f"known_context masking: there is no variable {max(self.context)} among {variables}")
        return [index for index in range(variables) if index not in self.context]

    def _with_context(self, known: Bool[Tensor, "batch rest"], variables: int) -> Bool[Tensor, "batch variables"]:
        whole_set = spread(known, self.rest(variables), variables)
        whole_set[:, list(self.context)] = True
        return whole_set


def spread(mask: Bool[Tensor, "batch rest"], rest: list[int], variables: int) -> Bool[Tensor, "batch variables"]:
    """Sets of the rest as sets of all variables."""
    out = torch.zeros(len(mask), variables, dtype=torch.bool, device=mask.device)
    out[:, rest] = mask
    return out
