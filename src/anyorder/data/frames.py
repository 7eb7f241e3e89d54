"""Frames in, frames of the same kind out: pandas inside, polars (or whatever narwhals reads) outside.

Columns cross one by one through NumPy or lists, so no further package is needed for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from anyorder.errors import UserError
from anyorder.variables import hints


def as_pandas(frame: Any) -> pd.DataFrame:
    """The frame in pandas, its column names as distinct texts; dtypes and index as they are.

    A mapping of names to columns is a frame too. The cells are shared, not copied, where pandas allows it.
    """
    if isinstance(frame, pd.DataFrame):
        table = frame.copy(deep=False)
    elif isinstance(frame, Mapping):
        table = pd.DataFrame(dict(frame))
    else:
        table = _from_other(frame)
    names = [str(name) for name in table.columns]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise UserError(f"column names must differ; repeated: {', '.join(map(repr, repeated))}. Rename or remove them")
    table.columns = pd.Index(names, dtype=object)
    for number, dtype in enumerate(table.dtypes):
        # Arrow's dates, decimals and dictionaries are to pandas neither numbers nor times nor texts; their cells are.
        if isinstance(dtype, pd.ArrowDtype) and dtype.kind == "O" and not pd.api.types.is_string_dtype(dtype):
            table.isetitem(number, table.iloc[:, number].to_numpy(dtype=object))
    return table


def like_input(frame: pd.DataFrame, original: Any) -> Any:
    """The pandas ``frame`` as the kind of frame ``original`` is, its columns labelled as there, in its dtypes."""
    if isinstance(original, pd.DataFrame):
        return _labelled(frame, original.columns)
    if isinstance(original, Mapping):
        return _labelled(frame, pd.Index(list(original)))
    model = nw.from_native(original, eager_only=True)
    dtypes = model.schema
    columns = [_to_other(str(name), frame[name], dtypes.get(name), model.implementation) for name in frame.columns]
    # Not an empty frame: narwhals needs one column at least to know the number of rows.
    return nw.to_native(columns[0].to_frame().with_columns(*columns[1:])) if columns else original


def in_kind_of(frame: pd.DataFrame, original: Any) -> Any:
    """A new frame, unlike ``original`` but for its library; the labels of columns are texts outside of pandas."""
    if isinstance(original, pd.DataFrame | Mapping) or not len(frame.columns):
        return frame
    library = nw.from_native(original, eager_only=True).implementation
    columns = [_to_other(str(name), frame.iloc[:, at], None, library) for at, name in enumerate(frame.columns)]
    return nw.to_native(columns[0].to_frame().with_columns(*columns[1:]))


def is_frame(thing: Any) -> bool:
    """Whether this is a table of pandas, polars or another library, and no mapping or single value."""
    if thing is None or isinstance(thing, dict):  # most questions
        return False
    if isinstance(thing, pd.DataFrame):  # whatever its columns are called, twice the same among them
        return True
    return isinstance(nw.from_native(thing, pass_through=True), nw.DataFrame | nw.LazyFrame)


def _labelled(frame: pd.DataFrame, labels: pd.Index[Any]) -> pd.DataFrame:
    """Numbers and other labels that :func:`as_pandas` turned into texts put back; new columns keep their texts."""
    if frame.columns.identical(labels):
        return frame
    names = [str(label) for label in labels]
    if names == list(frame.columns):
        return frame.set_axis(labels, axis="columns")
    known = dict(zip(names, labels, strict=True))
    theirs = [known.get(name, name) for name in frame.columns]
    texts = all(isinstance(label, str) for label in theirs)
    return frame.set_axis(pd.Index(theirs, dtype=None if texts else object, name=labels.name), axis="columns")


def _from_other(frame: Any) -> pd.DataFrame:
    try:
        table: Any = nw.from_native(frame)
    except TypeError:
        raise UserError(
            f"expected a table (a pandas or polars DataFrame, or a mapping of columns), got {type(frame).__name__}"
        ) from None
    if isinstance(table, nw.LazyFrame):
        raise UserError("expected a table in memory, got a lazy one; call .collect() on it first")
    return pd.DataFrame({name: _column(name, table[name]) for name in table.columns}, index=range(len(table)))


def _column(name: str, series: nw.Series[Any]) -> Any:
    dtype = series.dtype
    empty = bool(series.null_count())
    if dtype.is_integer():
        whole: Any = pd.Series(series.fill_null(0).to_numpy() if empty else series.to_numpy())
        if empty:
            whole = whole.astype(str(whole.dtype).replace("int", "Int").replace("uI", "UI"))
            whole[series.is_null().to_numpy()] = pd.NA
        return whole
    if dtype.is_decimal():
        return series.cast(nw.Float64).to_numpy()
    if dtype.is_float():
        return series.to_numpy()
    if dtype == nw.Boolean:
        return pd.Series(series.to_list(), dtype="boolean" if empty else "bool")
    if dtype == nw.String:
        return pd.Series(series.to_list(), dtype="str")
    if isinstance(dtype, nw.Enum):
        return pd.Categorical(series.cast(nw.String).to_list(), categories=list(dtype.categories), ordered=True)
    if dtype == nw.Categorical:
        return pd.Categorical(series.cast(nw.String).to_list())
    if dtype == nw.Date:
        return pd.Series(series.to_numpy().astype("datetime64[s]"))
    if isinstance(dtype, nw.Datetime):
        if dtype.time_zone is None:
            return pd.Series(series.to_numpy())
        instants = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy()
        unzoned: Any = pd.Series(instants)
        return unzoned.dt.tz_localize("UTC").dt.tz_convert(dtype.time_zone)
    if dtype == nw.Unknown and series.null_count() == len(series):
        return pd.Series([None] * len(series), dtype=object)
    raise UserError(
        f"column {name!r} has the dtype {dtype}; expected numbers, texts, booleans or times. "
        f"Convert it, or leave it out with {hints.drop(name)}"
    )


def _to_other(name: str, column: Any, dtype: Any, implementation: Any) -> nw.Series[Any]:
    unknown = column.isna().to_numpy(dtype=bool)
    if column.dtype.kind == "M":
        zone = getattr(column.dtype, "tz", None)
        plain = column if zone is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
        series = nw.new_series(
            name,
            plain.astype("datetime64[us]" if plain.dtype == "datetime64[s]" else plain.dtype).to_numpy(),
            backend=implementation,
        )
        if zone is not None:
            series = series.dt.replace_time_zone("UTC").dt.convert_time_zone(str(zone))
    elif isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf" and not unknown.any():
        series = nw.new_series(name, column.to_numpy(), backend=implementation)
    else:
        cells = column.to_numpy(dtype=object)
        cells = [None if gone else cell for gone, cell in zip(unknown, cells, strict=True)]
        series = nw.new_series(name, cells, backend=implementation)
    if dtype is None or series.dtype == dtype or dtype == nw.Unknown:
        return series
    # A fraction filled into a column of whole numbers stays one.
    fraction = series.dtype.is_float() and dtype.is_integer() and not bool((column.dropna() % 1 == 0).all())
    return series if fraction else series.cast(dtype)
