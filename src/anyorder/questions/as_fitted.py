"""Drawn rows as the kind of frame that the model was fitted to.

The library's name goes into the card of a model, so that a loaded one knows it too; where that library is not
installed, rows come in pandas.
"""

from __future__ import annotations

import importlib
from typing import Any

import narwhals as nw
import pandas as pd

from anyorder.data.frames import in_kind_of
from anyorder.variables.schema import Schema, Variable

LIBRARIES = ("polars", "pyarrow")


def library_of(frame: Any) -> str:
    """The name of the library of a frame, if it is one that rows can be given back in; empty for pandas."""
    read = nw.from_native(frame, pass_through=True)
    if not isinstance(read, nw.DataFrame):
        return ""
    name = read.implementation.value
    return name if name in LIBRARIES else ""


def as_fitted(frame: pd.DataFrame, library: object, schema: Schema) -> Any:
    """The frame in that library, dates and categories as they were there."""
    if library not in LIBRARIES or not len(frame.columns):
        return frame
    try:
        module: Any = importlib.import_module(str(library))
    except ImportError:
        return frame
    like = nw.to_native(nw.from_dict({"row": []}, backend=module))
    table = nw.from_native(in_kind_of(frame, like), eager_only=True)
    dtypes = {name: dtype for name in table.columns if name in schema and (dtype := _dtype(schema[name])) is not None}
    casts = [nw.col(name).cast(dtype) for name, dtype in dtypes.items()]
    return nw.to_native(table.with_columns(*casts) if casts and library == "polars" else table)


def _dtype(variable: Variable) -> Any:
    """The dtype of another library that pandas has no like of; None where it needs none."""
    if variable.dtype == "datetime64[s]" and not variable.form:
        return nw.Date
    if variable.dtype != "category" or not all(isinstance(level, str) for level in variable.categories):
        return None
    return nw.Enum([str(level) for level in variable.categories]) if variable.ordered else nw.Categorical
