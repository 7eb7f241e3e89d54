"""What a column of dates or times is: how fine they are, on which clock, and how they are written."""

from __future__ import annotations

import numpy as np
import pandas as pd

from anyorder.variables.cells import Mask, Series, any_match, is_text, refuse
from anyorder.variables.offsets import clock_of, split_offsets, written_offset
from anyorder.variables.schema import Kind, Variable
from anyorder.variables.times import ZONE, days, has_zone, text_zone, ticks, time_pattern, times


def time_variable(name: str, column: Series, missing: Mask, *, declared: bool, form: str = "") -> Variable | None:
    """What a column of times is; None where all are the same, unless it is declared to be one.

    ``form`` is how they are written, if that is not ISO's form or the cells are numbers.
    """
    known = column[~missing]
    dtype, zone = str(column.dtype), ""
    if isinstance(column.dtype, pd.CategoricalDtype):
        dtype = str(column.cat.categories.dtype)
    first = known.iloc[0]
    if form:
        if isinstance(first, str) and split_offsets([cell.strip() for cell in known.unique()]):
            zone = clock_of(written_offset(form))
    elif isinstance(first, str):
        zone, written = text_zone(known.astype(object))
        finest = known.iloc[int(known.str.len().to_numpy(dtype=float, na_value=0.0).argmax())]
        form = time_pattern(finest.strip(), written)
    elif column.dtype.kind == "M" or hasattr(first, "hour"):
        zone = str(getattr(first, "tzinfo", None) or "")
    else:
        form = "date"
    if zone and is_text(column) and not all(has_zone(cell) for cell in known):
        naive = int(np.flatnonzero(~missing)[[has_zone(cell) for cell in known].index(False)])
        refuse(
            name,
            column,
            naive,
            "this time has no time zone, but others in the column have one; give one to all or to none",
        )
    read = times(column, missing, name, zone, form)[~missing]
    instants = ticks(read)
    if len(np.unique(instants)) == 1 and not declared:
        return None
    at_midnight = bool((days(read) % 1 == 0).all())
    resolution = "day" if at_midnight else "second" if bool((instants % 1_000_000 == 0).all()) else "microsecond"
    return Variable(name, Kind.DATETIME, dtype=dtype, resolution=resolution, zone=zone, form=form)


def real_times(texts: Series) -> bool:
    """Whether all texts of the form of ISO 8601 are times that exist."""
    try:
        read = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=any_match(texts, rf".{{11,}}{ZONE}"))
    except ValueError:
        return False
    return bool(read.notna().all())
