"""Tables as people have them, and what must become of each: one function a table."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest


@dataclass(frozen=True)
class Hostile:
    """A table, and what must become of it: ``refused`` is what the error says, ``warned`` what the one warning says."""

    make: Callable[[np.random.Generator], Any]
    refused: str | None = None
    warned: str | None = None


TABLES: dict[str, Hostile] = {}


def hostile(
    refused: str | None = None, warned: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(make: Callable[..., Any]) -> Callable[..., Any]:
        TABLES[make.__name__] = Hostile(make, refused, warned)
        return make

    return add


def plain(rng: np.random.Generator, rows: int = 40) -> pd.DataFrame:
    """Nothing hostile: two dependent columns to stand beside the one that is."""
    x = rng.normal(size=rows)
    return pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=rows)})


def with_column(rng: np.random.Generator, cells: Any, name: str = "odd") -> pd.DataFrame:
    frame = plain(rng, len(cells))
    frame[name] = cells
    return frame


def holes(rng: np.random.Generator, frame: pd.DataFrame, share: float = 0.1) -> pd.DataFrame:
    return frame.mask(rng.random(frame.shape) < share)


# Names


@hostile()
def unicode_names(rng: np.random.Generator) -> Any:
    frame = holes(rng, pd.DataFrame(rng.normal(size=(40, 4))))
    return frame.set_axis(["größe", "価格", "🏠", "e\u0301 combining"], axis=1)


@hostile()
def names_full_of_grammar(rng: np.random.Generator) -> Any:
    names = ["a=b", "a|b", "a,b", 'say "hi"', "it's", "two\nlines", "tab\there", "30..40", "P(x > 1)", "<= 3"]
    return holes(rng, pd.DataFrame(rng.normal(size=(40, len(names))))).set_axis(names, axis=1)


@hostile()
def names_that_are_empty_or_blank(rng: np.random.Generator) -> Any:
    return holes(rng, pd.DataFrame(rng.normal(size=(40, 4)))).set_axis(["", " ", "  x", "x  "], axis=1)


@hostile()
def names_of_the_librarys_own_words(rng: np.random.Generator) -> Any:
    names = ["evidence", "values", "seed", "n", "log_prob", "self", "missing(x)", "nan", "None"]
    return holes(rng, pd.DataFrame(rng.normal(size=(40, len(names))))).set_axis(names, axis=1)


@hostile()
def names_that_are_numbers(rng: np.random.Generator) -> Any:
    return holes(rng, pd.DataFrame(rng.normal(size=(40, 3)))).set_axis([0, 2.5, np.int64(7)], axis=1)


@hostile(refused="repeated: 'a'")
def duplicate_names(rng: np.random.Generator) -> Any:
    return pd.DataFrame(rng.normal(size=(40, 3))).set_axis(["a", "b", "a"], axis=1)


@hostile(refused="repeated: '1'")
def names_alike_as_text(rng: np.random.Generator) -> Any:
    return pd.DataFrame(rng.normal(size=(40, 2))).set_axis([1, "1"], axis=1)


@hostile()
def multiindex_columns(rng: np.random.Generator) -> Any:
    names = pd.MultiIndex.from_product([["size", "price"], ["low", "high"]])
    return holes(rng, pd.DataFrame(rng.normal(size=(40, 4)))).set_axis(names, axis=1)


@hostile()
def index_that_repeats(rng: np.random.Generator) -> Any:
    return holes(rng, with_column(rng, rng.choice(["a", "b"], 40))).set_axis(np.zeros(40), axis=0)


@hostile()
def multiindex_of_rows(rng: np.random.Generator) -> Any:
    return holes(rng, plain(rng)).set_axis(pd.MultiIndex.from_product([range(4), range(10)]), axis=0)


# Shapes


@hostile(refused="at least 4 rows")
def one_row(rng: np.random.Generator) -> Any:
    return plain(rng, 1)


@hostile(refused="empty")
def no_rows(rng: np.random.Generator) -> Any:
    return plain(rng).iloc[:0]


@hostile()
def four_rows(rng: np.random.Generator) -> Any:
    return with_column(rng, ["a", "b", None, "a"])


@hostile()
def ten_rows(rng: np.random.Generator) -> Any:
    frame = with_column(rng, rng.choice(["a", "b", "c"], 10))
    frame["whole"] = rng.integers(0, 100, 10)
    return holes(rng, frame)


@hostile()
def two_hundred_columns(rng: np.random.Generator) -> Any:
    return holes(rng, pd.DataFrame(rng.normal(size=(12, 200)))).add_prefix("c")


@hostile()
def one_column(rng: np.random.Generator) -> Any:
    return holes(rng, plain(rng)[["x"]])


@hostile()
def only_categories(rng: np.random.Generator) -> Any:
    return holes(rng, pd.DataFrame(rng.choice(["a", "b", "c"], (40, 3)), columns=["p", "q", "r"]))


# Missing


@hostile(warned="every cell is missing: 'void'")
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


@hostile(refused="column 'odd', row 5")
def infinite_cells(rng: np.random.Generator) -> Any:
    return with_column(rng, np.where(np.arange(40) == 5, np.inf, rng.normal(size=40)))


@hostile()
def ids_near_two_to_the_63(rng: np.random.Generator) -> Any:
    return with_column(rng, 2**63 - 1 - rng.integers(0, 1000, 40))


@hostile()
def two_ids_near_two_to_the_63(rng: np.random.Generator) -> Any:
    return with_column(rng, rng.choice([2**63 - 1, 2**63 - 2], 40))


@hostile()
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


# Categories and texts


@hostile()
def three_hundred_categories(rng: np.random.Generator) -> Any:
    return with_column(rng, [f"level {k}" for k in rng.integers(0, 300, 600)])


@hostile(refused="column 'odd' has")
def two_thousand_categories(rng: np.random.Generator) -> Any:
    return with_column(rng, [f"level {k % 2000}" for k in range(3000)])


@hostile(refused="column 'odd' holds a different text in every row")
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


# What is no value


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


# Times


@hostile()
def dates_with_gaps(rng: np.random.Generator) -> Any:
    days = pd.Series(pd.Timestamp("2019-12-31") + pd.to_timedelta(rng.choice([0, 1, 2, 900, 901], 40), unit="D"))
    return with_column(rng, days.mask(rng.random(40) < 0.3))


@hostile()
def dates_far_from_now(rng: np.random.Generator) -> Any:
    return with_column(rng, pd.Series(np.array(["0001-01-01", "1600-02-29", "9999-12-31", "2024-01-01"] * 10, "M8[s]")))


@hostile()
def times_across_a_clock_change(rng: np.random.Generator) -> Any:
    hours = pd.date_range("2024-03-30 20:30", periods=39, freq="37min", tz="Europe/Berlin")
    return with_column(rng, pd.Series([*hours, pd.NaT]))


@hostile()
def time_texts_of_mixed_zones(rng: np.random.Generator) -> Any:
    return with_column(rng, [f"2024-05-{1 + k % 28:02d}T12:{k:02d}:00+0{k % 3}:00" for k in range(40)])


@hostile(refused="column 'odd'")
def times_with_and_without_zone(rng: np.random.Generator) -> Any:
    aware = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    cells = [aware + datetime.timedelta(hours=k) for k in range(20)]
    return with_column(rng, pd.Series(cells + [cell.replace(tzinfo=None) for cell in cells], dtype=object))


@hostile()
def dates_that_do_not_exist(rng: np.random.Generator) -> Any:
    return with_column(rng, rng.choice(["2024-02-30", "2024-13-01", "2024-01-01"], 40))


@hostile()
def python_dates_with_none(rng: np.random.Generator) -> Any:
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=int(k)) for k in rng.integers(0, 90, 39)]
    return with_column(rng, pd.Series([*days, None], dtype=object))


@hostile()
def python_times_of_day(rng: np.random.Generator) -> Any:
    return with_column(rng, pd.Series([datetime.time(8), datetime.time(9, 30), None, datetime.time(8)] * 10))


# Other dtypes


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
