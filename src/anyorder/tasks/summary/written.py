"""Values and amounts as a person writes them, and as the file has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from anyorder.variables.notations.clock import ClockNotation
from anyorder.variables.notations.duration import DurationNotation
from anyorder.variables.notations.number import NumberNotation
from anyorder.variables.notations.period import PeriodNotation
from anyorder.variables.notations.two_units import TwoUnitsNotation
from anyorder.variables.schema import Kind, Variable


def short(number: float) -> str:
    """A number to three figures: 12,300 and 0.0123."""
    return f"{float(f'{number:.3g}'):,.12g}"


def percent(share: float) -> str:
    """A share in percent; not all, or nothing, where that is not so."""
    if 0.995 <= share < 1:
        return "over 99%"
    return "under 1%" if 0 < share < 0.005 else f"{share:.0%}"


def amount(variable: Variable, number: float) -> str:
    """How much two values of the column differ: $12,300.00, 3.2 days, 0.51."""
    if variable.kind is Kind.DATETIME:
        return _duration(number)
    notation = variable.notation
    if isinstance(notation, NumberNotation):
        written = notation.write(float(f"{number:.3g}"))
        if notation.read(written):  # to so many places it may be nothing
            return written
    if isinstance(notation, ClockNotation | DurationNotation | PeriodNotation | TwoUnitsNotation):
        return f"{short(number)} {notation.unit}"
    return short(number)


def _duration(days: float) -> str:
    for size, unit in ((1.0, "days"), (1 / 24, "hours"), (1 / 1440, "minutes")):
        if days >= size:
            return f"{short(days / size)} {unit}"
    return f"{short(days * 86_400)} seconds"


def level_text(variable: Variable, code: int) -> str:
    """A level as it is typed."""
    level = variable.levels[code]
    return value_text(level if variable.notation is None else variable.notation.write(float(level)))


def value_text(value: Any) -> str:
    """A cell as it is typed in a question."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, pd.Timestamp | np.datetime64):
        time = pd.Timestamp(value)
        return str(time.date()) if time == time.normalize() else time.isoformat(sep=" ")
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    return str(value)
