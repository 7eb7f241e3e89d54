"""How much a description may ask for: in proportion to the tensors that came with it.

A few words can ask for any amount of memory ("width": 30000) or time ("blocks": 1000000). What a model is made of is
in its file, so whoever builds it from a description counts what is made, before it is made, and stops at a multiple.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from anyorder.errors import UserError

FREE_NUMBERS = 1 << 24
"""Tables that follow from the description and are in no file (positions, features of each variable): 128 MB of them."""

FREE_TENSORS = 1024

TIMES = 8
"""Beyond what is free, so many times what the file has: some tensors are made twice, or only to compute others."""


@dataclass
class Allowance:
    """What may be made of a file with so many ``numbers`` in so many ``tensors``."""

    numbers: int
    tensors: int
    _numbers_left: int = field(init=False)
    _tensors_left: int = field(init=False)

    def __post_init__(self) -> None:
        self._numbers_left = FREE_NUMBERS + TIMES * self.numbers
        self._tensors_left = FREE_TENSORS + TIMES * self.tensors

    def take(self, shape: Iterable[int]) -> None:
        """Count a tensor that is about to be made."""
        self._numbers_left -= math.prod(shape)
        self._tensors_left -= 1
        if self._numbers_left < 0 or self._tensors_left < 0:
            raise self._refusal()

    def check(self, numbers: int) -> None:
        """Refuse to make something of so many numbers; nothing is counted."""
        if numbers > self._numbers_left:
            raise self._refusal()

    def _refusal(self) -> UserError:
        return UserError(
            f"more is declared than the file holds: {self.numbers} numbers in {self.tensors} tensors are there; "
            "a size in the description is wrong"
        )
