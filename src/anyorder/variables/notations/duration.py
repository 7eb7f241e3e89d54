"""Lengths of time in words: 2h 30m, 1d 4h, PT2H30M."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
_BARE = re.compile(r"(\d{1,4})(\s?[hH]\s?)([0-5]\d)")
ZEROS = ("", "inside", "all")
ENOUGH = 1_000
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")


@final
@dataclass(frozen=True)
class DurationNotation(Notation):
    """Multiples of the smallest unit that is written, such as minutes for 2h 30m.

    ``units`` are the letters of the units from the largest, each followed by how it is written, such as
    ("h", "h", "m", "min"); ``gap`` stands between a number and its unit, ``between`` between two of them;
    ``iso`` is the form PT2H30M. ``zeros`` says which parts of nothing are written: those "inside" (1h 0m, but 5m), or
    "all" of them (0h 5m), else none; ``pad`` that all parts but the first have two digits (2h05m). The last unit may
    have no word (2h05). ``day``: they are times of day, as the French write
    them; ``pad_first``: the first part has two digits, too (08h05).
    """

    name: ClassVar[str] = "duration"
    priority: ClassVar[int] = 1

    units: tuple[str, ...] = ("h", "h", "m", "m")
    gap: str = ""
    between: str = " "
    iso: bool = False
    zeros: str = field(default="", metadata={"later": True})
    pad: bool = field(default=False, metadata={"later": True})
    day: bool = field(default=False, metadata={"later": True})
    pad_first: bool = field(default=False, metadata={"later": True})

    def __post_init__(self) -> None:
        if not self.units or len(self.units) % 2 or any(letter not in SECONDS for letter in self.units[::2]):
            raise UserError(f"a duration has units such as ('h', 'h', 'm', 'min'), got {self.units!r}")
        if self.zeros not in ZEROS:
            raise UserError(f"parts of nothing are written 'inside', 'all' or '', got {self.zeros!r}")

    @classmethod
    def find(cls, texts: Sequence[str], *, decimal_comma: bool = False) -> Self | None:
        if all((iso := _ISO.fullmatch(text)) and any(iso.groups()) for text in texts):
            used = [letter for at, letter in enumerate("dhms") if any(_iso_parts(text)[at] for text in texts)]
            return cls(tuple(word for letter in used for word in (letter, letter.upper())), iso=True)._as_in(texts)
        if all(_BARE.fullmatch(text) for text in texts):
            word = "".join(sign for sign in texts[0] if not sign.isdigit())
            first = any(text.startswith("0") and text[1].isdigit() for text in texts)
            return cls(("h", word, "m", ""), "", "", zeros="all", pad=True, pad_first=first)
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
        units = tuple(w for letter in "dhms" if letter in spelled for w in (letter, spelled[letter]))
        return cls(units, gap, between)._as_in(texts)

    def _as_in(self, texts: Sequence[str]) -> Self:
        """The way to write zeros that gives the most of these texts as they are."""
        few = texts[:ENOUGH]
        values = [self.read(text) for text in few]
        ways = [replace(self, zeros=zeros, pad=pad) for pad in (False, True) for zeros in ZEROS]
        return max(ways, key=lambda way: sum(way.write(v or 0.0) == text for v, text in zip(values, few, strict=True)))

    @property
    def _smallest(self) -> int:
        return min(SECONDS[letter] for letter in self.units[::2])

    def read(self, text: str) -> float | None:
        text = text.strip()
        seconds = 0
        if _ISO.fullmatch(text) and len(text) > 1:
            seconds = sum(n * SECONDS[letter] for n, letter in zip(_iso_parts(text), "dhms", strict=True))
        elif self.units[-1] == "" and (bare := _BARE.fullmatch(text)):
            seconds = 3_600 * int(bare[1]) + 60 * int(bare[3])
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
            nothing = rest == 0 and not said and SECONDS[letter] == self._smallest
            if count or nothing or self.zeros == "all" or (self.zeros and said):
                number = f"{count:02d}" if (self.pad if said else self.pad_first) else str(count)
                said.append((letter, f"{number}{self.gap}{word}"))
        if not self.iso:
            return self.between.join(word for _, word in said)
        days = "".join(word for letter, word in said if letter == "d")
        clock = "".join(word for letter, word in said if letter != "d")
        return f"P{days}T{clock}" if clock else f"P{days}"

    @property
    def meaning(self) -> str:
        return f"a {'time of day' if self.day else 'length of time'}, in {self.unit}"

    @property
    def unit(self) -> str:
        return {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}[self.units[-2]]

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        return 0.0, (86_400 / self._smallest - 1 if self.day else None)


def _iso_parts(text: str) -> list[int]:
    found = _ISO.fullmatch(text)
    return [int(part or 0) for part in found.groups()] if found else [0, 0, 0, 0]
