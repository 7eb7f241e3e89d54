"""A table with one column of every kind and of many dtypes, and its encoding."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd

from anyorder.data.tables import prepare
from anyorder.variables.codecs import WarpName
from anyorder.variables.encoding import Encoding

WARPS: tuple[WarpName, ...] = ("normal_scores", "standard")
ROWS = 200


def mixed(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """One column of every kind and many dtypes, without missing cells."""
    random = np.random.default_rng(seed)
    start = pd.Timestamp("2024-03-01")
    seconds = pd.to_timedelta(random.integers(0, 10**7, rows), unit="s")
    whole_days = pd.to_timedelta(random.integers(0, 400, rows), unit="D")
    local_days = pd.Series(start + whole_days).dt.tz_localize("Europe/Berlin")
    return pd.DataFrame(
        {
            "normal": random.normal(1e6, 1.0, rows),
            "heavy": random.standard_cauchy(rows),
            "single": random.lognormal(0, 3, rows).astype(np.float32),
            "nullable": pd.array(random.normal(size=rows), dtype="Float64"),
            "int": random.integers(-1000, 1000, rows),
            "uint8": random.integers(0, 255, rows).astype(np.uint8),
            "Int64": pd.array(random.integers(0, 10**12, rows), dtype="Int64"),
            "whole": np.rint(random.normal(0, 100, rows)),
            "atoms": random.choice([0.1, 0.25, 7.0], rows),
            "atom32": random.choice([0.1, 0.2], rows).astype(np.float32),
            "bit": random.integers(0, 2, rows).astype(np.int8),
            "truth": random.random(rows) < 0.5,
            "text": random.choice(["a", "b", "c d"], rows),
            "spelt": random.choice(["TRUE", "FALSE"], rows),
            "grade": pd.Categorical(random.choice(["lo", "hi"], rows), categories=["hi", "lo", "top"], ordered=True),
            "numbered": pd.Categorical(random.choice([3, 1], rows)),
            "objects": pd.Series(random.choice(np.array([1, "1", True, 2.5], dtype=object), rows), dtype=object),
            "digits": [f"{number}" for number in random.integers(0, 99999, rows)],
            "decimal": [f"{number:.9g}" for number in random.normal(size=rows)],
            "day": start + whole_days,
            "local": local_days.array,
            "date": [moment.date() for moment in start + whole_days],
            "iso": (start + whole_days).strftime("%Y-%m-%d"),
            "stamp": (start + seconds).strftime("%Y-%m-%d %H:%M:%S"),
            "second": (start + seconds).astype("datetime64[s]"),
            "nano": pd.DatetimeIndex(start + seconds).as_unit("ns").tz_localize("UTC").tz_convert("Europe/Berlin"),
            "constant": [pd.Timestamp("2024-01-01", tz="UTC")] * rows,
            "arrow date": pd.Series([moment.date() for moment in start + whole_days]).astype("date32[pyarrow]"),
            "arrow": pd.Series(random.integers(0, 500, rows)).astype("int64[pyarrow]"),
        },
        index=pd.Index(random.permutation(rows), name="row"),
    )


def assert_close(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Equal in dtypes, index and cells; numbers on a line to 1e-9."""
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9, atol=0.0)


def fitted(frame: pd.DataFrame, warp: WarpName = "normal_scores", **options: Any) -> Encoding:
    schema, kept = prepare(frame, **options)
    return Encoding.fit(kept, schema, warp)


@functools.cache
def example() -> Encoding:
    """The encoding of :func:`mixed`, fitted once."""
    return fitted(mixed())
