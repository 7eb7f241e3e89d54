r"""Span masking: holes that are runs of neighbours, as they are in damaged or edited text.

Position after position the text is in a hole or not: a stationary two-state Markov chain,

    P(hole at i + 1 | hole at i) = 1 - 1 / length,    P(hole) = share,

so holes are geometric with mean ``length``, and so are the stretches between them, with mean
length (1 - share) / share. Everything outside the holes is evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from anyorder.errors import UserError
from anyorder.masking.base import Masking
from anyorder.query import Query


@dataclass(frozen=True)
class Spans(Masking):
    """Holes of mean ``length`` cover ``share`` of the variables on average; a query may happen to have none."""

    name: ClassVar[str] = "spans"

    length: float = 6.0
    share: float = 0.3

    def __post_init__(self) -> None:
        if not self.length >= 1:
            raise UserError(f"spans masking: length must be 1 or more, got {self.length!r}")
        if not 0 < self.share < 1 or self.share > self.length * (1 - self.share):
            most = self.length / (1 + self.length)
            raise UserError(
                f"spans masking: share must lie in (0, {most:.3g}], since holes of mean length {self.length:g} have at "
                f"least one variable between them; got {self.share!r}"
            )

    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        chance = torch.rand(variables, batch, generator=generator, device=generator.device, dtype=torch.float64)
        ends = 1 / self.length
        begins = self.share / (1 - self.share) * ends
        holes = torch.zeros(variables, batch, dtype=torch.bool, device=generator.device)
        if variables:
            holes[0] = chance[0] < self.share
        for index in range(1, variables):
            holes[index] = torch.where(holes[index - 1], chance[index] >= ends, chance[index] < begins)
        asked = holes.T.contiguous()
        return Query(~asked, asked)
