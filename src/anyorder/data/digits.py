"""How the digits of a column of numbers are written: always so many after the point, or in groups of three.

Neither can be told from the numbers themselves, so it is noted while their texts are read.
"""

from __future__ import annotations

import re

import pandas as pd

from anyorder.variables.cells import Series
from anyorder.variables.separators import GROUPED, GROUPED_BY_COMMAS

PLACES = "anyorder.places"
"""Under this name a frame that was read from a text says how many digits its numbers always have after the point, and
the letter of scientific notation, if they all are in it."""
MOST = 12  # digits: more than these only programs write
FEW = 200
LONGEST = len("-999")
"""Numbers without a sign between thousands have no more characters, and most marks for unknown neither."""


class Places:
    """Whether all numbers have the same number of digits after the decimal sign."""

    def __init__(self) -> None:
        self._form: tuple[int, str] | None = None  # not known yet
        self._differ = False

    @property
    def found(self) -> tuple[int, str] | None:
        """How many, and the letter before the exponent; None where they differ or have none."""
        return None if self._differ else self._form

    def see(self, texts: Series) -> None:
        """Take note of some cells more; a cell without a digit is no number."""
        if self._differ:
            return
        if self._form is None:
            few = [text.strip() for text in texts.iloc[:FEW].tolist() if any(sign.isdigit() for sign in text)]
            if not few:
                return
            found = [_FRACTION.fullmatch(text) for text in few]
            forms = {(len(match[1]), match[2] or "") if match else (0, "") for match in found}
            self._form = forms.pop()
            if forms or not 0 < self._form[0] <= MOST:
                self._differ = True
                return
        places, letter = self._form
        tail = rf"{letter}[+-]?\d+" if letter else ""
        other = texts.str.contains(r"\d") & ~texts.str.fullmatch(rf"\s*[+-]?\d+[.,]\d{{{places}}}{tail}\s*")
        self._differ = bool(other.any())


class Grouped:
    """Whether all signs can stand between thousands: 1.204.500, or 1.204 beside 950.

    ``likely``: the file has another sign before fractions, so that they more likely do.
    """

    def __init__(self, sign: str, *, likely: bool) -> None:
        self._sign, self._likely = sign, likely
        self._pattern = rf"\s*{GROUPED if sign == '.' else GROUPED_BY_COMMAS}\s*"
        self._all, self._some, self._bare = True, False, False

    @property
    def found(self) -> bool:
        """Whether they can, and there are any."""
        return self._all and self._some

    @property
    def doubtful(self) -> bool:
        """Whether nothing in the column tells them from fractions of three digits."""
        return not self._likely and not self._bare

    def see(self, texts: Series) -> None:
        """Take note of some cells more; a cell without a digit is no number."""
        if not self._all:
            return
        signs = texts.str.contains(self._sign, regex=False)
        if not signs.any():  # as in most columns, which need not be looked at cell by cell
            self._all, self._bare = bool(texts.str.len().max() <= LONGEST), True
            return
        self._some = True
        different = pd.Series(texts.unique())
        for part in (different.iloc[:FEW], different):
            numbers = part[part.str.contains(r"\d")]
            if not numbers.str.fullmatch(self._pattern).all():
                self._all = False
                return
        self._bare = self._bare or bool((~signs & texts.str.contains(r"\d")).any())


_FRACTION = re.compile(r"[+-]?\d+[.,](\d+)(?:([eE])[+-]?\d+)?")
