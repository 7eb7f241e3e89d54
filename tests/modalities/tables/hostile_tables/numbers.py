"""Numbers that are huge, tiny, far from zero or too long for a float, and columns that repeat each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hostile_tables.record import holes, hostile, plain, with_column

# Sizes


@hostile()
def huge_outliers(rng: np.random.Generator) -> Any:
    cells = rng.normal(size=40)
    cells[[3, 17]] = 1e12, -1e15
    return holes(rng, with_column(rng, cells))


@hostile()
def heavy_tail(rng: np.random.Generator) -> Any:
    return holes(rng, with_column(rng, rng.standard_cauchy(60) ** 5))


@hostile(refused="column 'odd'")
def scale_of_1e300(rng: np.random.Generator) -> Any:
    return with_column(rng, rng.normal(size=40) * 1e300)


@hostile(refused="column 'odd'")
def scale_of_1e_minus_300(rng: np.random.Generator) -> Any:
    return with_column(rng, rng.normal(size=40) * 1e-300)


@hostile()
def scale_of_1e90(rng: np.random.Generator) -> Any:
    return holes(rng, with_column(rng, rng.normal(size=40) * 1e90))


@hostile()
def scale_of_1e_minus_90(rng: np.random.Generator) -> Any:
    return holes(rng, with_column(rng, rng.normal(size=40) * 1e-90))


@hostile()
def tiny_spread_on_a_large_shift(rng: np.random.Generator) -> Any:
    return holes(rng, with_column(rng, 1e9 + rng.normal(size=40) * 1e-5))


@hostile(warned="column 'odd': 'inf' is taken for unknown")
def infinite_cells(rng: np.random.Generator) -> Any:
    return with_column(rng, np.where(np.arange(40) == 5, np.inf, rng.normal(size=40)))


@hostile(warned="left out of the model: 'odd'")
def ids_near_two_to_the_63(rng: np.random.Generator) -> Any:
    return with_column(rng, 2**63 - 1 - rng.integers(0, 1000, 40))


@hostile()
def two_ids_near_two_to_the_63(rng: np.random.Generator) -> Any:
    return with_column(rng, rng.choice([2**63 - 1, 2**63 - 2], 40))


@hostile(warned="left out of the model: 'odd'")
def unsigned_near_two_to_the_64(rng: np.random.Generator) -> Any:
    return with_column(rng, np.full(40, 2**64 - 1, dtype=np.uint64) - rng.integers(0, 1000, 40).astype(np.uint64))


@hostile()
def python_integers_beyond_int64(rng: np.random.Generator) -> Any:
    return with_column(rng, pd.Series([10**25 + int(k) for k in rng.integers(0, 9, 40)], dtype=object))


@hostile()
def narrow_dtypes(rng: np.random.Generator) -> Any:
    frame = plain(rng)
    frame["half"] = rng.normal(size=40).astype(np.float16)
    frame["single"] = rng.normal(size=40).astype(np.float32)
    frame["byte"] = rng.integers(0, 255, 40).astype(np.uint8)
    frame["signed"] = rng.integers(-128, 127, 40).astype(np.int8)
    frame.loc[3, "half"] = frame.loc[4, "single"] = np.nan
    return frame


# Dependence


@hostile()
def constant_columns(rng: np.random.Generator) -> Any:
    frame = plain(rng)
    frame["seven"], frame["text"], frame["half"] = 7, "same", 0.5
    frame["yes"], frame["day"] = True, pd.Timestamp("2024-02-29")
    return frame


@hostile()
def constant_columns_with_holes(rng: np.random.Generator) -> Any:
    frame = with_column(rng, [7.0, np.nan] * 20)
    frame["text"] = ["same", None] * 20
    frame["day"] = [pd.Timestamp("2024-02-29"), pd.NaT] * 20
    return frame


@hostile()
def nothing_but_constants(rng: np.random.Generator) -> Any:
    return pd.DataFrame({"a": [1.5] * 10, "b": ["z"] * 10})


@hostile()
def the_same_column_twice(rng: np.random.Generator) -> Any:
    frame = plain(rng)
    return holes(rng, frame.assign(twin=frame["x"], mirror=-frame["x"]))


@hostile()
def collinear_columns(rng: np.random.Generator) -> Any:
    parts = rng.normal(size=(40, 3))
    return holes(rng, pd.DataFrame(np.column_stack([parts, parts.sum(axis=1)]), columns=["a", "b", "c", "sum"]))
