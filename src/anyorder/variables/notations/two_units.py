"""Measures of two units of which one is a multiple of the other: 5 ft 11 in, 5'11", 7 lb 3 oz, 2 years 3 months."""

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
    (12, "months", r"years?|yrs?\.?|[yJa]|Jahre?|ans?|años?", r"months?|mos?\.?|[mM]|Monate?|mois|mes(?:es)?"),
    (7, "days", r"weeks?|wks?\.?|[wW]|Wochen?|sem(?:aines?|anas?)?\.?", r"days?|[dTj]|Tage?|jours?|días?"),
)
"""How many of the smaller unit make one of the greater, the name of the smaller one, and how both are written."""
_JOINED = r",?\s?(?:(?:and|und|et|y) )?"
_PARTS = {
    unit: re.compile(
        rf"(?P<first>\d{{1,3}})(?P<great>\s?(?:{great}))"
        rf"(?:(?P<between>{_JOINED})(?P<second>\d{{1,2}}(?:\.\d{{1,2}})?)"
        rf"(?P<small>\s?(?:{small})|(?<={_QUOTE}\d)|(?<={_QUOTE}\d\d)))?"
    )
    for _, unit, great, small in MEASURES
}
_TIMES = {unit: times for times, unit, _, _ in MEASURES}
MOST_PLACES = 2


@final
@dataclass(frozen=True)
class TwoUnitsNotation(Notation):
    """Numbers of the smaller unit. ``middle`` stands between the two numbers, ``end`` behind the second.

    ``bare``: a part of nothing is not written (6'), and ``alone`` is what then stands behind the first number.
    ``one_middle`` and ``one_end`` stand in their place behind a 1, where words have a singular.
    ``places`` are the digits after the point, at most; with ``fixed`` always so many.
    """

    name: ClassVar[str] = "two units"
    priority: ClassVar[int] = 2

    measure: str = "inches"
    middle: str = "'"
    end: str = '"'
    bare: bool = False
    alone: str = ""
    places: int = 0
    fixed: bool = True
    one_middle: str = ""
    one_end: str = ""

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
            middle, one_middle = _usual([(each["first"], each["great"] + each["between"]) for each in both])
            end, one_end = _usual([(each["second"], each["small"]) for each in both])
            places = {len(each["second"].partition(".")[2]) for each in both}
            alone = Counter(each["great"] for each in parts if each["second"] is None).most_common(1)
            bare = alone[0][0] if alone else ""
            return cls(unit, middle, end, bool(alone), bare, max(places), len(places) == 1, one_middle, one_end)
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
        middle = self.one_middle if first == 1 and self.one_middle else self.middle
        end = self.one_end if digits == "1" and self.one_end else self.end
        return f"{int(first)}{middle}{digits}{end}"

    @property
    def meaning(self) -> str:
        return f"a measure, in {self.measure}"

    @property
    def unit(self) -> str:
        return self.measure

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        return 0.0, None


def _usual(pairs: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """What stands behind most numbers, and behind a 1 if that is something else."""
    ones = Counter(word for number, word in pairs if number == "1").most_common(1)
    most = Counter(word for number, word in pairs if number != "1").most_common(1) or ones
    return most[0][0], ones[0][0] if ones and ones[0][0] != most[0][0] else ""
