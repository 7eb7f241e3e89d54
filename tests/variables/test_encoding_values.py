"""Single values and frames put into an encoding: many spellings of one value, and a clear refusal of the rest."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anyorder.errors import UserError

from mixed_tables import ROWS, example, fitted, mixed


def test_measure() -> None:
    encoding = example()

    def measured(name: str, value: object) -> float:
        return float(encoding.measure(name, np.array([encoding.encode_value(name, value)]))[0])

    assert measured("heavy", 2.5) == pytest.approx(2.5)
    assert measured("atoms", 0.25) == 0.25
    assert measured("truth", True) == 1.0
    assert measured("spelt", "FALSE") == 0.0
    assert np.isnan(measured("text", "a"))
    assert measured("second", "1970-01-03T12:00:00") == pytest.approx(2.5)
    assert measured("day", "1970-01-03") == pytest.approx(2.0)
    for name in ("heavy", "int", "atoms", "truth", "second", "day"):
        values = encoding.encode(mixed())[0][:, encoding.schema.index(name)]
        np.testing.assert_allclose(encoding.codec(name).from_measure(encoding.measure(name, values)), values, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("int", [6, "6", " 6 ", 6.0, "6.0", np.int8(6)]),
        ("heavy", [0.5, "0.5", "5e-1", np.float32(0.5)]),
        ("atoms", [0.25, "0.25", ".25"]),
        ("atom32", [np.float32(0.1), 0.1, "0.1"]),
        ("bit", [1, "1", True, 1.0]),
        ("truth", [True, "true", "True", "yes", 1, np.True_]),
        ("spelt", ["TRUE", "true", True]),
        ("text", ["c d", " c d "]),
        ("numbered", [3, "3", 3.0]),
        ("day", ["2024-05-01", datetime.date(2024, 5, 1), pd.Timestamp("2024-05-01"), np.datetime64("2024-05-01")]),
        ("local", ["2024-05-01", pd.Timestamp("2024-05-01", tz="Europe/Berlin"), "2024-04-30T22:00:00+00:00"]),
        ("stamp", ["2024-05-01 12:00", "2024-05-01T12:00:00", datetime.datetime(2024, 5, 1, 12)]),
        ("constant", ["2024-01-01T00:00:00+00:00", pd.Timestamp("2024-01-01", tz="UTC")]),
    ],
)
def test_one_value_in_many_spellings(name: str, spellings: list[object]) -> None:
    encoding = example()
    found = {encoding.encode_value(name, value) for value in spellings}
    assert len(found) == 1


def test_distinct_values_stay_distinct() -> None:
    encoding = example()
    codes = [encoding.encode_value("objects", value) for value in (1, "1", True, 2.5)]
    assert len(set(codes)) == 4


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("text", "A", "column 'text': 'A' is not one of its values; did you mean 'a'"),
        ("int", 2.5, r"column 'int': got 2.5, expected a whole number.*kinds=\{'int': 'continuous'\}"),
        ("int", "six", "column 'int': expected a number, got 'six'"),
        ("heavy", float("inf"), "column 'heavy': expected a finite number"),
        ("heavy", None, "expected a value, got None"),
        ("heavy", "N/A", "stands for an unknown cell"),
        ("heavy", [1, 2], "column 'heavy': expected a number"),
        ("atoms", 0.3, "0.3 is not one of its values; valid values: 0.1, 0.25, 7.0. .*kinds={'atoms': 'continuous'}"),
        ("truth", "maybe", "column 'truth': 'maybe' is not one of its values"),
        ("day", "2024-05-01T12:00", "column 'day': got 2024-05-01T12:00, expected a whole day"),
        ("day", "soon", "column 'day': expected a time such as 2024-05-01"),
        ("second", "2024-05-01T12:00:00+02:00", "time zone"),
        ("hevy", 1, "did you mean 'heavy'"),
    ],
)
def test_values_that_do_not_fit(name: str, value: object, words: str) -> None:
    with pytest.raises(UserError, match=words):
        example().encode_value(name, value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"text": ["a"] * (ROWS - 1) + ["z"]},
            r"column 'text', row 199: 'z' is not one of its values; valid values: 'a'.*unseen='missing'",
        ),
        ({"int": [1] * (ROWS - 1) + ["x"]}, "column 'int', row 199: expected a number, got 'x'"),
        ({"heavy": [1.0] * (ROWS - 1) + [-np.inf]}, "column 'heavy', row 199: expected a finite number, got -inf"),
        ({"grade": "low"}, "column 'grade', row 0: 'low' is not one of its values"),
        ({"grade": "top"}, "column 'grade', row 0: 'top' is not one of its values"),
    ],
)
def test_frames_that_do_not_fit(change: dict[str, Any], words: str) -> None:
    frame = mixed().reset_index(drop=True)
    with pytest.raises(UserError, match=words):
        example().encode(frame.assign(**change))
    with pytest.raises(UserError, match="has no column 'texts'; did you mean 'text'"):
        example().encode(frame.rename(columns={"text": "texts"}))
    with pytest.raises(UserError, match="'int' appears more than once"):
        example().encode(frame[["int", "text", "int"]])


def test_columns_absent_left_out_or_dropped() -> None:
    frame = mixed()[["int", "text"]].assign(empty=None, name=[f"n{i}" for i in range(ROWS)])
    with pytest.warns(UserWarning, match="'empty'"):
        encoding = fitted(frame, drop=["name"])
    values, known = encoding.encode(frame[["text", "name", "empty"]])
    assert known.tolist() == [[False, True]] * ROWS
    back = encoding.decode(values)
    assert back.columns.tolist() == ["int", "text", "empty"]
    assert back["empty"].isna().all()
    assert encoding.encode(frame.iloc[:0])[0].shape == (0, 2)
    assert encoding.decode(values[:0]).dtypes.tolist()[:2] == frame.dtypes.tolist()[:2]


def test_marks_count_later_too() -> None:
    train = pd.DataFrame({"x": ["?", "1.5", "2.5", "3"] * 5, "c": ["a", "?", "b", "a"] * 5})
    encoding = fitted(train, missing=["?"])
    _, known = encoding.encode(pd.DataFrame({"x": [" ? ", "", "n/a", "3"], "c": ["?", "", None, "b"]}))
    assert known.tolist() == [[False, False]] * 3 + [[True, True]]
