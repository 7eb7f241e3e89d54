"""Tables of which much is missing, in any spelling of missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hostile_tables.record import holes, hostile, with_column


@hostile(warned="left out of the model: 'void' (every cell is missing)")
def column_of_nothing(rng: np.random.Generator) -> Any:
    return with_column(rng, [np.nan] * 40, "void")


@hostile(refused="every cell of the table is missing")
def table_of_nothing(rng: np.random.Generator) -> Any:
    return pd.DataFrame(np.nan, index=range(10), columns=["a", "b"])


@hostile()
def rows_of_nothing(rng: np.random.Generator) -> Any:
    frame = with_column(rng, rng.choice(["a", "b"], 40))
    frame.iloc[[0, 7, 39]] = None
    return frame


@hostile()
def nearly_all_missing(rng: np.random.Generator) -> Any:
    frame = with_column(rng, rng.choice(["a", "b"], 200))
    frame["whole"] = rng.integers(0, 50, 200).astype(float)
    return holes(rng, frame, 0.95)


@hostile()
def one_value_known(rng: np.random.Generator) -> Any:
    return with_column(rng, [3.5] + [np.nan] * 39)


@hostile()
def two_values_known(rng: np.random.Generator) -> Any:
    return with_column(rng, [3.5, 1.25] + [np.nan] * 38)


@hostile()
def marks_and_empty_texts(rng: np.random.Generator) -> Any:
    return with_column(rng, ["", " ", "a", "b", "N/A", "none", "a", "b"] * 5)


@hostile()
def numbers_with_words_for_missing(rng: np.random.Generator) -> Any:
    return with_column(rng, [*(f"{value:.3f}" for value in rng.normal(size=36)), "N/A", "nan", "null", ""])


@hostile()
def boolean_with_nan(rng: np.random.Generator) -> Any:
    return with_column(rng, pd.Series([True, False, np.nan, None] * 10, dtype=object))
