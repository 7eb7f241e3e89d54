"""How the digits of a column of numbers are written: always so many after the point, or in groups of three.

Neither can be told from the numbers themselves, so it is noted while their texts are read.
"""

from __future__ import annotations

import re

from anyorder.variables.cells import Series

PLACES = "anyorder.places"
"""Under this name a frame that was read from a text says how many digits its numbers always have after the point."""
FEW = 200


class Places:
    """Whether all numbers have the same number of digits after the decimal sign."""

    def __init__(self) -> None:
        self._places: int | None = None  # not known yet; -1 if they differ

    @property
    def found(self) -> int:
        """How many; 0 where they differ or have none."""
        return max(self._places or 0, 0)

    def see(self, texts: Series) -> None:
        """Take note of some cells more; a cell without a digit is no number."""
        if self._places == -1:
            return
        if self._places is None:
            few = [text.strip() for text in texts.iloc[:FEW].tolist() if any(sign.isdigit() for sign in text)]
            if not few:
                return
            found = {len(match[1]) if (match := _FRACTION.fullmatch(text)) else -1 for text in few}
            self._places = found.pop() if len(found) == 1 else -1
            if self._places <= 0:
                self._places = -1
                return
        other = texts.str.contains(r"\d") & ~texts.str.fullmatch(rf"\s*[+-]?\d+[.,]\d{{{self._places}}}\s*")
        if other.any():
            self._places = -1


class Grouped:
    """Whether all points can stand between thousands, in a file that has room for decimal commas: 1.204.500."""

    def __init__(self) -> None:
        self._all, self._some = True, False

    @property
    def found(self) -> bool:
        """Whether they can, and there are any."""
        return self._all and self._some

    def see(self, texts: Series) -> None:
        """Take note of some cells more; a cell without a digit is no number."""
        if not self._all:
            return
        few = texts.iloc[:FEW]
        for part in (few, texts):
            numbers = part[part.str.contains(r"\d")]
            if not numbers.str.fullmatch(r"\s*-?\d{1,3}(?:\.\d{3})*\s*").all():
                self._all = False
                return
        self._some = self._some or bool(texts.str.contains(".", regex=False).any())


_FRACTION = re.compile(r"[+-]?\d+[.,](\d+)")
