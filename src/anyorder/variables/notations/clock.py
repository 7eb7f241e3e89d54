"""Times of day and lengths of time, in hours, minutes and seconds: 14:30, 2:30 PM, 14:30 Uhr, 1:23:45, 12:07.5."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self, final

from anyorder.errors import UserError
from anyorder.variables.notations.base import Notation

_PARTS = re.compile(
    r"(?P<minus>-)?(?P<first>\d{1,4}):(?P<second>[0-5]\d)(?::(?P<third>[0-5]\d))?(?:\.(?P<fraction>\d{1,6}))?"
    r"(?P<gap>\s?)(?:(?P<half>[AaPp]\.?[Mm]\.?)|(?P<word>Uhr|[Hh]|[Hh]rs?\.?|[Hh]s|min|[Mm]ins?))?"
)


@final
@dataclass(frozen=True)
class ClockNotation(Notation):
    """Numbers of the smallest part that is written: minutes in 14:30, seconds in 14:30:00.

    ``parts`` is 2 or 3, ``pad`` whether the first has two digits at least, ``half`` how the half of the day is written
    in the morning ("AM", " am"; empty on a clock of 24 hours), ``places`` the digits of a fraction, ``day`` whether it
    is a time of day, which ends at midnight. ``word`` stands behind all of them (" Uhr"). ``short``: two parts are
    minutes and seconds, not hours and minutes.
    """

    name: ClassVar[str] = "clock"
    priority: ClassVar[int] = 2

    parts: int = 2
    pad: bool = True
    half: str = ""
    places: int = 0
    day: bool = True
    word: str = field(default="", metadata={"later": True})
    short: bool = field(default=False, metadata={"later": True})

    def __post_init__(self) -> None:
        if self.parts not in (2, 3) or not 0 <= self.places <= 6:
            raise UserError(f"no such clock: parts={self.parts!r}, places={self.places!r}")

    @classmethod
    def find(cls, texts: Sequence[str], *, decimal_comma: bool = False) -> Self | None:
        found = [_PARTS.fullmatch(text) for text in texts]
        parts = [each for each in found if each is not None]
        if not parts or len(parts) < len(texts):
            return None
        halves = [each["gap"] + each["half"] for each in parts if each["half"]]
        thirds = {each["third"] is not None for each in parts}
        words = {each["gap"] + each["word"] if each["word"] else "" for each in parts}
        if len(thirds) > 1 or (halves and len(halves) < len(parts)) or len(words) > 1:
            return None
        if halves and not all(1 <= int(each["first"]) <= 12 for each in parts):
            return None
        day = all(int(each["first"]) < 24 and not each["minus"] and not each["fraction"] for each in parts)
        half = re.sub("[Pp]", lambda letter: "A" if letter[0] == "P" else "a", halves[0]) if halves else ""
        pad = not any(len(each["first"]) == 1 for each in parts)
        places = max(len(each["fraction"] or "") for each in parts)
        short = thirds == {False} and (bool(places) or "min" in min(words).casefold())
        return cls(3 if thirds == {True} else 2, pad, half, places, day and not short, words.pop(), short)

    def read(self, text: str) -> float | None:
        parts = _PARTS.fullmatch(text.strip())
        if parts is None:
            return None
        first = int(parts["first"])
        if parts["half"]:
            if not 1 <= first <= 12:
                return None
            first = first % 12 + 12 * (parts["half"][0] in "Pp")
        elif self.half and first > 23:
            return None
        value = 60.0 * first + int(parts["second"])
        if self.parts == 3:
            value = 60.0 * value + int(parts["third"] or 0)
        elif parts["third"]:
            return None
        value += float(f"0.{parts['fraction'] or 0}")
        return -value if parts["minus"] else value

    def write(self, value: float) -> str:
        below, size = value < 0, round(abs(value), self.places)
        whole = int(size)
        fraction = f"{size - whole:.{self.places}f}"[1:] if self.places else ""
        last = f"{whole % 60:02d}"
        whole //= 60
        if self.parts == 3:
            last = f"{whole % 60:02d}:{last}"
            whole //= 60
        half = ""
        if self.half:
            half = self.half if whole % 24 < 12 else self.half.replace("A", "P").replace("a", "p")
            whole = (whole - 1) % 12 + 1
        first = f"{whole:02d}" if self.pad else str(whole)
        return f"{'-' if below and size else ''}{first}:{last}{fraction}{half}{self.word}"

    @property
    def meaning(self) -> str:
        return f"a time of day, in {self.unit}" if self.day else f"a length of time, in {self.unit}"

    @property
    def unit(self) -> str:
        return "minutes" if self.parts == 2 and not self.short else "seconds"

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        return (0.0, (24.0 * 60 - 1) if self.parts == 2 else 24.0 * 3600 - 1) if self.day else (None, None)
