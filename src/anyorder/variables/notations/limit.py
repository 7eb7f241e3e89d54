"""Numbers of which those beyond a limit are not known but that they are beyond it: <0.05, >1000."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self, final

from anyorder.errors import UserError
from anyorder.variables import hints
from anyorder.variables.notations.base import Notation
from anyorder.variables.notations.number import NumberNotation

_SIGN = re.compile(r"(?P<sign>[<>≤≥]|<=|>=)\s?(?=[\d.,$€£])")
FEWEST = 10
"""Different numbers beside a limit: fewer of them are levels (0, 1, 2, >2)."""


@final
@dataclass(frozen=True)
class LimitNotation(Notation):
    """``below`` and ``above`` are the texts for all numbers beyond the least or the greatest that was measured.

    The one stands for half of its limit, the other for one and a half of it, and each is written for all numbers
    beyond its limit. The others are written as ``number`` says.
    """

    name: ClassVar[str] = "limit"
    priority: ClassVar[int] = -1

    below: str = ""
    above: str = ""
    number: NumberNotation = field(default_factory=NumberNotation)

    def __post_init__(self) -> None:
        if not isinstance(self.number, NumberNotation) or not (self.below or self.above):
            raise UserError(f"limits are texts such as '<0.05', got {self.below!r} and {self.above!r}")

    @classmethod
    def find(cls, texts: Sequence[str], *, decimal_comma: bool = False) -> Self | None:
        signs = {text: found["sign"] for text in texts if (found := _SIGN.match(text))}
        below = [text for text, sign in signs.items() if sign[0] in "<≤"]
        above = [text for text, sign in signs.items() if sign[0] in ">≥"]
        rest = [text for text in texts if text not in signs]
        if not signs or len(below) > 1 or len(above) > 1 or len(rest) < FEWEST:
            return None
        number = NumberNotation.find(rest, decimal_comma=decimal_comma)
        values = [number.read(text) for text in rest] if number is not None else [None]
        known = [value for value in values if value is not None]
        if number is None or len(known) < len(values):
            return None
        form = cls("".join(below), "".join(above), number)
        low, high = form._limit(form.below), form._limit(form.above)
        if below and (low is None or low <= 0 or min(known) < low):
            return None
        return None if above and (high is None or high <= 0 or max(known) > high) else form

    def _limit(self, text: str) -> float | None:
        return self.number.read(_SIGN.sub("", text)) if text else None

    def _at(self, text: str) -> float:
        """The number that a limit is read as."""
        limit = self._limit(text) or 0.0
        size = limit / 2 if text == self.below else 1.5 * limit
        return size if self.number.places else float(size // 1)

    def read(self, text: str) -> float | None:
        text = text.strip()
        return self._at(text) if text and text in (self.below, self.above) else self.number.read(text)

    def write(self, value: float) -> str:
        low, high = self._limit(self.below), self._limit(self.above)
        if low is not None and value < low:
            return self.below
        return self.above if high is not None and value > high else self.number.write(value)

    def shown(self, value: float) -> str:
        written = self.write(value)
        return written if written in (self.below, self.above) else self.number.shown(value)

    @property
    def meaning(self) -> str:
        return self.number.meaning

    @property
    def unit(self) -> str:
        return self.number.unit

    @property
    def doubt(self) -> str:
        said = [f"{text!r} is read as {self._at(text):g}" for text in (self.below, self.above) if text]
        return (
            f"{' and '.join(said)}, and written for whatever lies beyond it; "
            f"if it is to be unknown, use {hints.missing(self.below or self.above)}"
        )
