"""Ranges and sets of one variable's values: as a user says them, and the model values that they stand for.

A codec turns one into the other (:meth:`~anyorder.variables.codecs.base.Codec.between`). What lies beyond the bounds of
a variable cannot happen: an event of probability 0, and no evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from anyorder.errors import UserError
from anyorder.support.words import write_set
from anyorder.variables.cells import SINGLE, Series, numbers
from anyorder.variables.schema import Kind, Variable
from anyorder.variables.times import days, times

SLACK = 64 * float(np.finfo(np.float64).eps)  # an end on a spike counts whole, whatever its last digits


@dataclass(frozen=True)
class Between:
    """A range as evidence or event: ``low`` <= variable <= ``high``.

    Evidence on ranges is answered by draws, so give a value where you have one.

    Parameters
    ----------
    low, high
        The ends, in the units of the data; None is open to infinity.
    low_open, high_open
        Leave an end out (``age > 30``). It matters only where one value alone has a probability: whole numbers, levels,
        spikes.

    Examples
    --------
    >>> model.given(rooms=ao.Between(7, None))["price"].mean() > model["price"].mean()
    True
    >>> str(ao.Between(30, 40))
    '30..40'
    """

    low: Any = None
    high: Any = None
    low_open: bool = False
    high_open: bool = False

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise UserError("Between needs at least one end; if nothing is known about a variable, leave it out")

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
    """A set as evidence or event: the variable has one of these values.

    Parameters
    ----------
    *levels
        The values. Of a continuous variable a single value has no probability; take :class:`Between` there.

    Examples
    --------
    >>> few, many = model.given(rooms=ao.OneOf(3, 4)), model.given(rooms=ao.OneOf(7, 8))
    >>> few["price"].mean() < many["price"].mean()
    True
    >>> 0 < model.prob("rooms={3, 4}") < 1
    True
    """

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
class NotOneOf:
    """The variable has none of these values: what ``colour != red`` says."""

    levels: tuple[Any, ...]

    def __str__(self) -> str:
        return "!=" + (str(self.levels[0]) if len(self.levels) == 1 else write_set(map(str, self.levels)))


@dataclass(frozen=True)
class Either:
    """One of several ranges or sets holds: what ``price < 10 or price > 90`` says."""

    parts: tuple[Between | OneOf | NotOneOf | Either, ...]

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts))


@dataclass(frozen=True)
class Stretch:
    """Model values from ``least`` to ``most``.

    ``before`` and ``upto`` are where the cdf is taken: at the ends themselves on a line, half a step outside on a
    lattice.
    """

    least: float
    most: float
    before: float
    upto: float


Extent: TypeAlias = tuple[float, ...] | Stretch
"""Single model values, ascending (without any, nothing is possible), or a stretch of them."""


def is_open(end: Any) -> bool:
    """Whether this end of a range is open to infinity."""
    return end is None or (isinstance(end, float) and math.isinf(end))


def end_as_number(variable: Variable, end: Any) -> float | None:
    """An end as a number in the units of the data (days since 1970 for times); None where it is open."""
    if is_open(end):
        return None
    cell: Series = pd.Series([end], index=[SINGLE], dtype=object)
    known = np.zeros(1, dtype=bool)
    if variable.kind is Kind.DATETIME:
        return float(days(times(cell, known, variable.name, variable.zone, variable.form))[0])
    return float(numbers(cell, known, variable.name, variable.notation)[0])


def within_bounds(variable: Variable, said: Between) -> Between | None:
    """The range without what lies beyond the variable's bounds; None where nothing else is in it."""
    least, most = variable.bounds
    if least is None and most is None:
        return said
    low, high = (end_as_number(variable, end) for end in (said.low, said.high))
    if low is not None and high is not None and low > high:
        return said  # which is refused in its own words
    if (low is not None and most is not None and (low > most or (low == most and said.low_open))) or (
        high is not None and least is not None and (high < least or (high == least and said.high_open))
    ):
        return None
    if variable.kind is Kind.CONTINUOUS and (
        (high is not None and high == least and (low is None or low < least))
        or (low is not None and low == most and (high is None or high > most))
    ):
        return None  # of a range from beyond a bound up to it, one point is left
    if low is not None and least is not None and low < least:
        said = replace(said, low=least, low_open=False)
    if high is not None and most is not None and high > most:
        said = replace(said, high=most, high_open=False)
    return said


def slack(at: float) -> float:
    """How far around a spike a model value still is that spike."""
    return SLACK * max(1.0, abs(at)) if math.isfinite(at) else 0.0


def _shown(end: Any) -> str:
    return "" if end is None else str(end)
