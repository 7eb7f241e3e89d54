"""Schema inference: what each kind of column is taken for, and what is refused with the column named."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from anyorder.data.tables import prepare
from anyorder.errors import UserError
from anyorder.variables.schema import Kind

ROWS = 60


COUNT = np.arange(ROWS)


def kind_of(column: Any, **options: Any) -> Kind:
    schema, _ = prepare(pd.DataFrame({"x": column, "other": COUNT}), **options)
    return schema["x"].kind


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (np.linspace(0, 1, ROWS), Kind.CONTINUOUS),
        (COUNT, Kind.INTEGER),
        (COUNT.astype(float), Kind.INTEGER),
        (np.where(COUNT == 3, np.nan, COUNT), Kind.INTEGER),
        (COUNT % 3, Kind.ATOMS),
        (COUNT % 3 / 2, Kind.ATOMS),
        (COUNT % 11, Kind.INTEGER),
        (COUNT % 20 / 7, Kind.CONTINUOUS),
        (COUNT % 2 == 0, Kind.BOOLEAN),
        (COUNT % 2, Kind.ATOMS),
        (np.where(COUNT % 2, "true", "false"), Kind.BOOLEAN),
        (np.where(COUNT % 2, "yes", "no"), Kind.BOOLEAN),
        (np.where(COUNT % 2, "yes", "now"), Kind.CATEGORICAL),
        (np.where(COUNT % 2, "a", "b"), Kind.CATEGORICAL),
        ([f"{i}.5" for i in COUNT], Kind.CONTINUOUS),
        ([str(i) for i in COUNT], Kind.INTEGER),
        ([f"{i:05d}" for i in COUNT % 15], Kind.CATEGORICAL),  # zip codes
        ([*map(str, COUNT[1:]), "N/A"], Kind.INTEGER),
        ([f"2024-01-{1 + i % 28:02d}" for i in COUNT], Kind.DATETIME),
        ([f"2024-13-{1 + i % 28:02d}" for i in COUNT], Kind.CATEGORICAL),  # there is no month 13
        ([datetime.date(2024, 1, 1 + i % 28) for i in COUNT], Kind.DATETIME),
        (pd.date_range("2024-01-01", periods=ROWS, freq="h"), Kind.DATETIME),
        (pd.Categorical(COUNT % 4), Kind.CATEGORICAL),
        ([1, "a"] * (ROWS // 2), Kind.CATEGORICAL),
        ([1e18 + 1e6 * i for i in COUNT], Kind.CONTINUOUS),  # beyond exact float64
    ],
)
def test_kinds(column: Any, kind: Kind) -> None:
    assert kind_of(column) is kind


def test_ten_rows() -> None:
    """In a small table, few repeats do not make atoms; a yes/no column does."""
    frame = pd.DataFrame({"count": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3], "flag": [0, 1] * 5, "size": np.linspace(0, 1, 10)})
    schema, _ = prepare(frame)
    assert [variable.kind for variable in schema.variables] == [Kind.INTEGER, Kind.ATOMS, Kind.CONTINUOUS]
    names, _ = prepare(pd.DataFrame({"name": list("abcdefghij"), "x": range(10)}))
    assert names["name"].levels == tuple("abcdefghij")


def test_resolution() -> None:
    hours = pd.date_range("2024-01-01", periods=ROWS, freq="h", tz="Europe/Berlin")
    local_days = pd.date_range("2024-03-01", periods=ROWS, freq="D", tz="Europe/Berlin")  # across a clock change
    fine = pd.date_range("2024-01-01", periods=ROWS, freq="1500us")
    schema = prepare(pd.DataFrame({"hours": hours, "days": local_days, "fine": fine}))[0]
    assert [variable.resolution for variable in schema.variables] == ["second", "day", "microsecond"]
    assert [variable.zone for variable in schema.variables] == ["Europe/Berlin", "Europe/Berlin", ""]
    assert [variable.discrete for variable in schema.variables] == [False, True, False]


def test_constant_is_one_level() -> None:
    frame = pd.DataFrame(
        {
            "number": [7.5] * 3,
            "text": ["a"] * 3,
            "truth": [True] * 3,
            "time": pd.to_datetime(["2024-01-01"] * 3),
            "vary": [1, 2, 4],
        }
    )
    schema = prepare(frame)[0]
    assert [len(variable.levels) for variable in schema.variables] == [1, 1, 1, 1, 0]
    assert schema["number"].levels == (7.5,)


def test_all_missing_is_left_out_with_a_warning() -> None:
    frame = pd.DataFrame({"x": COUNT, "none": [None] * ROWS, "marks": ["?", ""] * (ROWS // 2), "nan": [np.nan] * ROWS})
    with pytest.warns(UserWarning, match="left out of the model: '(none|marks|nan)' .every cell is missing") as said:
        schema, kept = prepare(frame, missing=["?"])
    assert len(said) == 3
    assert schema.names == ("x",)
    assert list(kept.columns) == ["x"]
    assert schema.left_out == ("none", "marks", "nan")
    with pytest.raises(UserError, match=r"'none' was left out .*every cell is missing"):
        schema.index("none")


def test_marks() -> None:
    with_marks = ["?" if i % 7 == 0 else f" {i} " for i in COUNT]
    assert kind_of(with_marks, missing=["?"]) is Kind.INTEGER
    assert kind_of(with_marks) is Kind.INTEGER  # "?" is known without being told
    schema = prepare(pd.DataFrame({"x": np.where(COUNT % 4 == 0, -999.0, COUNT % 3)}), missing=[-999])[0]
    assert schema["x"].levels == (0.0, 1.0, 2.0)
    assert schema.missing == ("-999",)


def test_mixed_objects_keep_their_types() -> None:
    column = pd.Series([1, "1", True, "a", 1.0, None] * 10, dtype=object)
    variable = prepare(pd.DataFrame({"x": column}))[0]["x"]
    assert [(type(level), level) for level in variable.levels] == [(int, 1), (bool, True), (str, "1"), (str, "a")]


def test_category_order_and_unused_categories() -> None:
    column = pd.Categorical(["mid", "low"] * 5, categories=["low", "mid", "high"], ordered=True)
    variable = prepare(pd.DataFrame({"x": column}))[0]["x"]
    assert variable.levels == ("low", "mid")
    assert variable.categories == ("low", "mid", "high")
    assert variable.ordered


@pytest.mark.parametrize(
    ("column", "kind", "words"),
    [
        (["1", "2", "x"] * 20, "continuous", "row 2: expected a number, got 'x'"),
        ([1.0, 2.5, 3.0] * 20, "integer", "row 1: expected a whole number"),
        (["a", "b"] * 30, "datetime", "row 0: expected a time"),
        (["a", "b"] * 30, "boolean", "row 0: expected true/false"),
        (["yes", "no", "true"] * 20, "boolean", "mean the same"),
        (["a", "b"] * 30, "categorial", "did you mean 'categorical'"),
        (pd.date_range("2024", periods=ROWS), "continuous", "expected a number"),
    ],
)
def test_a_kind_that_does_not_fit(column: Any, kind: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        kind_of(column, kinds={"x": kind})


@pytest.mark.parametrize(
    ("column", "kind", "levels"),
    [
        (COUNT % 3, "categorical", (0, 1, 2)),
        (np.where(COUNT % 2, "yes", "no"), "boolean", ("no", "yes")),
        (COUNT % 2, "boolean", (0, 1)),
        (COUNT % 3, "continuous", ()),
        (COUNT % 3, "integer", ()),
        ([f"{i % 4}.5" for i in COUNT], "atoms", (0.5, 1.5, 2.5, 3.5)),
        ([f"t{i}" for i in COUNT], "categorical", tuple(sorted(f"t{i}" for i in COUNT))),
    ],
)
def test_overrides(column: Any, kind: str, levels: tuple[Any, ...]) -> None:
    schema, _ = prepare(pd.DataFrame({"x": column}), kinds={"x": kind})
    assert (schema["x"].kind.value, schema["x"].levels) == (kind, levels)


HOSTILE: list[tuple[Any, dict[str, Any], str]] = [
    (pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]), {}, "repeated: 'a'"),
    (pd.DataFrame([[1, 2]], columns=[1, "1"]), {}, "repeated: '1'"),
    (pd.DataFrame({"a": []}), {}, "empty: 0 rows and 1 columns"),
    (pd.DataFrame(index=range(3)), {}, "empty: 3 rows and 0 columns"),
    (pd.DataFrame({"name": [f"n{i}" for i in range(50)]}), {}, r"'name': ids.* kinds={'name': 'categorical'}"),
    (pd.DataFrame({"a": [f"n{i % 1500}" for i in range(3000)]}), {}, "no column to learn from .'a': ids"),
    (pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}), {"levels": {"a": ["x", "z"]}}, "'y' occurs in the column but not"),
    (pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}), {"levels": {"a": "xyz"}}, "must be a list from the lowest"),
    (pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}), {"levels": {"c": ["x", "y"]}}, "levels: no column 'c'"),
    (pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}), {"kinds": {"a": "text"}}, "nothing is learned from free text"),
    (pd.DataFrame({"a": range(3000)}), {"kinds": {"a": "categorical"}}, "'a' has 3000 different values"),
    (pd.DataFrame({"rooms": [1]}), {"kinds": {"room": "integer"}}, "did you mean 'rooms'"),
    (pd.DataFrame({"rooms": [1]}), {"drop": ["romos"]}, "did you mean 'rooms'"),
    (pd.DataFrame({"rooms": [1]}), {"drop": "rooms"}, "expect a list"),
    (pd.DataFrame({"rooms": [1]}), {"drop": ["rooms"]}, "empty: 1 rows and 0 columns"),
    (pd.DataFrame({"a": [1 + 2j]}), {}, "column 'a' has the dtype complex"),
    (pd.DataFrame({"a": pd.to_timedelta([1, 2], unit="s")}), {}, "column 'a' has the dtype timedelta"),
    (pd.DataFrame({"a": [[1], [2]]}), {}, "column 'a', row 0: expected one value, got a list"),
    (pd.DataFrame({"a": [1.5, 1e200, 2.5]}), {}, "column 'a', row 1: expected a finite number, got 1e.200"),
    (np.zeros((3, 2)), {}, "got ndarray"),
    (pl.LazyFrame({"a": [1]}), {}, "collect"),
    (pl.DataFrame({"a": [[1], [2]]}), {}, "column 'a' has the dtype List"),
]


@pytest.mark.parametrize(("frame", "options", "words"), HOSTILE)
def test_refused_with_the_column_named(frame: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        prepare(frame, **options)


@pytest.mark.filterwarnings("ignore:left out")
def test_every_cell_missing() -> None:
    with pytest.raises(UserError, match="every cell"):
        prepare(pd.DataFrame({"a": [None, None]}))


def test_long_ids_keep_their_last_digits() -> None:
    variable = prepare(pd.DataFrame({"x": [2**63 + 5, 2**63 + 6] * 10}))[0]["x"]
    assert (variable.kind, variable.levels) == (Kind.CATEGORICAL, (2**63 + 5, 2**63 + 6))


def test_a_hundred_columns_and_drop() -> None:
    frame = pd.DataFrame({i: COUNT + i for i in range(100)}) * 1.5
    schema, kept = prepare(frame, drop=["7"])
    assert len(schema) == 99
    assert schema.dropped == ("7",)
    assert schema.grid == (99,)
    assert list(kept.columns) == list(schema.names)
    with pytest.raises(UserError, match="'7' was dropped"):
        schema.index("7")
