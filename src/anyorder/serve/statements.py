"""What is known of a column, as JSON says it, and as Python has it.

=======================================================  ==========================================
JSON                                                     Python
=======================================================  ==========================================
``6``, ``"yes"``, ``true``                               a value
``"30..40"``, ``"> 30"``, ``"{red, blue}"``, ``"missing"``   the same text, read as in a typed question
``{"value": "30..40"}``                                  a value, whatever it looks like
``{"low": 30, "high": 40, "high_open": true}``           ``Between(30, 40, high_open=True)``
``{"one_of": ["red", "blue"]}``                          ``OneOf("red", "blue")``
``{"not_one_of": ["red"]}``                              ``colour != red``
``{"either": [{"high": 10}, {"low": 90}]}``              ``price < 10 or price > 90``
``{"missing": true}``                                    ``MISSING``
``null``                                                 nothing is known of it
=======================================================  ==========================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from anyorder.errors import UserError
from anyorder.questions.evidence import MISSING, Missing, Value
from anyorder.support.plain import plain
from anyorder.variables.ranges import Between, Either, NotOneOf, OneOf
from anyorder.variables.schema import LARGEST

MOST_LEVELS = 10_000
LONGEST = 10_000  # characters of one value

Text = Annotated[StrictStr, Field(max_length=LONGEST)]
Cell: TypeAlias = StrictBool | StrictInt | StrictFloat | Text
"""A value: a number, a text (times as texts too), true or false."""


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid")


class OneValue(_Said):
    """A value, also where it looks like a range."""

    value: Cell

    def python(self) -> Any:
        return Value(_number(self.value))


class RangeOf(_Said):
    """A range; an end that is left out is open to infinity. ``low_open`` and ``high_open`` leave an end itself out."""

    low: Cell | None = None
    high: Cell | None = None
    low_open: StrictBool = False
    high_open: StrictBool = False

    @model_validator(mode="after")
    def _has_an_end(self) -> RangeOf:
        if self.low is None and self.high is None:
            raise ValueError("a range needs low, high or both; if nothing is known of a column, leave it out")
        return self

    def python(self) -> Between:
        return Between(_number(self.low), _number(self.high), self.low_open, self.high_open)


class SetOf(_Said):
    """One of these values."""

    one_of: list[Cell] = Field(min_length=1, max_length=MOST_LEVELS)

    def python(self) -> OneOf:
        return OneOf(*map(_number, self.one_of))


class NoneOf(_Said):
    """None of these values."""

    not_one_of: list[Cell] = Field(min_length=1, max_length=MOST_LEVELS)

    def python(self) -> NotOneOf:
        return NotOneOf(tuple(map(_number, self.not_one_of)))


class AnyOf(_Said):
    """One of several ranges or sets."""

    either: list[RangeOf | SetOf | NoneOf] = Field(min_length=1, max_length=100)

    def python(self) -> Either:
        return Either(tuple(part.python() for part in self.either))


class IsMissing(_Said):
    """The cell is known to be empty; only of models that were fitted with missingness="joint"."""

    missing: Literal[True]

    def python(self) -> Any:
        return MISSING


Statement: TypeAlias = Cell | RangeOf | SetOf | NoneOf | AnyOf | IsMissing | OneValue | None
Given: TypeAlias = Annotated[dict[Annotated[str, Field(max_length=LONGEST)], Statement], Field(max_length=10_000)]
"""What is known, by column."""


def evidence_of(given: Mapping[str, Statement]) -> dict[str, Any]:
    """What is known as Python has it; what is null is left out."""
    return {
        name: said.python() if isinstance(said, _Said) else _number(said)
        for name, said in given.items()
        if said is not None
    }


def statements_of(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """The way back: what is known as JSON says it, of which :func:`evidence_of` makes the same again."""
    return {name: _statement(said) for name, said in evidence.items()}


def _statement(said: Any) -> Any:
    if isinstance(said, Between):
        ends = {
            "low": plain(said.low),
            "high": plain(said.high),
            "low_open": said.low_open,
            "high_open": said.high_open,
        }
        return {name: end for name, end in ends.items() if end is not None and end is not False}
    if isinstance(said, OneOf):
        return {"one_of": [plain(level) for level in said.levels]}
    if isinstance(said, NotOneOf):
        return {"not_one_of": [plain(level) for level in said.levels]}
    if isinstance(said, Either):
        return {"either": [_statement(part) for part in said.parts]}
    if isinstance(said, Missing):
        return {"missing": True}
    return {"value": plain(said.given)} if isinstance(said, Value) else plain(said)


def _number(value: Any) -> Any:
    """A value whose number can be computed with."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"a value must be a finite number, got {value}")
        if abs(value) > LARGEST:
            raise UserError(f"a number this large cannot be computed with: {str(value)[:40]}")
    return value
