"""What can be known about a variable besides its value: a range, a set of levels, or that it is missing.

>>> model.given(age=Between(30, 40), colour=OneOf("red", "blue"), income=MISSING)

Typed text says the same: ``age=30..40``, ``age > 30``, ``colour={red, blue}``, ``income=missing``. Whatever a user
gives is read once, by :func:`read_statement`; everything behind it knows four cases only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from anyorder.questions.grammar import read_value
from anyorder.variables.codecs import Codec
from anyorder.variables.ranges import Between, OneOf

__all__ = ["MISSING", "Between", "Missing", "OneOf", "Partial", "Value", "read_evidence", "read_statement"]


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


@dataclass(frozen=True)
class Value:
    """One value, not yet encoded: the variable's codec has the last word on whether it is one."""

    given: Any


def read_statement(codec: Codec, said: Any) -> Between | OneOf | Missing | Value:
    """What is said of the variable of ``codec``, from Python or typed.

    A text that is one of the variable's own values ("5..6" as a level) is that value; else it is read as a range, a
    set or "missing" where it looks like one.
    """
    if isinstance(said, Between | OneOf | Missing):
        return said
    if isinstance(said, str):
        found = read_evidence(said)
        if found is not None and not codec.is_value(said):
            return found
    return Value(said)


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
