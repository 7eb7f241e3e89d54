"""Months, quarters, half-years and weeks: 2024-05, May 2024, 2024-Q3, H1 2024, 2024-W07. They count up without gaps."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self, final

from anyorder.errors import UserError
from anyorder.variables.centuries import USUAL
from anyorder.variables.month_names import LONG, from_english, is_style, styles_of, to_english
from anyorder.variables.notations.base import Notation

FORMS = (
    "YYYY-MM", "YYYY/MM", "MM/YYYY", "MM.YYYY", "MM-YYYY", "MMMM YYYY", "MMM YYYY", "MMM-YYYY", "MMM-YY", "MMM YY",
    "YYYY MMM", "YYYY-MMM", "YYYYMmm", "YYYY-Qq", "YYYYQq", "YYYY Qq", "Qq YYYY", "Qq-YYYY", "Qq/YYYY", "YYYY-Www",
    "YYYYWww", "YYYY Www", "YYYYMM", "YYYYWW", "MM/YY",
    "Tq YYYY", "Tq-YYYY", "YYYY-Tq", "YYYYTq", "YYYY Tq", "YYYY/Qq", "qQ YYYY", "qQYYYY", "qT YYYY", "qTYYYY",
    "Hh YYYY", "YYYY-Hh", "YYYY Hh", "YYYYHh", "KW WW/YYYY", "KWWW/YYYY", "KW w/YYYY", "YYYY-KWWW", "YYYY KWWW",
)  # fmt: skip
_FIELDS = {
    "YYYY": r"(?P<year>(?:19|20)\d\d)",
    "YY": r"(?P<short>\d\d)",
    "MMMM": rf"(?P<long>(?i:{'|'.join(LONG)}))",
    "MMM": rf"(?P<name>(?i:{'|'.join(month[:3] for month in LONG)}))\.?",
    "MM": r"(?P<month>0[1-9]|1[0-2])",
    "Mmm": r"M(?P<month>0[1-9]|1[0-2])",
    "Qq": r"Q(?P<quarter>[1-4])",
    "Tq": r"T(?P<quarter>[1-4])",
    "qQ": r"(?P<quarter>[1-4])Q",
    "qT": r"(?P<quarter>[1-4])T",
    "Hh": r"H(?P<half>[12])",
    "KW w": r"KW (?P<week>[1-9]|[1-4]\d|5[0-3])",
    "KWWW": r"KW(?P<week>[0-4]\d|5[0-3])",
    "Www": r"W(?P<week>[0-4]\d|5[0-3])",
    "WW": r"(?P<week>[0-4]\d|5[0-3])",
}
_TOKEN = re.compile("YYYY|YY|MMMM|MMM|MM|Mmm|Qq|Tq|qQ|qT|Hh|KW w|KWWW|Www|WW")
_UNITS = {"W": "weeks", "q": "quarters", "h": "half-years"}
DIGITS = ("YYYYMM", "YYYYWW")
BY_NAME = (*DIGITS, "MM/YY")
"""Digits alone more often are a number, and 06/29 a day: whoever asks for them has seen that they are periods."""


def _is_season(text: str) -> bool:
    """Whether this is a year and the next one: 2008/09."""
    parts = re.fullmatch(r"(\d{4})[/-](\d\d)", text)
    return parts is not None and (int(parts[1]) + 1) % 100 == int(parts[2])


@final
@dataclass(frozen=True)
class PeriodNotation(Notation):
    """Periods by number: months, quarters or half-years since the year 0, weeks since the first Monday of the calendar.

    ``style`` is the way in which another language than English names months: see
    :mod:`~anyorder.variables.month_names`. Years of two digits are those from ``first`` on.
    """

    name: ClassVar[str] = "period"
    priority: ClassVar[int] = 3

    form: str = "YYYY-MM"
    upper: bool = False
    style: str = field(default="", metadata={"later": True})
    first: int = field(default=USUAL, metadata={"later": True})

    def __post_init__(self) -> None:
        if self.style and not is_style(self.style):
            raise UserError(f"no names of months are {self.style!r}")
        if self.form not in FORMS:
            raise UserError(f"no way to write months, quarters, half-years or weeks is {self.form!r}")

    @classmethod
    def find(cls, texts: Sequence[str], *, decimal_comma: bool = False) -> Self | None:
        ways = [cls._english(texts)]
        for style, long in styles_of(texts) if texts and any(map(str.isalpha, texts[0])) else ():
            found = cls._english([to_english(text, style, long=long) for text in texts])
            if found is not None and "MMM" in found.form and ("MMMM" in found.form) == long:
                ways.append(replace(found, style=style))
        fit = [way for way in ways if way is not None]
        return next((way for way in fit if way._writes(texts)), fit[0] if fit else None)

    @classmethod
    def _english(cls, texts: Sequence[str]) -> Self | None:
        for form in FORMS:
            if form in ("YYYY/MM", "YYYY-MM") and all(_is_season(text) for text in texts):
                continue
            if form in BY_NAME:
                continue
            found = cls(form, texts[0].isupper() if texts else False)
            if all(found.read(text) is not None for text in texts):
                return found
        return None

    def _writes(self, texts: Sequence[str]) -> bool:
        return all(self.write(self.read(text) or 0.0) == text for text in texts)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(_TOKEN.sub(lambda token: _FIELDS[token[0]], self.form.replace(".", r"\.")))

    def read(self, text: str) -> float | None:
        if self.style:
            text = to_english(text, self.style, long="MMMM" in self.form)
        found = self._pattern.fullmatch(text.strip())
        if found is None:
            return None
        parts = found.groupdict()
        if parts.get("short") is not None:
            year = self.first + (int(parts["short"]) - self.first) % 100
        else:
            year = int(parts["year"])
        if parts.get("week") is not None:
            try:
                return float(datetime.date.fromisocalendar(year, int(parts["week"]), 1).toordinal() // 7)
            except ValueError:
                return None
        if parts.get("quarter") is not None:
            return 4.0 * year + int(parts["quarter"]) - 1
        if parts.get("half") is not None:
            return 2.0 * year + int(parts["half"]) - 1
        named = parts.get("long") or parts.get("name")
        month = [each[:3].casefold() for each in LONG].index(named[:3].casefold()) if named else int(parts["month"]) - 1
        return 12.0 * year + month

    @property
    def digits(self) -> bool:
        return self.form in DIGITS

    def write(self, value: float) -> str:
        number = round(value)
        if "W" in self.form:
            year, week, _ = datetime.date.fromordinal(max(1, number * 7 + 1)).isocalendar()
            month = quarter = 0
        else:
            year, rest = divmod(number, 4 if "q" in self.form else 2 if "h" in self.form else 12)
            month, quarter, week = rest % 12, rest + 1, 0
        said = {
            "YYYY": f"{year:04d}", "YY": f"{year % 100:02d}", "MMMM": LONG[month], "MMM": LONG[month][:3],
            "MM": f"{month + 1:02d}", "Mmm": f"M{month + 1:02d}", "Qq": f"Q{quarter}", "Www": f"W{week:02d}",
            "WW": f"{week:02d}", "Tq": f"T{quarter}", "qQ": f"{quarter}Q", "qT": f"{quarter}T", "Hh": f"H{quarter}",
            "KW w": f"KW {week}", "KWWW": f"KW{week:02d}",
        }  # fmt: skip
        text = _TOKEN.sub(lambda token: said[token[0]], self.form)
        if self.style:
            text = from_english(text, self.style, long="MMMM" in self.form)
        return text.upper() if self.upper else text

    @property
    def unit(self) -> str:
        return next((unit for letter, unit in _UNITS.items() if letter in self.form), "months")

    @property
    def meaning(self) -> str:
        if self.unit != "months":
            return "a half-year" if self.unit == "half-years" else f"a {self.unit.removesuffix('s')} of a year"
        years = f", from {self.first} to {self.first + 99}" if self.first != USUAL else ""
        return f"a month of a year{years}"
