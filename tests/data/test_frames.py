"""Frames of polars and pandas: there and back without loss."""

from __future__ import annotations

import datetime

import pandas as pd
import polars as pl

from anyorder.data.frames import as_pandas, like_input


def test_polars_in_and_out() -> None:
    berlin = pl.Series([datetime.datetime(2024, 1, 1, 12), None, datetime.datetime(2024, 7, 1)])
    frame = pl.DataFrame(
        {
            "i": pl.Series([1, None, 2**60 + 1], dtype=pl.Int64),
            "small": pl.Series([1, 2, 3], dtype=pl.UInt8),
            "f": pl.Series([0.5, None, 1.5], dtype=pl.Float32),
            "s": ["a", None, "b"],
            "b": [True, None, False],
            "c": pl.Series(["x", None, "y"], dtype=pl.Categorical),
            "e": pl.Series(["x", None, "y"], dtype=pl.Enum(["y", "x", "unused"])),
            "d": [datetime.date(2024, 1, 1), None, datetime.date(2024, 7, 1)],
            "t": berlin,
            "z": berlin.dt.replace_time_zone("Europe/Berlin"),
        }
    )
    there = as_pandas(frame)
    assert there["i"].iloc[2] == 2**60 + 1
    assert str(there["z"].dt.tz) == "Europe/Berlin"
    assert list(there["e"].cat.categories) == ["y", "x", "unused"]
    back = like_input(there, frame)
    assert isinstance(back, pl.DataFrame)
    assert back.schema == frame.schema
    assert back.equals(frame)
    native = pd.DataFrame({"x": [1]}, index=["row"])
    assert like_input(native, native) is native
