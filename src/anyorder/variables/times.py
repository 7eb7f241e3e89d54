"""Times in the cells of a column: reading them, their zones, and numbers of days or microseconds."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyorder.errors import UserError
from anyorder.variables.cells import Mask, Numbers, Series, all_match, any_match, is_text, plain, refuse
from anyorder.variables.offsets import clock_of, commonest_offset, written_offset
from anyorder.variables.time_forms import is_digits, read_times, write_times

EXAMPLE = pd.DatetimeIndex(["2024-05-31 12:30:00"])

ISO_TIME = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z| ?[+-]\d{2}:?\d{2})?)?"


def times(column: Series, missing: Mask, name: str, zone: str, form: str = "") -> pd.DatetimeIndex:
    """The column as times of microseconds, 1970 where missing; on the clock of ``zone`` if there is one.

    ``form`` is how the times are written where they are texts or numbers: see :mod:`~anyorder.variables.time_forms`.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    known = np.flatnonzero(~missing)
    if column.dtype.kind == "M":
        cells: Any = pd.DatetimeIndex(column.iloc[known])
    elif is_text(column) or (column.dtype.kind in "iuf" and is_digits(form)):
        texts = column.iloc[known]
        aware = bool(zone) and any(has_zone(cell) for cell in texts.to_numpy(dtype=object))
        try:
            cells = read_times(texts, form, utc=aware)
            bad = np.flatnonzero(cells.isna().to_numpy())
        except (TypeError, ValueError):  # times with and without a zone in one column
            raise UserError(
                f"column {name!r}: some times have a time zone and some have none, or zones differ"
            ) from None
        if len(bad):
            own = f"{write_times(EXAMPLE, form)[0]} or " if form and form != "date" else ""
            example = f"expected a time such as {own}2024-05-01 or 2024-05-01T12:30:00"
            refuse(name, column, int(known[bad[0]]), f"{example}, got {plain(texts.iloc[bad[0]])!r}")
        cells = pd.DatetimeIndex(cells)
    elif len(known):
        refuse(name, column, known[0], f"expected a time, got {plain(column.iloc[known[0]])!r}")
    else:
        cells = pd.DatetimeIndex([])
    if zone:
        cells = _localised(cells, zone) if cells.tz is None else cells.tz_convert(zone)
    elif cells.tz is not None and len(known):
        refuse(name, column, known[0], "the time has a time zone, but the model was fitted on times without one")
    out = pd.Series(pd.Timestamp(0), index=range(len(column)), dtype="datetime64[us]")
    instants = cells if cells.tz is None else cells.tz_convert("UTC").tz_localize(None)
    out.iloc[known] = instants.as_unit("us").to_numpy()
    index = pd.DatetimeIndex(out)
    return index.tz_localize("UTC").tz_convert(zone) if zone else index


def has_zone(cell: object) -> bool:
    """Whether a time, or the text of one, says in which time zone it is."""
    if isinstance(cell, str):
        after = cell[10:]  # the date
        return "+" in after or "-" in after or after.rstrip().endswith(("Z", "z", "GMT", "UTC"))
    return getattr(cell, "tzinfo", None) is not None


def _localised(wall: pd.DatetimeIndex, zone: str) -> pd.DatetimeIndex:
    # Where a clock jumps, the first of two equal times and the first time that exists.
    return wall.tz_localize(zone, ambiguous=np.ones(len(wall), dtype=bool), nonexistent="shift_forward")


def days(index: pd.DatetimeIndex) -> Numbers:
    """Wall-clock days since 1970-01-01, with the time of day as a fraction."""
    wall = index.tz_localize(None) if index.tz is not None else index
    return ticks(wall) / MICROSECONDS_PER_DAY


def ticks(index: pd.DatetimeIndex) -> NDArray[np.int64]:
    """Microseconds since 1970, of the instant and not of the wall clock."""
    instants = index.tz_convert("UTC").tz_localize(None) if index.tz is not None else index
    return np.asarray(instants.as_unit("us").to_numpy().astype("datetime64[us]").astype(np.int64))


def from_ticks(microseconds: NDArray[np.int64], zone: str, *, wall: bool) -> pd.DatetimeIndex:
    """Times from microseconds since 1970: of the clock of ``zone`` if ``wall``, else of the instant."""
    index = pd.DatetimeIndex(microseconds.astype("datetime64[us]"))
    if not zone:
        return index
    return _localised(index, zone) if wall else index.tz_localize("UTC").tz_convert(zone)


MICROSECONDS_PER_DAY = 86_400_000_000


ZONE = r"(?:Z| ?[+-]\d\d:?\d\d)"
"""How a time ends that has a zone."""


def text_zone(texts: Series) -> tuple[str, str]:
    """The clock of texts with a time zone, and how it is written after the time: the commonest of several offsets."""
    if not any(map(has_zone, texts)) or not any_match(texts, rf".{{11,}}{ZONE}"):  # the first is quick
        return "", ""
    written = written_offset(str(texts.iloc[0]).strip())
    if not written or not all_match(texts, rf".{{11,}}{re.escape(written)}"):
        written = commonest_offset(map(str, texts))
    return clock_of(written), written


def time_pattern(text: str, zone: str) -> str:
    """The strftime pattern in which an ISO text is written, with ``zone`` after the time."""
    if len(text) <= 10:
        return "%Y-%m-%d"
    clock = text[11:].rstrip("Zz").split("+")[0].split("-")[0].rstrip()
    parts = {5: "%H:%M", 8: "%H:%M:%S", 12: "%H:%M:%S.%3f"}.get(len(clock), "%H:%M:%S.%f")
    return f"%Y-%m-%d{text[10]}{parts}{zone}"
