"""A frame as its file would have it: numbers as texts, where the file writes them in a way of its own."""

from __future__ import annotations

import pandas as pd

from anyorder.variables.schema import Schema


def as_written(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The frame with numbers that a notation stands for as texts (12.50, 64,3); everything else as it is."""
    out = frame.copy(deep=False)
    for variable in schema.variables:
        name = variable.name
        if variable.notation is None or name not in out.columns or out[name].dtype.kind != "f":
            continue
        write = variable.notation.write
        out[name] = out[name].astype(object).map(lambda value, write=write: value if pd.isna(value) else write(value))
    return out
