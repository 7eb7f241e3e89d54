"""Stretch masking: a question about a part of a text that is shorter than the model's window.

    n ~ Uniform{least, ..., N},  start ~ Uniform{0, ..., N - n},  the query of ``inner`` on those n variables

Whatever lies outside the stretch is neither known nor asked. With ``anchored`` every stretch begins at 0.
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
class Stretch(Masking):
    """``inner`` is drawn for the whole window and cut to the stretch; its size is uniform on ``least`` .. variables."""

    name: ClassVar[str] = "stretch"

    inner: Masking
    least: int = 1
    anchored: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Masking):
            raise UserError(f"stretch masking: inner must be a masking, got {self.inner!r}")
        if not isinstance(self.least, int) or self.least < 1:
            raise UserError(f"stretch masking: least must be a whole number from 1 up, got {self.least!r}")

    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        return self._cut(self.inner.draw(batch, variables, generator), generator)

    def draw_for(self, values: Float[Tensor, "batch variables"], generator: torch.Generator) -> Query:
        return self._cut(self.inner.draw_for(values, generator), generator)

    def _cut(self, query: Query, generator: torch.Generator) -> Query:
        batch, variables = query.asked.shape
        least = min(self.least, variables)
        size = torch.randint(least, variables + 1, (batch, 1), generator=generator, device=generator.device)
        start = torch.rand(batch, 1, generator=generator, device=generator.device, dtype=torch.float64)
        start = torch.zeros_like(size) if self.anchored else (start * (variables - size + 1)).long()
        position = torch.arange(variables, device=generator.device)
        return query.among((position >= start) & (position < start + size))
