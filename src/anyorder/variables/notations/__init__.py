"""How people write numbers: amounts of money, percentages, units, clocks, durations, months."""

from __future__ import annotations

from collections.abc import Sequence

from anyorder.support.registry import Registry
from anyorder.variables.notations.base import Notation

NOTATIONS: Registry[Notation] = Registry("anyorder.variables.notations", Notation, "notation")

__all__ = ["NOTATIONS", "Notation", "find_notation"]


def find_notation(texts: Sequence[str], *, decimal_comma: bool = False) -> Notation | None:
    """The notation in which all these different texts are written; None if there is none."""
    for cls in sorted(NOTATIONS.classes(), key=lambda cls: -cls.priority):
        found = cls.find(texts, decimal_comma=decimal_comma)
        if found is not None and all(found.read(text) is not None for text in texts):
            return found
    return None
