"""Numbers whose sign is a letter behind them: 204,50 S and H (debit, credit), 1,204.50 DR and CR, 33.87 S, 151.2° W."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self, final

from anyorder.errors import UserError
from anyorder.variables.notations.base import Notation
from anyorder.variables.notations.number import NumberNotation

PAIRS = (("H", "S"), ("CR", "DR"), ("Cr", "Dr"), ("cr", "dr"), ("N", "S"), ("E", "W"), ("O", "W"))
"""Letters for numbers above and below 0."""
_PARTS = re.compile(r"(?P<body>[$€£]?\s?\d[\d.,']*)(?P<gap>\s?°?\s?)(?P<letter>[A-Za-z]{1,2})\.?")


@final
@dataclass(frozen=True)
class SignedByLetterNotation(Notation):
    """``above`` and ``below`` stand behind the numbers, spaces and all; without one ``number`` writes them."""

    name: ClassVar[str] = "signed by letter"
    priority: ClassVar[int] = -1

    above: str = " H"
    below: str = " S"
    number: NumberNotation = field(default_factory=NumberNotation)

    def __post_init__(self) -> None:
        if not isinstance(self.number, NumberNotation) or not self.above or self.above == self.below:
            raise UserError(f"letters for the sign of a number must differ, got {self.above!r} and {self.below!r}")

    @classmethod
    def find(cls, texts: Sequence[str], *, decimal_comma: bool = False) -> Self | None:
        if not texts or _PARTS.fullmatch(texts[0]) is None:
            return None
        parts = [found for text in texts if (found := _PARTS.fullmatch(text))]
        letters = {each["letter"] for each in parts}
        pair = next((pair for pair in PAIRS if letters == set(pair)), None)
        if len(parts) < len(texts) or pair is None:
            return None
        if all(each["body"].isdigit() and not each["gap"] for each in parts):
            return None  # seats, sizes: 12C
        number = NumberNotation.find([each["body"].strip() for each in parts], decimal_comma=decimal_comma)
        gap = Counter(each["gap"] for each in parts).most_common(1)[0][0]
        return None if number is None else cls(gap + pair[0], gap + pair[1], number)

    def read(self, text: str) -> float | None:
        text = text.strip()
        for ending, sign in ((self.above, 1.0), (self.below, -1.0)):
            letter = ending.strip(" °")
            if text.endswith(letter):
                value = self.number.read(text.removesuffix(letter).rstrip(" °"))
                return None if value is None else sign * value
        return self.number.read(text)

    def write(self, value: float) -> str:
        body = self.number.write(abs(value))
        return body + (self.below if value < 0 and self.number.read(body) else self.above)

    def shown(self, value: float) -> str:
        return self.number.shown(abs(value)) + (self.below if value < 0 else self.above)

    @property
    def meaning(self) -> str:
        return f"a number, below 0 where {self.below.strip(' °')!r} stands behind it"

    @property
    def unit(self) -> str:
        return self.number.unit
