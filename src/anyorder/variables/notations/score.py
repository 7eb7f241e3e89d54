"""Scores out of a total that is always the same: 4/5, 8.5/10, 14 von 20, 3 out of 5."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self, final

from anyorder.errors import UserError
from anyorder.variables.notations.base import Notation

_PARTS = re.compile(
    r"(?P<value>(?:0|[1-9]\d{0,2})(?:[.,]\d{1,2})?)(?P<between>\s?/\s?| (?:out of|of|von|sur|su|de|van) )"
    r"(?P<total>[1-9]\d{0,2})"
)
TOTALS = (3, 4, 5, 6, 7, 10, 20, 30, 40, 50, 100)
"""What scores are given out of behind a stroke; 5/24 more likely is a month."""
YEARS = range(20, 31)
MOST_PLACES = 2


@final
@dataclass(frozen=True)
class ScoreNotation(Notation):
    """The number before the total. ``between`` stands before the total, spaces and all.

    ``places`` are the digits after the ``decimal`` sign, at most; with ``fixed`` always so many.
    """

    name: ClassVar[str] = "score"
    priority: ClassVar[int] = 2

    total: int = 5
    between: str = "/"
    decimal: str = "."
    places: int = 0
    fixed: bool = True

    def __post_init__(self) -> None:
        if self.total < 1 or self.decimal not in (".", ",") or not 0 <= self.places <= MOST_PLACES:
            raise UserError(f"no such score: total={self.total!r}, decimal={self.decimal!r}, places={self.places!r}")

    @classmethod
    def find(cls, texts: Sequence[str], *, decimal_comma: bool = False) -> Self | None:
        if not texts or _PARTS.fullmatch(texts[0]) is None:
            return None
        parts = [found for text in texts if (found := _PARTS.fullmatch(text))]
        forms = {(each["between"], each["total"]) for each in parts}
        if len(parts) < len(texts) or len(parts) < 3 or len(forms) > 1:
            return None
        between, total = forms.pop()
        values = [each["value"] for each in parts]
        if any(float(value.replace(",", ".")) > int(total) for value in values):
            return None
        months = int(total) in YEARS and all(value.isdigit() and 1 <= int(value) <= 12 for value in values)
        if between.strip() == "/" and (int(total) not in TOTALS or months):
            return None
        places = {len(re.sub(r"^\d+\D?", "", value)) for value in values}
        decimal = "," if any("," in value for value in values) else "."
        return cls(int(total), between, decimal, max(places), len(places) == 1)

    def read(self, text: str) -> float | None:
        parts = _PARTS.fullmatch(text.strip())
        if parts is None or int(parts["total"]) != self.total:
            return None
        return float(parts["value"].replace(",", "."))

    def write(self, value: float) -> str:
        digits = f"{value:.{self.places}f}"
        if not self.fixed and self.places:
            digits = digits.rstrip("0").rstrip(".")
        return f"{digits.replace('.', self.decimal)}{self.between}{self.total}"

    @property
    def meaning(self) -> str:
        return f"a score out of {self.total}"

    @property
    def unit(self) -> str:
        return f"of {self.total}"

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        return 0.0, float(self.total)
