"""Nullable, Arrow and polars dtypes."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hostile_tables.record import hostile, plain, with_column


@hostile()
def nullable_dtypes(rng: np.random.Generator) -> Any:
    return pd.DataFrame(
        {
            "whole": pd.array([None, *rng.integers(0, 99, 39)], dtype="Int64"),
            "small": pd.array([None, *rng.integers(0, 99, 39)], dtype="UInt8"),
            "real": pd.array([None, *rng.normal(size=39)], dtype="Float64"),
            "single": pd.array([None, *rng.normal(size=39)], dtype="Float32"),
            "truth": pd.array([None, *(rng.random(39) < 0.5)], dtype="boolean"),
            "text": pd.array([None, *rng.choice(["a", "b"], 39)], dtype="string"),
        }
    )


@hostile()
def pyarrow_dtypes(rng: np.random.Generator) -> Any:
    pytest.importorskip("pyarrow")
    frame = nullable_dtypes(rng)
    frame["day"] = pd.Series([pd.NaT, *pd.date_range("2024-01-01", periods=39)])
    return frame.convert_dtypes(dtype_backend="pyarrow")


@hostile()
def pyarrow_decimals_and_dates(rng: np.random.Generator) -> Any:
    arrow = pytest.importorskip("pyarrow")
    frame = plain(rng)
    price = [None, *(decimal.Decimal(f"{value:.2f}") for value in rng.normal(size=39))]
    frame["price"] = pd.array(price, dtype=pd.ArrowDtype(arrow.decimal128(9, 2)))
    day = [None, *(datetime.date(2024, 1, 1) + datetime.timedelta(days=int(k)) for k in rng.integers(0, 90, 39))]
    frame["day"] = pd.array(day, dtype=pd.ArrowDtype(arrow.date32()))
    frame["level"] = pd.array(["a", "b"] * 20, dtype=pd.ArrowDtype(arrow.dictionary(arrow.int8(), arrow.string())))
    return frame


@hostile(refused="column 'odd'")
def pyarrow_lists(rng: np.random.Generator) -> Any:
    arrow = pytest.importorskip("pyarrow")
    return with_column(rng, pd.array([[1], [2, 3]] * 20, dtype=pd.ArrowDtype(arrow.list_(arrow.int64()))))


@hostile()
def polars_dtypes(rng: np.random.Generator) -> Any:
    day = datetime.date(2024, 1, 1)
    return pl.DataFrame(
        {
            "size": pl.Series(["low", "high", None, "low"] * 10, dtype=pl.Enum(["low", "mid", "high"])),
            "price": pl.Series([decimal.Decimal("1.25"), None] + [decimal.Decimal(k) / 8 for k in range(38)]),
            "day": [None, *(day + datetime.timedelta(days=int(k)) for k in rng.integers(0, 90, 39))],
            "level": pl.Series(["a", None, "b", "a"] * 10, dtype=pl.Categorical),
            "byte": pl.Series([None, *rng.integers(0, 255, 39)], dtype=pl.UInt8),
            "when": pl.Series([datetime.datetime(2024, 1, 1, k % 24, k) for k in range(40)]).dt.replace_time_zone(
                "UTC"
            ),
            "single": pl.Series([None, *rng.normal(size=39)], dtype=pl.Float32),
            "truth": [True, None, False, True] * 10,
        }
    )


@hostile(refused="column 'odd'")
def polars_lists(rng: np.random.Generator) -> Any:
    return pl.DataFrame({"x": rng.normal(size=4), "odd": [[1], [2, 3], [4], [5]]})


@hostile(refused="column 'odd'")
def polars_structs(rng: np.random.Generator) -> Any:
    return pl.DataFrame({"x": rng.normal(size=4), "odd": [{"a": 1}] * 4})


@hostile(refused="column 'odd'")
def polars_durations(rng: np.random.Generator) -> Any:
    return pl.DataFrame({"x": rng.normal(size=4), "odd": [datetime.timedelta(hours=1)] * 4})
