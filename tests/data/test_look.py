"""A look at a table names what each column is taken for, what is odd, and what to do about it."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import polars as pl
import pytest

import anyorder as ao
from anyorder.data.look import Look
from anyorder.errors import UserError

ROWS = 200
RNG = np.random.default_rng(0)
HEIGHT = np.round(RNG.normal(170, 8, ROWS), 1)


def table() -> pd.DataFrame:
    age = RNG.integers(18, 80, ROWS)
    age[:5] = 999
    income = RNG.normal(3000, 200, ROWS).round(2)
    income[7] = 9_000_000.0
    return pd.DataFrame(
        {
            "id": [f"P-{number}" for number in range(ROWS)],
            "age": age,
            "income": income,
            "height": HEIGHT,
            "height in m": HEIGHT / 100,
            "sex": RNG.choice(["male", "Male", "female"], ROWS),
            "code": RNG.choice(["a", "b"], ROWS),
            "empty": [None] * ROWS,
            "half": np.where(RNG.random(ROWS) < 0.7, np.nan, 1.5 * RNG.integers(0, 50, ROWS)),
            "status": RNG.choice(["open", "closed", "unknown"], ROWS),
            "seen": np.where(RNG.random(ROWS) < 0.1, "1970-01-01", "2024-03-05"),
        }
    ).assign(label=lambda frame: frame["code"].map({"a": "Alpha", "b": "Beta"}))


@pytest.fixture(scope="module")
def found() -> Look:
    return ao.look(table())


def odd(found: Look, name: str) -> str:
    return "; ".join(next(column for column in found.columns if column.name == name).odd)


def test_what_is_left_out(found: Look) -> None:
    assert {column.name: column.why for column in found.left_out} == {"id": "ids", "empty": "every cell is missing"}
    assert found.rows == ROWS


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("age", "999 occurs 5 times, far from all other numbers"),
        ("income", "one number lies far outside the rest: 9000000"),
        ("height in m", "is 'height' in another unit"),
        ("sex", "look like one level in different spellings"),
        ("half", "of its cells are missing"),
        ("status", "'unknown' is kept as a level"),
        ("seen", "1970-01-01 occurs"),
        ("label", "carries the same information as 'code'"),
    ],
)
def test_oddities(found: Look, name: str, words: str) -> None:
    assert words in odd(found, name)


def test_ordinary_columns_are_not_odd(found: Look) -> None:
    assert odd(found, "height") == odd(found, "code") == ""
    skewed = ao.look({"x": np.exp(np.random.default_rng(1).normal(0, 1.5, 2000))})
    assert skewed.columns[0].odd == ()


def test_what_to_type_is_named_in_both_languages(found: Look) -> None:
    assert "missing=['999'] (command line: --missing 999)" in odd(found, "age")
    text = found.text(command_line=True)
    assert "to change it: --kind id=categorical" in text
    assert "kinds=" not in text.split("to change it", 1)[1].splitlines()[0]


def test_columns_without_repeats_do_not_say_the_same() -> None:
    found = ao.look({"x": RNG.normal(size=60), "y": RNG.normal(size=60), "z": [f"k{i % 50}" for i in range(60)]})
    assert not any("says the same" in finding for column in found.columns for finding in column.odd)


def test_following_the_advice_helps() -> None:
    again = ao.look(table(), missing=["999"], drop=["label"], kinds={"id": "categorical"})
    assert "999" not in odd(again, "age")
    assert again.columns[0].kind == "categorical"
    assert "label" not in [column.name for column in again.columns]


def test_all_forms_agree(found: Look) -> None:
    plain = json.loads(json.dumps(found.to_json()))
    assert [column["name"] for column in plain["columns"]] == found.to_frame()["column"].tolist()
    assert plain["columns"][0]["kind"] is None
    root = ElementTree.fromstring(found._repr_html_().replace("<br>", "<br/>"))
    assert len(list(root.iter("tr"))) == len(found.columns) + 1
    assert all(column.name in str(found) for column in found.columns)


def test_repeated_rows() -> None:
    frame = pd.DataFrame({"x": RNG.normal(size=50), "y": RNG.choice(["a", "b"], 50)})
    assert ao.look(frame).repeated_rows == 0
    assert ao.look(pd.concat([frame, frame.iloc[:7]])).repeated_rows == 7


def test_polars_and_mistakes() -> None:
    assert ao.look(pl.DataFrame({"x": [1.5, 2.5, None] * 10})).columns[0].missing == 10
    with pytest.raises(UserError, match="no column 'z'"):
        ao.look({"x": [1.0, 2.0]}, kinds={"z": "integer"})


def test_a_look_changes_nothing() -> None:
    frame = table()
    before = frame.copy(deep=True)
    ao.look(frame)
    pd.testing.assert_frame_equal(frame, before)
