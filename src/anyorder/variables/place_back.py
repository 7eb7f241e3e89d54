"""Put new values into the unknown cells of a user's own column, and touch no other cell of it.

The column may differ from the one the model was fitted on: float64 instead of float32, texts instead of dates. Its
dtype stays where it can hold the new values; else it moves to a wider one that holds the old cells exactly, and
finally to Python objects.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyorder.variables.cells import Numbers, Series, any_match, is_text
from anyorder.variables.codecs import Codec, Space
from anyorder.variables.codecs.level import TRUTH
from anyorder.variables.restore import written
from anyorder.variables.schema import Kind
from anyorder.variables.time_forms import is_iso, write_times
from anyorder.variables.times import ISO_TIME, ZONE, text_zone, time_pattern

Rows = NDArray[np.intp]


def put_back(codec: Codec, column: Series, rows: Rows, values: Numbers, known: Rows, codes: Numbers) -> Series:
    """``column`` with the cells at positions ``rows`` standing for the model values ``values``.

    ``known`` are positions of cells whose model values are ``codes``: they show how this column spells a level.
    """
    decoded = codec.decode(values)
    if decoded.dtype == column.dtype and not pd.api.types.is_object_dtype(column.dtype) and not codec.variable.form:
        return _assigned(column, rows, decoded)
    if pd.api.types.is_object_dtype(column.dtype) or is_text(column):
        own = column.iloc[known]
        if not len(own) and len(rows) == len(column):
            return decoded.set_axis(column.index)
    else:
        own = column.iloc[known[:1]]
    if codec.space is Space.LEVELS:
        new = _levels(column, decoded, values, known, codes)
    elif codec.variable.kind is Kind.DATETIME:
        new = _times(codec, column, own, values)
    else:
        new = _numbers(codec, own, values)
    return _held(column, rows, new)


def _levels(column: Series, decoded: Series, values: Numbers, known: Rows, codes: Numbers) -> Series:
    """Levels as this column spells them; one that it does not hold, as the model's column did."""
    spelled = _commonest(column.iloc[known], codes)
    usual = list(decoded.astype(object))
    if column.dtype.kind in "biuf":
        usual = [_number(cell) for cell in usual]
        if column.dtype.kind != "b" and not any(isinstance(cell, str) for cell in usual):
            return pd.Series([float(cell) for cell in usual])
        usual = [bool(cell) if cell in (0, 1) else cell for cell in usual]
    elif is_text(column) and len(known) and isinstance(column.iloc[int(known[0])], str):
        usual = [written(float(cell)) if isinstance(cell, float | np.number) else str(cell) for cell in usual]
    return _objects([spelled.get(int(code), cell) for code, cell in zip(np.rint(values), usual, strict=True)])


def _commonest(cells: Series, codes: Numbers) -> dict[int, Any]:
    """How the column spells each level, the most often where it does so in several ways."""
    which, different = pd.factorize(cells)
    _, first = np.unique(which, return_index=True)
    spelled: dict[int, Any] = {}
    for at in np.argsort(-np.bincount(which, minlength=len(different)), kind="stable"):
        row = int(first[at])
        spelled.setdefault(int(codes[row]), cells.iloc[row])
    return spelled


def _number(cell: Any) -> Any:
    """A level as a number, where it means one."""
    text = str(cell).strip().casefold()
    try:
        return float(text)
    except ValueError:
        return TRUTH.get(text, cell)


def _numbers(codec: Codec, own: Series, values: Numbers) -> Series:
    plain = codec.decode_as(dataclasses.replace(codec.variable, dtype="float64", form="", notation=None), values)
    if len(own) and isinstance(own.iloc[0], str):
        notation = codec.variable.notation
        return _objects([written(value) if notation is None else notation.write(value) for value in plain.tolist()])
    if codec.variable.notation is not None and codec.variable.notation.digits:
        plain = pd.Series([float(codec.variable.notation.write(value)) for value in plain.tolist()])
    whole = codec.variable.kind is Kind.INTEGER and pd.api.types.is_object_dtype(own.dtype)
    return _objects([int(value) for value in plain.tolist()]) if whole else plain


