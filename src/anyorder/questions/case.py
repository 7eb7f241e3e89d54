"""What is known of one case, from a mapping, a Series or a frame of one row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from anyorder.data.frames import as_pandas
from anyorder.errors import UserError
from anyorder.variables.cells import missing_cells
from anyorder.variables.schema import Schema


def known_cells(schema: Schema, row: Any) -> dict[str, Any]:
    """What is known of a case: the cells of a mapping, a Series or a frame of one row that are not missing.

    Columns that the model was fitted without are left out, and a mark that stood for a missing cell then does so here.
    """
    if row is None:
        return {}
    if isinstance(row, pd.Series | Mapping):
        cells: dict[Any, Any] = dict(row.items())
    else:
        frame = as_pandas(row)
        if len(frame) != 1:
            raise UserError(f"expected one case (a mapping, or a frame with one row), got {len(frame)} rows")
        cells = dict(frame.iloc[0].items())
    ignored = {*schema.left_out, *schema.dropped}
    marks = {"", *(mark.strip() for mark in schema.missing)}
    return {
        str(name): cell
        for name, cell in stated(cells).items()
        if name not in ignored and not (isinstance(cell, str) and cell.strip() in marks)
        if not (schema.missing and _is_number(cell) and missing_cells(pd.Series([cell]), schema.missing)[0])
    }


def stated(evidence: Mapping[Any, Any]) -> dict[Any, Any]:
    """Evidence without what is unknown: NaN, NaT, None."""
    # A list or a range is evidence too, and not a cell that could be missing.
    return {name: cell for name, cell in evidence.items() if not pd.api.types.is_scalar(cell) or not pd.isna(cell)}


def cells_of_row(row: Any) -> frozenset[str]:
    """The columns of a row that came as one, and not as evidence in so many words."""
    return frozenset(map(str, row.index)) if isinstance(row, pd.Series) else frozenset()


def _is_number(cell: Any) -> bool:
    return isinstance(cell, int | float | np.number) and not isinstance(cell, bool)
