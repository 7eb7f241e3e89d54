"""Measures of two units of which one is a multiple of the other: 5 ft 11 in, 5'11", 7 lb 3 oz, 11 st 4 lb."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self, final

from anyorder.errors import UserError
from anyorder.variables.notations.base import Notation

_QUOTE, _QUOTES = (
    "['\N{PRIME}\N{RIGHT SINGLE QUOTATION MARK}]",
    "(?:\"|\N{DOUBLE PRIME}|''|\N{RIGHT DOUBLE QUOTATION MARK})",
)
MEASURES = (
    (12, "inches", rf"ft\.?|feet|foot|{_QUOTE}", rf"in\.?|inch(?:es)?|{_QUOTES}"),
    (16, "ounces", r"lbs?\.?|pounds?", r"oz\.?|ounces?"),
    (14, "pounds", r"st\.?|stone", r"lbs?\.?|pounds?"),
)
"""How many of the smaller unit make one of the greater, the name of the smaller one, and how both are written."""
_PARTS = {
    unit: re.compile(
        rf"(?P<first>\d{{1,3}})(?P<great>\s?(?:{great}))"
        rf"(?:(?P<between>,?\s?)(?P<second>\d{{1,2}}(?:\.\d{{1,2}})?)(?P<small>\s?(?:{small})|(?<={_QUOTE}\d)|(?<={_QUOTE}\d\d)))?"
    )
    for _, unit, great, small in MEASURES
}
_TIMES = {unit: times for times, unit, _, _ in MEASURES}
MOST_PLACES = 2


@final
@dataclass(frozen=True)
class ImperialNotation(Notation):
    """Numbers of the smaller unit. ``middle`` stands between the two numbers, ``end`` behind the second.

    ``bare``: a part of nothing is not written (6'), and ``alone`` is what then stands behind the first number.
    ``places`` are the digits after the point, at most; with ``fixed`` always so many.
    """

    name: ClassVar[str] = "imperial"
    priority: ClassVar[int] = 2

    measure: str = "inches"
    middle: str = "'"
    end: str = '"'
    bare: bool = False
    alone: str = ""
    places: int = 0
    fixed: bool = True

    def __post_init__(self) -> None:
        if self.measure not in _TIMES or not 0 <= self.places <= MOST_PLACES:
            raise UserError(f"no such measure: {self.measure!r} with {self.places!r} places")

    @classmethod
    def find(cls, texts: Sequence[str], *, decimal_comma: bool = False) -> Self | None:
        for unit, pattern in _PARTS.items():
            if not texts or pattern.fullmatch(texts[0]) is None:
                continue
            parts = [found for text in texts if (found := pattern.fullmatch(text))]
            both = [each for each in parts if each["second"] is not None]
            if len(parts) < len(texts) or not both or any(float(each["second"]) >= _TIMES[unit] for each in both):
                continue
            middle = Counter(each["great"] + each["between"] for each in both).most_common(1)[0][0]
            end = Counter(each["small"] for each in both).most_common(1)[0][0]
            places = {len(each["second"].partition(".")[2]) for each in both}
            alone = Counter(each["great"] for each in parts if each["second"] is None).most_common(1)
            return cls(unit, middle, end, bool(alone), alone[0][0] if alone else "", max(places), len(places) == 1)
        return None

    def read(self, text: str) -> float | None:
        parts = _PARTS[self.measure].fullmatch(text.strip())
        if parts is None:
            return None
        second = float(parts["second"] or 0)
        return None if second >= _TIMES[self.measure] else _TIMES[self.measure] * int(parts["first"]) + second

    def write(self, value: float) -> str:
        size = round(max(0.0, value), self.places)
        first, second = divmod(size, _TIMES[self.measure])
        if self.bare and not second:
            return f"{int(first)}{self.alone}"
        digits = f"{second:.{self.places}f}"
        if not self.fixed and self.places:
            digits = digits.rstrip("0").rstrip(".")
        return f"{int(first)}{self.middle}{digits}{self.end}"

    @property
    def meaning(self) -> str:
        return f"a measure, in {self.measure}"

    @property
    def unit(self) -> str:
        return self.measure

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        return 0.0, None