def _times(codec: Codec, column: Series, own: Series, values: Numbers) -> Series:
    zone = codec.variable.zone
    dtype = f"datetime64[us, {zone}]" if zone else "datetime64[us]"
    moments: Any = codec.decode_as(dataclasses.replace(codec.variable, dtype=dtype, form=""), values)
    first = own.iloc[0] if len(own) else None
    form = codec.variable.form
    iso = isinstance(first, str) and re.fullmatch(ISO_TIME, first.strip()) is not None
    if not iso and not is_iso(form) and not hasattr(first, "year"):
        cells = write_times(pd.DatetimeIndex(moments), form)
        return (
            pd.Series([int(cell) for cell in cells]) if column.dtype.kind in "iuf" else _objects(list(map(str, cells)))
        )
    if isinstance(first, str):
        clock, spelling = text_zone(own.astype(object)) if any_match(own, rf".{{11,}}{ZONE}") else ("", "")
        if clock:
            moments = moments.dt.tz_convert(clock)
        return _objects(write_times(pd.DatetimeIndex(moments), time_pattern(first.strip(), spelling)))
    if first is not None and pd.api.types.is_object_dtype(column.dtype):
        return _objects(list(moments if hasattr(first, "hour") else moments.dt.date))
    theirs = getattr(column.dtype, "tz", None)
    if zone:
        moments = moments.dt.tz_localize(None) if theirs is None else moments.dt.tz_convert(theirs)
    out: Series = moments
    return out


def _held(column: Series, rows: Rows, new: Series) -> Series:
    """The first dtype that holds the new cells well and the others exactly."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        more = [cell for cell in dict.fromkeys(new.tolist()) if cell not in column.cat.categories]
        column = column.cat.add_categories(more) if more else column
        return _assigned(column, rows, new.astype(column.dtype))
    others = np.setdiff1d(np.arange(len(column)), rows)
    for dtype in _wider(column.dtype):
        try:
            with np.errstate(all="ignore"):  # a number too large is found below
                held, wide = new.astype(dtype), column if dtype is column.dtype else column.astype(dtype)
        except (TypeError, ValueError, OverflowError):
            continue
        kept = wide is column or _same(wide.iloc[others], column.iloc[others], close=False)
        if kept and _same(held, new, close=True):
            return _assigned(wide, rows, held)
    return _assigned(column.astype(object), rows, new.astype(object))


def _wider(dtype: Any) -> Iterator[Any]:
    yield dtype
    if dtype.kind in "iuf":
        numpy = isinstance(dtype, np.dtype)
        if dtype.kind != "f":
            yield "int64" if numpy else "Int64"
        yield "float64" if numpy else "Float64"


def _same(one: Series, other: Series, *, close: bool) -> bool:
    """Cell by cell; with ``close``, up to what a narrower float or a coarser clock rounds away."""
    if one.dtype.kind == "f" and other.dtype.kind in "iuf":
        a, b = (part.to_numpy(dtype="float64", na_value=np.nan) for part in (one, other))
        exact = np.array_equal(a, b, equal_nan=True)
        if other.dtype.kind != "f" and exact:  # whole numbers above 2**53 are rounded on the way
            exact = bool((np.abs(a[~np.isnan(a)]) <= 2.0**53).all())
        return exact or (close and bool(np.isclose(a, b, rtol=1e-2, atol=0.0).all()))
    if one.dtype.kind == "M" and other.dtype.kind == "M" and close:
        return True
    pairs = zip(one.astype(object), other.astype(object), strict=True)
    return all(a == b or (pd.isna(a) and pd.isna(b)) for a, b in pairs)


def _assigned(column: Series, rows: Rows, new: Series) -> Series:
    out = column.copy()
    out.iloc[rows] = new.array
    return out


def _objects(cells: list[Any]) -> Series:
    out = np.empty(len(cells), dtype=object)
    out[:] = cells
    return pd.Series(out, dtype=object)
