"""The forms in which people write dates and times: which one a column has, and how to read and write in it.

A form is a strftime pattern. Beyond the standard ones ``%-d`` (and m, H, I) stands for a number without a leading zero,
``%^b`` for capitals, on every system; ``epoch s`` and ``epoch ms`` for the seconds or milliseconds since 1970 that
machines write.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anyorder.variables.cells import Series

DATES = (
    *(f"%d{sign}%m{sign}%Y" for sign in "/.- "),
    *(f"%m{sign}%d{sign}%Y" for sign in "/.- "),
    *(f"%Y{sign}%m{sign}%d" for sign in "/. -"),
    *(f"%d{sign}%m{sign}%y" for sign in "/.-"),
    *(f"%m{sign}%d{sign}%y" for sign in "/.-"),
    *("%d %b %Y", "%d-%b-%Y", "%d/%b/%Y", "%d.%b.%Y", "%d-%b-%y", "%d %b %y", "%d. %b %Y", "%d%b%Y"),
    *("%d %B %Y", "%d. %B %Y", "%d-%B-%Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%Y-%b-%d", "%Y %b %d"),
    *("%a, %d %b %Y", "%a %d %b %Y", "%A, %d %B %Y", "%A, %B %d, %Y", "%a, %b %d, %Y", "%a %b %d %Y"),
    "%Y%m%d",
)
CLOCKS = ("%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p", "%I:%M:%S%p")
WHOLE = ("%a %b %d %H:%M:%S %Y", "%Y%m%dT%H%M%S", "%Y%m%d%H%M%S", "%d%b%Y:%H:%M:%S", "%d/%b/%Y:%H:%M:%S")
"""Forms that are no date and clock side by side."""
EPOCHS = {"epoch s": 1_000_000, "epoch ms": 1_000}
"""Microseconds in one of their units."""
LONGEST = 40
ENOUGH = 6
"""Different dates from which on it is no chance that they are in the order of time."""
EARLIEST, LATEST = 1900, 2100
"""Years from which on, and up to which, digits alone are taken for a date."""


@dataclass(frozen=True)
class TimeForm:
    """A form, and the other one (if any) that all texts could have too."""

    pattern: str
    other: str = ""


def find_time_form(texts: Sequence[str]) -> TimeForm | None:
    """The form in which all these different texts are written; None if there is none."""
    first = texts[0] if texts else ""
    if not 6 <= len(first) <= LONGEST or not any(sign.isdigit() for sign in first):
        return None
    digits = all(text.isdigit() for text in texts)
    column = pd.Series(list(texts), dtype="str")
    found = []
    for pattern in _candidates(first):
        read = pd.to_datetime(column, format=pattern, errors="coerce")
        if not read.notna().all() or (digits and not read.dt.year.between(EARLIEST, LATEST).all()):
            continue
        exact = _padded(pattern, texts)
        if list(write_times(pd.DatetimeIndex(read), exact)) == list(texts):
            found.append((exact, read))
    if not found:
        return None
    either = {pattern: read for pattern, read in found if _swapped(pattern) in dict(found)}
    if not either:
        return TimeForm(found[0][0])
    # Both orders can be read: where one of them puts the rows into the order of time, that one is meant.
    sorted_so = [pattern for pattern, read in either.items() if _in_order(read)]
    if len(texts) >= ENOUGH and len(sorted_so) == 1:
        return TimeForm(sorted_so[0])
    # As programs have it: the month first between strokes, the day first between points and hyphens.
    chosen = next(
        (pattern for pattern in either if ("/" in pattern) == (pattern.index("m") < pattern.index("d"))), found[0][0]
    )
    return TimeForm(chosen, _swapped(chosen))


def _in_order(moments: Any) -> bool:
    return bool(moments.is_monotonic_increasing or moments.is_monotonic_decreasing)


def _candidates(first: str) -> list[str]:
    """The patterns in which this one text can be read."""
    apart = re.fullmatch(r"(.*?)( at |, |T| )(\d{1,2}:\d\d.*)", first)
    if apart is None:
        return [pattern for pattern in (*DATES, *WHOLE) if _fits(first, pattern)]
    date, gap, clock = apart.groups()
    clocks = [pattern for pattern in CLOCKS if _fits(clock, pattern)]
    both = [f"{pattern}{gap}{time}" for pattern in DATES if _fits(date, pattern) for time in clocks]
    return both or [pattern for pattern in WHOLE if _fits(first, pattern)]


def _fits(text: str, pattern: str) -> bool:
    try:
        datetime.datetime.strptime(text, pattern)
    except ValueError:
        return False
    return True


def _padded(pattern: str, texts: Sequence[str]) -> str:
    """The pattern with ``%-d`` for ``%d`` where days have no leading zero, and so on, and with capitals for names."""
    if any(text.isupper() for text in texts) and re.search("%[aAbB]", pattern):
        pattern = re.sub("%([aAbB])", r"%^\1", pattern)
    if "%d%" in pattern.replace("-", "") or "%m%" in pattern:
        return pattern  # digits without a sign between them are always padded
    shape = re.compile(
        re.sub(r"%\^?([a-zA-Z])", lambda token: _GROUP.get(token[1], ".+?"), re.escape(pattern).replace(r"\%", "%"))
    )
    parts = [found for text in texts if (found := shape.fullmatch(text))]
    for letter in "dmHI":
        if f"%{letter}" in pattern and any(len(found[letter]) == 1 for found in parts):
            pattern = pattern.replace(f"%{letter}", f"%-{letter}")
    return pattern


_GROUP = {letter: rf"(?P<{letter}>\d{{1,2}})" for letter in "dmHI"} | {"Y": r"\d{4}", "y": r"\d\d"}


def _swapped(pattern: str) -> str:
    """The pattern with day and month the other way round; empty where they cannot be mistaken."""
    if not re.match(r"%-?[dm].%-?[dm]", pattern):
        return ""
    return re.sub("[dm]", lambda letter: "m" if letter[0] == "d" else "d", pattern, count=2)


def is_iso(form: str) -> bool:
    """Whether this is the form 2024-05-01, with or without a time of day, or none at all."""
    return not form or form == "date" or form.startswith("%Y-%m-%d")


def is_digits(form: str) -> bool:
    """Whether times in this form can be whole numbers of a file."""
    return form in EPOCHS or form in ("%Y%m%d", "%Y%m%d%H%M%S")


def read_times(texts: Series, form: str, *, utc: bool) -> Any:
    """Texts (or whole numbers) as times, NaT where one is in neither this form nor ISO's."""
    if form in EPOCHS:
        micro = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float, na_value=np.nan) * EPOCHS[form]
        good = np.abs(micro) < 2.0**62
        stamps = np.where(good, micro, 0).astype(np.int64).astype("datetime64[us]")
        read: Any = pd.Series(stamps, index=texts.index).where(good)
        return read
    pattern = re.sub(r"%[-^]", "%", form)
    if is_iso(form):
        return pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=utc)
    codes, different = pd.factorize(texts)  # days repeat, and reading one takes a microsecond
    words = pd.Series(np.asarray(different, dtype=object)).astype(str).str.strip()
    found: Any = pd.to_datetime(words, format=pattern, errors="coerce")
    missing = found.isna()
    if missing.any():
        found[missing] = pd.to_datetime(words[missing], format="ISO8601", errors="coerce")
    return pd.Series(found.to_numpy()[codes], index=texts.index)


def write_times(moments: pd.DatetimeIndex, form: str) -> list[Any]:
    """Times in a form: texts, or whole numbers where the form is one of ``epoch``."""
    if form in EPOCHS:
        return (moments.as_unit("us").asi8 // EPOCHS[form]).tolist()
    if "%-" not in form and "%^" not in form:
        return list(moments.strftime(form))
    marked = re.sub(r"%\^([a-zA-Z])", "\x01%\\1\x01", form.replace("%-", "\x02%"))
    return [
        re.sub("\x01(.*?)\x01", lambda name: name[1].upper(), re.sub("\x020?", "", text))
        for text in moments.strftime(marked)
    ]
