"""Give values back in the form their column came in: dtype, time zone, text, Python objects.

A cell the dtype cannot leave empty (int64, bool) moves the column to the nullable dtype beside it (Int64, boolean).
"""

from __future__ import annotations

import datetime
import functools
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyorder.variables.cells import Mask, Numbers, Series
from anyorder.variables.schema import Kind, Variable
from anyorder.variables.time_forms import write_times
from anyorder.variables.times import MICROSECONDS_PER_DAY, from_ticks

EARLIEST, LATEST = -719_162, 2_932_896  # days from 1970 to the years 1 and 9999, Python's range
_NANOSECOND_DAYS = 106_750  # the range of datetime64[ns], 1677 to 2262


@functools.cache
def _dtype(name: str) -> Any:
    return pd.api.types.pandas_dtype(name)


def numbers_as(variable: Variable, values: Numbers, unknown: Mask) -> Series:
    """Numbers in the dtype of the variable's column, rounded and clipped to what it can hold."""
    dtype: Any = _dtype(variable.dtype)
    if variable.form == "text":
        write = written if variable.notation is None else variable.notation.write
        texts: Series = pd.Series(_objects([write(value) for value in values.tolist()], unknown), dtype=dtype)
        return texts
    if variable.notation is not None and variable.notation.digits:
        values = np.array([float(variable.notation.write(value)) for value in values.tolist()])
    if dtype.kind in "iu":
        bits: Any = np.iinfo(np.dtype(getattr(dtype, "numpy_dtype", dtype)))
        # float(2**63 - 1) is 2**63: step back to what the integer type really holds.
        high = float(bits.max) if bits.bits < 64 else np.nextafter(float(bits.max), 0.0)
        whole = np.rint(values).clip(float(bits.min), high).astype(bits.dtype)
        return _nullable(pd.Series(whole), unknown, dtype)
    if dtype.kind == "b":
        return _nullable(pd.Series(np.rint(values) > 0), unknown, dtype)
    if dtype.kind == "f":
        found = pd.Series(np.where(unknown, np.nan, values))
        return found if found.dtype == dtype else found.astype(dtype)
    whole_kind = variable.kind is Kind.INTEGER
    cells = [int(value) if whole_kind else value for value in values.tolist()]
    return pd.Series(_objects(cells, unknown), dtype=object)


def times_as(variable: Variable, microseconds: NDArray[np.int64], unknown: Mask, *, wall: bool) -> Series:
    """Times, in microseconds since 1970 of the wall clock or of the instant, in the form of the variable's column."""
    least, most = (EARLIEST, LATEST)
    if "[ns" in variable.dtype:
        least, most = (-_NANOSECOND_DAYS, _NANOSECOND_DAYS)
    inside = microseconds.clip(least * MICROSECONDS_PER_DAY, most * MICROSECONDS_PER_DAY)
    column: Any = pd.Series(from_ticks(inside, variable.zone, wall=wall))
    if variable.form == "date":
        return pd.Series(_objects(list(column.dt.date), unknown), dtype=object)
    if variable.form:
        cells = write_times(pd.DatetimeIndex(column), variable.form)
        if pd.api.types.pandas_dtype(variable.dtype).kind in "iuf":
            return _nullable(
                pd.Series([int(cell) for cell in cells]), unknown, pd.api.types.pandas_dtype(variable.dtype)
            )
        return pd.Series(_objects(list(map(str, cells)), unknown), dtype=variable.dtype)
    column[unknown] = pd.NaT
    restored: Series = column.astype(variable.dtype)  # "object" gives Timestamps
    return restored


def levels_as(variable: Variable, codes: NDArray[np.int64], unknown: Mask) -> Series:
    """The levels with these codes, in the dtype of the variable's column."""
    if variable.dtype == "category":
        categories = list(variable.categories)
        positions = np.array([_position(categories, level) for level in variable.levels])
        dtype = pd.CategoricalDtype(pd.Index(categories), ordered=variable.ordered)
        return pd.Series(pd.Categorical.from_codes(np.where(unknown, -1, positions[codes]), dtype=dtype))
    if variable.kind is Kind.ATOMS:
        if variable.dtype == "object" and variable.form != "text":
            return pd.Series(_objects([variable.levels[code] for code in codes], unknown), dtype=object)
        return numbers_as(variable, np.array(variable.levels, dtype=np.float64)[codes], unknown)
    kind = pd.api.types.pandas_dtype(variable.dtype).kind
    if kind == "M":
        moments = [datetime.datetime.fromisoformat(str(level)) for level in variable.levels]
        table = pd.to_datetime(pd.Series(moments), utc=bool(variable.zone)).astype(variable.dtype)  # type: ignore[call-overload]
    else:
        table = pd.Series(list(variable.levels), dtype=object)
        if kind != "O" or variable.dtype != "object":
            table = table.astype(variable.dtype)  # type: ignore[call-overload]
    column: Series = table.iloc[codes].reset_index(drop=True)
    if kind in "iub":
        return _nullable(column, unknown, column.dtype)
    if unknown.any():
        column[unknown] = None
    return column


def _position(categories: list[Any], level: object) -> int:
    return next(index for index, entry in enumerate(categories) if entry == level and type(entry) is type(level))


def _nullable(column: Series, unknown: Mask, dtype: Any) -> Series:
    if not unknown.any():
        return column.astype(dtype)
    if isinstance(dtype, np.dtype):
        dtype = "boolean" if dtype.kind == "b" else dtype.name.replace("int", "Int").replace("uI", "UI")
    column = column.astype(dtype)
    column[unknown] = pd.NA
    return column


def _objects(cells: list[Any], unknown: Mask) -> NDArray[np.object_]:
    # Filled one by one: NumPy would turn a list of dates or numbers into its own types.
    out = np.empty(len(cells), dtype=object)
    out[:] = cells
    out[unknown] = None
    return out


def written(value: float) -> str:
    """A number as a text."""
    # Twelve digits: what is beyond them is the rounding of the way there and back, not the data.
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else f"{value:.12g}"
