"""Categories and texts: too many, too long, too alike, or not what they look like."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd

from hostile_tables.record import holes, hostile, with_column


@hostile()
def three_hundred_categories(rng: np.random.Generator) -> Any:
    return with_column(rng, [f"level {k}" for k in rng.integers(0, 300, 600)])


@hostile(warned="left out of the model: 'odd'")
def two_thousand_categories(rng: np.random.Generator) -> Any:
    return with_column(rng, [f"level {k % 2000}" for k in range(3000)])


@hostile(warned="left out of the model: 'odd'")
def a_text_in_every_row(rng: np.random.Generator) -> Any:
    return with_column(rng, [f"name {k}" for k in range(40)])


@hostile()
def very_long_category_names(rng: np.random.Generator) -> Any:
    return holes(rng, with_column(rng, rng.choice(["a" * 20_000, "b" * 20_000, "a" * 19_999], 40)))


@hostile()
def categories_that_hardly_differ(rng: np.random.Generator) -> Any:
    return with_column(rng, ["Yes", "yes", "YES", " yes", "yes ", "ye\u200bs", "y\u00e9s", "ye\u0301s"] * 5)


@hostile()
def categorical_with_unused_categories(rng: np.random.Generator) -> Any:
    cells = pd.Categorical(rng.choice(["a", "b"], 40), categories=["z", "b", "a", "never"], ordered=True)
    return holes(rng, with_column(rng, cells))


@hostile()
def categorical_of_numbers_and_times(rng: np.random.Generator) -> Any:
    frame = with_column(rng, pd.Categorical(rng.choice([1.5, 2.5], 40)))
    frame["when"] = pd.Categorical(pd.to_datetime(rng.choice(["2024-01-01", "2024-06-01"], 40)))
    frame["span"] = pd.Categorical(pd.cut(frame["x"], 4))
    return holes(rng, frame)


@hostile()
def mixed_object_column(rng: np.random.Generator) -> Any:
    return with_column(
        rng, pd.Series([1, "1", 1.5, True, None, "text", datetime.date(2024, 1, 1), 2] * 5, dtype=object)
    )


@hostile()
def numbers_with_thousands_separators(rng: np.random.Generator) -> Any:
    return with_column(rng, rng.choice(["1,234", "12,345.6", "999", "1.234,5"], 40))


@hostile()
def zip_codes(rng: np.random.Generator) -> Any:
    return with_column(rng, rng.choice(["01234", "00501", "99501"], 40))


@hostile()
def texts_like_infinity(rng: np.random.Generator) -> Any:
    return with_column(rng, rng.choice(["inf", "nan inside", "-", "1e5", "0x10"], 40))


@hostile()
def texts_of_null_bytes_and_line_breaks(rng: np.random.Generator) -> Any:
    return with_column(rng, rng.choice(["a\x00b", "line\nbreak", "\ufffd", "💥"], 40))


@hostile(refused="column 'odd', row 2")
def half_a_surrogate_pair(rng: np.random.Generator) -> Any:
    return with_column(rng, pd.Series(["a", "b", "\ud800", "💥"] * 10, dtype=object))
