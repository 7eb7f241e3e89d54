"""What can be known about a variable besides its value: a range, a set of levels, or that it is missing.

>>> model.given(age=Between(30, 40), colour=OneOf("red", "blue"), income=MISSING)

Typed text says the same: ``age=30..40``, ``age > 30``, ``colour={red, blue}``, ``income=missing``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from anyorder.errors import UserError
from anyorder.questions.grammar import read_value, write_set


@dataclass(frozen=True)
class Between:
    """``low`` <= variable <= ``high``; an end that is None is open to infinity.

    Both ends belong to the range. ``low_open`` and ``high_open`` leave an end out (``age > 30``), which matters only
    where one value alone has a probability: whole numbers, levels, spikes.
    """

    low: Any = None
    high: Any = None
    low_open: bool = False
    high_open: bool = False

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise UserError("Between needs at least one end; a variable of which nothing is known is simply left out")

    def __str__(self) -> str:
        if not (self.low_open or self.high_open):
            return f"{_shown(self.low)}..{_shown(self.high)}"
        parts = []
        if self.low is not None:
            parts.append(f"{'>' if self.low_open else '>='}{self.low}")
        if self.high is not None:
            parts.append(f"{'<' if self.high_open else '<='}{self.high}")
        return " ".join(parts)


@dataclass(frozen=True, init=False)
class OneOf:
    """The variable has one of these values."""

    levels: tuple[Any, ...]

    def __init__(self, *levels: Any) -> None:
        if not levels:
            raise UserError("OneOf needs at least one value, as in OneOf('red', 'blue')")
        object.__setattr__(self, "levels", levels)

    def __repr__(self) -> str:
        return f"OneOf({', '.join(map(repr, self.levels))})"

    def __str__(self) -> str:
        return write_set([str(level) for level in self.levels])


@dataclass(frozen=True)
class Missing:
    """The cell is empty, which itself says something where missingness was modelled."""

    def __repr__(self) -> str:
        return "MISSING"

    def __str__(self) -> str:
        return "missing"


MISSING = Missing()
"""The cell is known to be empty: evidence, and not the same as leaving the column out."""

Partial: TypeAlias = Between | OneOf
"""Evidence that leaves a variable some freedom."""


def read_evidence(text: str) -> Between | OneOf | Missing | None:
    """A typed text as a range, a set or "missing"; None where it is a plain value."""
    found = read_value(text)
    if found is None:
        return None
    if found.missing:
        return MISSING
    if found.members:
        return OneOf(*found.members)
    return Between(found.low, found.high, found.low_open, found.high_open)


def _shown(end: Any) -> str:
    return "" if end is None else str(end)
