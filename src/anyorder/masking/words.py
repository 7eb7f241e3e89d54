"""Word masking: whole words are asked, given the others and all the gaps between them.

    every maximal run without a separator is asked with probability ``share``, each by itself

It must see the text: which positions are words is a matter of the values, so a query is drawn *for* them.
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
class Words(Masking):
    """``separators`` are the codes that part words (of the space, say); they are always evidence."""

    name: ClassVar[str] = "words"

    separators: tuple[int, ...]
    share: float = 0.3

    def __post_init__(self) -> None:
        if not self.separators:
            raise UserError("words masking: give the codes of the characters that part words")
        if not 0 < self.share < 1:
            raise UserError(f"words masking: share must lie between 0 and 1, got {self.share!r}")

    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        raise UserError("words masking: which variables are words depends on the text; draw it for values")

    def draw_for(self, values: Float[Tensor, "batch variables"], generator: torch.Generator) -> Query:
        gap = torch.isin(values.long(), torch.tensor(self.separators, device=values.device))
        # A word's number is that of the gaps before it, so its letters share one coin.
        number = gap.long().cumsum(dim=1)
        coins = torch.rand(len(values), values.shape[1] + 1, generator=generator, device=generator.device)
        asked = (coins < self.share).gather(1, number) & ~gap
        return Query(~asked, asked)
