"""Whole numbers of one length with zeros before them: 07 for an hour or a month. The column's name must say so.

Codes are written like that too, and they are no numbers. So nobody finds this notation by the cells alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self, final

from anyorder.errors import UserError
from anyorder.variables.notations.base import Notation

LONGEST = 9


@final
@dataclass(frozen=True)
class PaddedNotation(Notation):
    """``width``: how many digits every number has at least."""

    name: ClassVar[str] = "padded"

    width: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.width, int) or not 2 <= self.width <= LONGEST:
            raise UserError(f"padded numbers have 2 to {LONGEST} digits, got {self.width!r}")

    @classmethod
    def find(cls, texts: Sequence[str], *, decimal_comma: bool = False) -> Self | None:
        return None

    def read(self, text: str) -> float | None:
        text = text.strip()
        digits = len(text) == self.width or (len(text) > self.width and not text.startswith("0"))
        return float(text) if digits and text.isascii() and text.isdigit() else None

    def write(self, value: float) -> str:
        return f"{max(0, round(value)):0{self.width}d}"

    @property
    def meaning(self) -> str:
        return "a whole number with zeros before it"

    @property
    def unit(self) -> str:
        return ""

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        return 0.0, None
