"""In which hundred years dates lie whose years have two digits: a date of birth is not in the future."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from anyorder.data import column_names
from anyorder.variables.centuries import USUAL, moved, with_century
from anyorder.variables.notations.period import PeriodNotation
from anyorder.variables.time_forms import TimeForm, read_times

SOON = 10
"""Years from now on up to which dates are planned."""


@dataclass(frozen=True)
class Century:
    """The form with the years that two digits stand for, how that was decided, and what should be said of it."""

    form: TimeForm
    said: str = ""
    doubt: str = ""
    other: str = ""
    """The form with the usual years, where they are as possible."""


def find_century(name: str, form: TimeForm, texts: Sequence[str], today: datetime.date | None = None) -> Century:
    """The years that are meant, decided for the whole column."""
    if "%y" not in form.pattern:
        return Century(form)
    now = today or datetime.date.today()
    usual = read_times(pd.Series(list(texts), dtype="str"), form.pattern, utc=False)
    first = now.year - 99
    if (moved(usual, first) > pd.Timestamp(now)).any():
        first -= 1
    past = TimeForm(with_century(form.pattern, first), with_century(form.other, first) if form.other else "")
    years = f"years of two digits are those from {first} to {first + 99}"
    if name in column_names.BIRTH:
        return Century(past, f"{years}, as nobody is born in the future")
    late = usual.dt.year.max() > now.year + SOON and name not in column_names.LATER
    if not late or _span(usual) < _span(moved(usual, first)):
        return Century(form)
    return Century(past, "", f"{years}: others would lie in the future", with_century(form.pattern, USUAL))


def _span(moments: pd.Series[pd.Timestamp]) -> int:
    return int(moments.dt.year.max() - moments.dt.year.min())


def months_of_century(name: str, notation: PeriodNotation, texts: Sequence[str]) -> PeriodNotation:
    """Months with years of two digits in the hundred years that are meant."""
    if "YYYY" in notation.form or "YY" not in notation.form or name in column_names.LATER:
        return notation
    now = datetime.date.today()
    last = max(int(notation.read(text) or 0.0) // 12 for text in texts)
    late = last > now.year + (0 if name in column_names.BIRTH else SOON)
    return replace(notation, first=now.year - 99) if late else notation
