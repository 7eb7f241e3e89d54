"""A hash of the cells of a table: whether two models saw the same data, and whether a table is what a model saw."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from typing import Any

import pandas as pd


def fingerprint(table: pd.DataFrame) -> str:
    """A hash of the names and cells, in their order."""
    digest = hashlib.sha256()
    for name in table.columns:
        column = table[name]
        try:
            hashed = pd.util.hash_pandas_object(column, index=False)
        except TypeError:
            hashed = pd.util.hash_pandas_object(column.astype(str), index=False)
        digest.update(str(name).encode())
        digest.update(hashed.to_numpy().tobytes())
    return digest.hexdigest()[:16]


def warn_if_fitted_on(card: Mapping[str, Any], frame: pd.DataFrame) -> None:
    """Warn if these are the rows that the model of this card was fitted on."""
    data = card.get("data", {})
    columns = data.get("columns", [])
    if data.get("rows") != len(frame) or not columns or not set(columns) <= set(frame.columns):
        return
    if fingerprint(frame[columns]) == data.get("fingerprint"):
        warnings.warn(
            "the model was fitted on these very rows, so it looks better here than it is: check it on rows that it has "
            "not seen",
            UserWarning,
            stacklevel=3,
        )
