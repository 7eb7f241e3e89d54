"""Cells that are no values, and values that are Python objects."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pandas as pd

from hostile_tables.record import hostile, with_column


@hostile(refused="column 'odd'")
def column_of_lists(rng: np.random.Generator) -> Any:
    return with_column(rng, pd.Series([[1, 2], [3]] * 20))


@hostile(refused="column 'odd'")
def column_of_dicts(rng: np.random.Generator) -> Any:
    return with_column(rng, pd.Series([{"a": 1}, {"b": 2}] * 20))


@hostile()
def column_of_tuples(rng: np.random.Generator) -> Any:
    return with_column(rng, pd.Series([(1, 2), (3,)] * 20))


@hostile()
def column_of_bytes(rng: np.random.Generator) -> Any:
    return with_column(rng, pd.Series([b"a", b"b"] * 20))


@hostile()
def column_of_decimals(rng: np.random.Generator) -> Any:
    return with_column(rng, pd.Series([decimal.Decimal(f"{value:.3f}") for value in rng.normal(size=39)] + [None]))


@hostile(refused="column 'odd'")
def column_of_complex(rng: np.random.Generator) -> Any:
    return with_column(rng, rng.normal(size=40) + 1j)


@hostile(refused="column 'odd'")
def column_of_timedeltas(rng: np.random.Generator) -> Any:
    return with_column(rng, pd.to_timedelta(rng.integers(0, 1000, 40), unit="s"))


@hostile(refused="column 'odd'")
def column_of_periods(rng: np.random.Generator) -> Any:
    return with_column(rng, pd.period_range("2020-01", periods=40, freq="M"))


@hostile(refused="column 'odd'")
def column_of_intervals(rng: np.random.Generator) -> Any:
    return with_column(rng, pd.arrays.IntervalArray.from_breaks(range(41)))


@hostile()
def sparse_columns(rng: np.random.Generator) -> Any:
    return with_column(rng, pd.arrays.SparseArray(rng.choice([0.0, 0.0, 1.5, 2.5, 4.0], 40)))
