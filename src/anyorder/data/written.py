"""A frame as its file would have it: numbers as texts, where the file writes them in a way of its own."""

from __future__ import annotations

from typing import Any

import pandas as pd

from anyorder.data.dialect import Dialect
from anyorder.data.digits import PLACES
from anyorder.variables.notations import Notation
from anyorder.variables.notations.number import NumberNotation
from anyorder.variables.schema import Schema


def as_written(frame: pd.DataFrame, schema: Schema, like: pd.DataFrame | None = None) -> pd.DataFrame:
    """The frame with numbers as texts where a file always writes so many digits (12.50); everything else as it is.

    ``like`` is the file's own table, whose cells must come back to the letter; without it the file that the model was
    fitted on is meant.
    """
    out = frame.copy(deep=False)
    digits: dict[str, tuple[int, str]] = {} if like is None else like.attrs.get(PLACES, {})
    for variable in schema.variables:
        name = variable.name
        if name not in out.columns or out[name].dtype.kind != "f":
            continue
        own = variable.notation
        if like is not None:
            places, exponent = digits.get(name, (0, ""))
            decimal = Dialect.of(like).decimal
            own = NumberNotation(decimal=decimal, places=places, exponent=exponent) if places else None
        if own is not None:
            out[name] = _texts(out[name], own)
    return out


def _texts(column: Any, notation: Notation) -> Any:
    return column.astype(object).map(lambda value: value if pd.isna(value) else notation.write(value))
