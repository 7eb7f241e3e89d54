"""What is known of one case, from a mapping, a Series or a frame of one row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
        cells = dict(row.items())
    else:
        frame = as_pandas(row)
        if len(frame) != 1:
            raise UserError(f"one case is expected: a mapping, or a frame of one row, got {len(frame)} rows")
        cells = dict(frame.iloc[0].items())
    ignored = {*schema.left_out, *schema.dropped}
    known = {str(name): cell for name, cell in cells.items() if name not in ignored}
    # A list or a range is evidence too, and not a cell that could be missing.
    return {
        name: cell
        for name, cell in known.items()
        if not pd.api.types.is_scalar(cell) or not missing_cells(_one_cell(cell), schema.missing)[0]
    }


def _one_cell(cell: Any) -> pd.Series:
    # A text stays as it is: Arrow, behind the texts of pandas, cannot hold half a surrogate pair.
    return pd.Series([cell], dtype=object if isinstance(cell, str) else None)
