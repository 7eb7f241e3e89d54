"""What can be known about a variable besides its value: a range, a set of levels, or that it is missing.

>>> model.given(age=Between(30, 40), colour=OneOf("red", "blue"), income=MISSING)

Typed text says the same: ``age=30..40``, ``age > 30``, ``colour={red, blue}``, ``income=missing``; and also ``colour !=
red`` and ``age < 20 or age > 60``. Whatever a user gives is read once, by :func:`read_statement`; everything behind it
knows six cases only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from anyorder.errors import UserError
from anyorder.questions.grammar import read_value, unquoted
from anyorder.variables.codecs import Codec
from anyorder.variables.ranges import Between, Either, NotOneOf, OneOf

__all__ = ["MISSING", "Between", "Missing", "OneOf", "Partial", "Statement", "Value", "read_evidence", "read_statement"]


@dataclass(frozen=True)
class Missing:
    """The class of ``MISSING``: the cell is known to be empty.

    Evidence only for a model fitted with ``missingness="joint"``, where an empty cell says something about the others.
    A column of which nothing is known is simply left out.

    Examples
    --------
    >>> holes = frame.assign(door=frame["door"].where(frame["river"] == "yes"))
    >>> brief = {"training": {"steps": 20, "minutes": None}}
    >>> joint = ao.fit(holes, missingness="joint", engine="neural", config=brief, seed=0)
    >>> 0 < joint.given(door=ao.MISSING).prob(river="no") < 1
    True
    """

    def __repr__(self) -> str:
        return "MISSING"

    def __str__(self) -> str:
        return "missing"


MISSING = Missing()
"""The cell is known to be empty: evidence, and not the same as leaving the column out."""

Partial: TypeAlias = Between | OneOf | NotOneOf | Either
"""Evidence that leaves a variable some freedom."""


@dataclass(frozen=True)
class Value:
    """One value, not yet encoded: the variable's codec has the last word on whether it is one."""

    given: Any


Statement: TypeAlias = Partial | Missing | Value
"""What can be said of a variable, once it is read."""


def read_statement(codec: Codec, said: Any) -> Statement:
    """What is said of the variable of ``codec``, from Python or typed.

    A text that is one of the variable's own values ("5..6" as a level) is that value; else it is read as a range, a
    set or "missing" where it looks like one.
    """
    if isinstance(said, Between | OneOf | NotOneOf | Either | Missing | Value):
        return said
    if isinstance(said, str) and not codec.is_value(said):
        found = read_evidence(said)
        if found is not None:
            return found
    return Value(said)


def read_evidence(text: str) -> Partial | Missing | None:
    """A typed text as a range, a set, "missing" and the like; None where it is a plain value."""
    found = read_value(text)
    if found is None:
        return None
    if found.missing:
        return MISSING
    if found.members:
        return OneOf(*found.members)
    if found.excluded:
        return NotOneOf(found.excluded)
    if found.either:
        return _either(text, found.either)
    return Between(found.low, found.high, found.low_open, found.high_open)


def _either(text: str, parts: tuple[str, ...]) -> Partial | None:
    """Alternatives: a set where all of them are values."""
    said = [read_evidence(part.removeprefix("=")) or _value(part) for part in parts]
    values = [one for one in said if isinstance(one, str)]
    if len(values) == len(said):
        return OneOf(*values)
    if any(isinstance(one, Missing) for one in said):
        raise UserError(f"{text!r}: 'missing' cannot be joined to something else by 'or'; ask two questions")
    bare = [part for part, one in zip(parts, said, strict=True) if isinstance(one, str) and not part.startswith("=")]
    if bare and any(isinstance(one, NotOneOf) for one in said):
        other = parts[0].removeprefix("!=").strip()
        raise UserError(f"{text!r} can be read in two ways: write != {{{other}, {bare[0]}}}, or repeat the name")
    return Either(tuple(OneOf(one) if isinstance(one, str) else one for one in said if not isinstance(one, Missing)))


def _value(part: str) -> str:
    return unquoted(part.removeprefix("="))
