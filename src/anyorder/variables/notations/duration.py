"""Lengths of time in words: 2h 30m, 1d 4h, PT2H30M."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self, final

from anyorder.errors import UserError
from anyorder.variables.notations.base import Notation

SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_WORDS = {
    **dict.fromkeys(("d", "day", "days", "t", "tag", "tage"), "d"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "std", "std."), "h"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes", "min."), "m"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "sek", "sek."), "s"),
}
_PART = re.compile(r"(\d+)(\s?)([A-Za-z]+\.?)")
_WHOLE = re.compile(r"(?:\d+\s?[A-Za-z]+\.?[\s,]*)+")
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")


@final
@dataclass(frozen=True)
class DurationNotation(Notation):
    """Multiples of the smallest unit that is written, such as minutes for 2h 30m.

    ``units`` are the letters of the units from the largest, each followed by how it is written, such as
    ("h", "h", "m", "min"); ``gap`` stands between a number and its unit, ``between`` between two of them;
    ``iso`` is the form PT2H30M.
    """

    name: ClassVar[str] = "duration"
    priority: ClassVar[int] = 1

    units: tuple[str, ...] = ("h", "h", "m", "m")
    gap: str = ""
    between: str = " "
    iso: bool = False

    def __post_init__(self) -> None:
        if not self.units or len(self.units) % 2 or any(letter not in SECONDS for letter in self.units[::2]):
            raise UserError(f"a duration has units such as ('h', 'h', 'm', 'min'), got {self.units!r}")

    @classmethod
    def find(cls, texts: Sequence[str], *, decimal_comma: bool = False) -> Self | None:
        if all((iso := _ISO.fullmatch(text)) and any(iso.groups()) for text in texts):
            used = [letter for at, letter in enumerate("dhms") if any(_iso_parts(text)[at] for text in texts)]
            return cls(tuple(word for letter in used for word in (letter, letter.upper())), iso=True)
        if not all(_WHOLE.fullmatch(text) for text in texts):
            return None
        spelled: dict[str, str] = {}
        most, gap, between = 0, "", " "
        for text in texts:
            found = list(_PART.finditer(text))
            letters = [_WORDS.get(each[3].casefold(), "") for each in found]
            if not all(letters) or [SECONDS[x] for x in letters] != sorted({SECONDS[x] for x in letters}, reverse=True):
                return None
            for letter, each in zip(letters, found, strict=True):
                spelled.setdefault(letter, each[3])
            if len(found) > most:
                most, gap = len(found), found[0][2]
                between = text[found[0].end() : found[1].start()] if len(found) > 1 else " "
        if len(spelled) < 2:
            return None  # one unit alone is a number with a unit
        return cls(tuple(w for letter in "dhms" if letter in spelled for w in (letter, spelled[letter])), gap, between)

    @property
    def _smallest(self) -> int:
        return min(SECONDS[letter] for letter in self.units[::2])

    def read(self, text: str) -> float | None:
        text = text.strip()
        seconds = 0
        if _ISO.fullmatch(text) and len(text) > 1:
            seconds = sum(n * SECONDS[letter] for n, letter in zip(_iso_parts(text), "dhms", strict=True))
        elif _WHOLE.fullmatch(text):
            for number, _, word in _PART.findall(text):
                letter = _WORDS.get(word.casefold())
                if letter is None:
                    return None
                seconds += int(number) * SECONDS[letter]
        else:
            return None
        value = seconds / self._smallest
        return value if value.is_integer() else None

    def write(self, value: float) -> str:
        rest = max(0, round(value)) * self._smallest
        said: list[tuple[str, str]] = []
        for letter, word in zip(self.units[::2], self.units[1::2], strict=True):
            count, rest = divmod(rest, SECONDS[letter])
            if count or (rest == 0 and not said and SECONDS[letter] == self._smallest):
                said.append((letter, f"{count}{self.gap}{word}"))
        if not self.iso:
            return self.between.join(word for _, word in said)
        days = "".join(word for letter, word in said if letter == "d")
        clock = "".join(word for letter, word in said if letter != "d")
        return f"P{days}T{clock}" if clock else f"P{days}"

    @property
    def meaning(self) -> str:
        return f"a length of time, in {self.unit}"

    @property
    def unit(self) -> str:
        return {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}[self.units[-2]]

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        return 0.0, None


def _iso_parts(text: str) -> list[int]:
    found = _ISO.fullmatch(text)
    return [int(part or 0) for part in found.groups()] if found else [0, 0, 0, 0]
