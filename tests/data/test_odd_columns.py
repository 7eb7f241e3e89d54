"""Odd columns are understood, said to be doubtful where they are, and come back exactly as they were written."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from odd_columns import Odd, odd_columns
from odd_exports import export_columns
from odd_names import named_columns

from anyorder.data.columns import understand
from anyorder.data.files import read_table
from anyorder.data.look import look
from anyorder.data.tables import prepare, understand_table
from anyorder.data.written import as_written
from anyorder.errors import UserError
from anyorder.variables.encoding import Encoding
from anyorder.variables.place_back import put_back
from anyorder.variables.schema import Kind, Schema, Variable

COLUMNS = [*odd_columns(), *named_columns(), *export_columns()]
ALIKE = {"spiked": "continuous", "atoms": "integer"}
"""Kinds of numbers that differ only in which values are frequent."""


def understood(odd: Odd) -> tuple[pd.DataFrame, Encoding]:
    frame = pd.DataFrame({odd.name: odd.cells})
    found = understand(odd.name, frame[odd.name])
    assert found.variable is not None
    return frame, Encoding.fit(frame, Schema((found.variable,)))


def test_there_are_two_hundred_and_more() -> None:
    assert len({odd.name for odd in COLUMNS}) == len(COLUMNS) >= 200


@pytest.mark.parametrize("odd", COLUMNS, ids=lambda odd: odd.name)
def test_taken_for_what_it_is(odd: Odd) -> None:
    found = understand(odd.name, pd.Series(odd.cells))
    kind = None if found.variable is None else found.variable.kind.value
    assert ALIKE.get(str(kind), kind) == odd.kind, found.why
    assert found.why
    assert bool(found.doubts) == odd.doubtful
    assert odd.says in " ".join((found.why, *found.doubts))


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("odd", COLUMNS, ids=lambda odd: odd.name)
def test_a_file_loses_nothing_of_it(odd: Odd, delimiter: str, tmp_path: Path) -> None:
    """The column alone in a file, beside a word: taken for the same, and every cell written as it was."""
    with (tmp_path / "odd.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, delimiter=delimiter)
        lines.writerows([[odd.name, "word"], *([cell, "ab"[row % 2]] for row, cell in enumerate(odd.cells))])
    frame = read_table(tmp_path / "odd.csv")
    found = understand_table(frame)[1][0]
    kind = None if found.variable is None else found.variable.kind.value
    assert ALIKE.get(str(kind), kind) == odd.kind, found.why
    assert bool(found.doubts) == odd.doubtful
    variable = found.variable or Variable(odd.name, Kind.CATEGORICAL, ("left out",))
    again = as_written(frame, Schema((variable,)), frame)[odd.name]
    known = [row for row, cell in enumerate(again) if not pd.isna(cell)]
    if again.dtype.kind == "f":  # numbers as programs write them, of which 5 may come back as 5.0
        assert [float(str(odd.cells[row]).replace(",", ".")) for row in known] == again[known].tolist()
        assert not any(str(cell).startswith("+") for cell in odd.cells)
    else:
        assert [str(again[row]) for row in known] == [str(odd.cells[row]) for row in known]


@pytest.mark.parametrize("odd", [odd for odd in COLUMNS if odd.kind], ids=lambda odd: odd.name)
def test_every_cell_comes_back_as_it_was_written(odd: Odd) -> None:
    frame, encoding = understood(odd)
    values, known = encoding.encode(frame)
    back = encoding.decode(np.where(known, values, np.nan))[odd.name]
    written = [str(cell) for cell in frame[odd.name][known[:, 0]]]
    assert [str(cell) for cell in back[known[:, 0]]] == written
    assert back[~known[:, 0]].isna().all()
    assert tuple(frame[odd.name][~known[:, 0]]) == odd.unknown


@pytest.mark.parametrize(
    ("odd", "text", "number"),
    [(odd, text, number) for odd in COLUMNS for text, number in odd.reads.items()],
    ids=lambda part: part.name if isinstance(part, Odd) else str(part),
)
def test_a_typed_value_is_read_as_in_the_column(odd: Odd, text: str, number: float) -> None:
    _, encoding = understood(odd)
    value = encoding.encode_value(odd.name, text)
    levels = encoding.schema[odd.name].kind.value in ("ordinal", "boolean")
    meant = value if levels else float(encoding.measure(odd.name, np.array([value]))[0])
    assert meant == pytest.approx(number)


@pytest.mark.parametrize("odd", [odd for odd in COLUMNS if odd.kind], ids=lambda odd: odd.name)
def test_a_model_file_keeps_the_form(odd: Odd) -> None:
    frame, encoding = understood(odd)
    again = Encoding.from_json(encoding.to_json())
    assert again.schema == encoding.schema
    values, known = encoding.encode(frame)
    filled = np.where(known, values, np.nan)
    pd.testing.assert_frame_equal(again.decode(filled), encoding.decode(filled))


def test_what_is_left_out_is_said_in_one_line_each() -> None:
    frame = pd.DataFrame({odd.name: odd.cells for odd in COLUMNS})
    with pytest.warns(UserWarning, match="column|left out") as said:
        schema, kept = prepare(frame)
    lines = [str(warning.message) for warning in said]
    absent = [odd.name for odd in COLUMNS if odd.kind is None]
    assert list(schema.left_out) == absent
    assert len([line for line in lines if "left out" in line]) == len(absent)
    assert len(lines) == len(absent) + sum(odd.doubtful for odd in COLUMNS)
    assert list(kept.columns) == [odd.name for odd in COLUMNS if odd.kind]
    with pytest.raises(UserError, match=r"'UUID' was left out .*ids"):
        schema.index("UUID")


def test_a_number_in_another_form_is_read_too_and_nonsense_is_refused() -> None:
    _, encoding = understood(next(odd for odd in COLUMNS if odd.name == "dollars"))
    assert encoding.encode_value("dollars", 1204.5) == encoding.encode_value("dollars", "1204.5")
    with pytest.raises(UserError, match=r"expected a number such as \$1,234.00, got 'many'"):
        encoding.encode_value("dollars", "many")


def test_the_only_values_there_are_are_named_as_they_are_written() -> None:
    _, encoding = understood(next(odd for odd in COLUMNS if odd.name == "FTE"))
    with pytest.raises(UserError, match="'70%' is not one of its values; valid values: 50%, 60%, 80%, 100%"):
        encoding.encode_value("FTE", "70%")


def test_odd_words_among_numbers_are_unknown_and_named() -> None:
    cells = [*(f"{i}.5" for i in range(99)), "broken"]
    found = understand("x", pd.Series(cells))
    assert found.variable is not None
    assert found.variable.missing == ("broken",)
    assert found.doubts == ("'broken' is taken for unknown",)
    half = understand("x", pd.Series([*(f"{i}.5" for i in range(10)), *(["broken"] * 10)]))
    assert half.variable is not None
    assert half.variable.kind.value == "categorical"


def test_cells_that_are_no_dates_are_counted_and_said() -> None:
    days = [f"{1 + i % 28:02d}/{1 + i % 12:02d}/{2000 + i % 24}" for i in range(400)]
    found = understand("x", pd.Series([*days, *["31/02/2024"] * 3]))
    assert found.doubts == ("'31/02/2024' (3 cells) is taken for unknown",)
    many = understand("x", pd.Series([*days, *(f"31/02/{year}" for year in range(2010, 2017))]))
    assert many.doubts == ("7 cells, such as '31/02/2010', '31/02/2011', are taken for unknown",)
    beside = understand("x", pd.Series([*days, "2024-05-01"]))
    assert beside.variable is not None and beside.variable.missing == ()
    assert beside.doubts == ("1 cell in another form, such as '2024-05-01', read as well",)
    mixed = pd.Series([*pd.date_range("2024-01-01", periods=60), "31/02/2024"], dtype=object)
    assert understand("x", mixed).doubts == ("'31/02/2024' is taken for unknown",)
    declared = understand("x", pd.Series([*days, "31/02/2024"]), Kind.DATETIME)
    assert declared.variable is not None and declared.variable.form == "%d/%m/%Y"


def test_dates_in_digits_beside_holes_and_placeholders() -> None:
    """A hole makes floats of whole numbers, and 0 or 99999999 stand for no date; what is filled are numbers again."""
    days = pd.date_range("2020-01-01", periods=90).strftime("%Y%m%d").astype(float)
    column = pd.Series([*days, np.nan, 0.0, 99999999.0], name="x")
    found = understand("x", column)
    assert found.variable is not None and found.variable.kind is Kind.DATETIME
    assert found.doubts == ("'0', '99999999' are taken for unknown",)
    encoding = Encoding.fit(column.to_frame(), Schema((found.variable,)))
    values, known = encoding.encode(column.to_frame())
    assert known[:, 0].tolist() == [True] * 90 + [False] * 3
    filled = put_back(encoding.codec("x"), column, np.array([90]), values[:1, 0], np.arange(90), values[:90, 0])
    assert filled.dtype == "float64" and filled.iloc[90] == days[0]


def test_a_letter_behind_a_few_numbers_is_no_billion() -> None:
    rooms = [str(number) for number in range(101, 301)]
    found = understand("x", pd.Series([*rooms, "204B"]))
    assert found.doubts == ("'204B' is taken for unknown",)
    metres = understand("x", pd.Series([*(f"{number}m" for number in range(1, 99)), "3k"]))
    assert metres.why == "a number in m" and metres.doubts == ("'3k' is taken for unknown",)
    many = understand("x", pd.Series([*rooms, *(f"{number}B" for number in range(101, 151))]))
    assert many.variable is None or many.variable.kind is Kind.CATEGORICAL


def test_the_finest_time_is_written() -> None:
    cells = [*(f"2024-01-{day:02d}" for day in range(1, 29)), "2024-02-01 10:30:00"]
    found = understand("x", pd.Series(cells))
    assert found.variable is not None and found.variable.form == "%Y-%m-%d %H:%M:%S"


def test_names_that_a_spreadsheet_made_dates_of() -> None:
    found = understand("gene", pd.Series(["2-Sep", "1-Mar", "TP53", "BRCA1"] * 10))
    assert found.doubts == ("'1-Mar' is a date without a year: spreadsheets make such dates of 1-3 or 3-1",)


def test_what_is_no_slip_is_kept() -> None:
    """Codes among numbers are a category, however few they are in a short list, and half a column is no slip."""
    codes = understand("x", pd.Series([*["1", "2", "3", "4"] * 50, "2a"]))
    assert codes.variable is not None and codes.variable.levels == ("1", "2", "2a", "3", "4")
    days = [f"{1 + i % 28:02d}/{1 + i % 12:02d}/{2000 + i % 24}" for i in range(60)]
    half = understand("x", pd.Series([*days, *(f"31/02/{year}" for year in range(1960, 2010))]))
    assert half.variable is None


def test_leading_zeros_now_and_then() -> None:
    cells = pd.Series([*(f"{1 + i % 28}/{1 + i % 12}/{2000 + i % 24}" for i in range(99)), "05/06/2007"])
    found = understand("x", cells)
    assert found.variable is not None and found.variable.form == "%-d/%-m/%Y"


@pytest.mark.parametrize(
    ("cells", "form", "doubtful"),
    [
        ([f"{20 + i % 5}-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(60)], "%y-%m-%d", False),
        ([f"{1 + i % 28:02d}-{1 + i % 12:02d}-{20 + i % 5}" for i in range(60)], "%d-%m-%y", False),
        ([f"{70 + i % 29}-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(60)], "%y-%m-%d", False),
        (["21-05-22", "23-06-24", "22-07-21"], "%d-%m-%y", True),
    ],
)
def test_years_of_two_digits(cells: list[str], form: str, doubtful: bool) -> None:
    found = understand("x", pd.Series(cells))
    assert found.variable is not None and found.variable.form == form
    assert bool(found.doubts) == doubtful
    if doubtful:
        assert "with the day or the year first" in found.doubts[0]
        assert "datetime %y-%m-%d" in found.remedy


@pytest.mark.parametrize(
    ("counts", "levels"),
    [
        ({"Yes": 40, "yes": 30, "YES": 5, "no": 20, "No": 1}, ("no", "Yes")),
        ({"Y": 20, "yes": 10, "N": 30}, ("N", "Y")),
        ({"TRUE": 20, "true": 10, "False": 30}, ("False", "TRUE")),
        ({"Male": 50, "Male ": 10, " Female": 3, "Female": 40}, ("Female", "Male")),
        ({"Low": 20, "low": 30, "Medium": 30, "HIGH": 10}, ("low", "Medium", "HIGH")),
        ({"Male": 50, "male": 10, "Female": 40}, ("Female", "Male", "male")),  # two names, as far as anybody knows
    ],
)
def test_spellings_of_one_level(counts: dict[str, int], levels: tuple[str, ...]) -> None:
    """Blanks around a word mean nothing, nor do capitals among yes and no or on a scale: the commonest is written."""
    cells = [text for text, count in counts.items() for _ in range(count)]
    frame = pd.DataFrame({"x": cells, "y": np.arange(len(cells)) % 7})
    found = understand("x", frame["x"])
    assert found.variable is not None and found.variable.levels == levels
    encoding = Encoding.fit(frame[["x"]], Schema((found.variable,)))
    values, known = encoding.encode(frame[["x"]])
    back = encoding.decode(values)["x"].tolist()
    assert known.all() and set(back) == set(levels)
    assert all(one.strip().casefold()[0] == other.strip().casefold()[0] for one, other in zip(back, cells, strict=True))
    odd = [finding for column in look(frame).columns for finding in column.odd if "spelling" in finding]
    merged = not ({"Male", "male"} <= set(levels))
    if levels != ("N", "Y"):
        assert len(odd) == 1 and ("are taken for one level" in odd[0]) == merged
        assert f"({next(iter(counts.values()))}, " in odd[0]


def test_holes_are_filled_in_the_commonest_spelling() -> None:
    column = pd.Series(["Male ", "Male", "Male", None], name="x")
    found = understand("x", column)
    assert found.variable is not None
    codec = Encoding.fit(pd.DataFrame({"x": column}), Schema((found.variable,))).codec("x")
    filled = put_back(codec, column, np.array([3]), np.zeros(1), np.arange(3), np.zeros(3))
    assert filled.tolist() == ["Male ", "Male", "Male", "Male"]


def test_the_same_mark_is_unknown_in_every_column() -> None:
    """Not a number here and a level there; but a code or a sign among its like is one."""
    for column in (["red", "n/a", "blue"], ["1.5", "n/a", "2.5"], ["2024-01-01", "n/a", "2024-01-02"]):
        found = understand("x", pd.Series(column * 20))
        assert found.variable is not None
        _, known = Encoding.fit(pd.DataFrame({"x": column * 20}), Schema((found.variable,))).encode(
            pd.DataFrame({"x": column})
        )
        assert known[:, 0].tolist() == [True, False, True]
    countries = understand("x", pd.Series(["NA", "US", "DE"] * 20))
    assert countries.variable is not None
    assert "NA" in countries.variable.levels
    signs = understand("x", pd.Series(["+", "-"] * 20))
    assert signs.variable is not None
    assert signs.variable.levels == ("+", "-")


def test_an_order_can_be_given() -> None:
    frame = pd.DataFrame({"pain": ["some", "none", "much"] * 10, "x": np.arange(30.0)})
    schema, _ = prepare(frame, levels={"pain": ["none", "some", "much", "unbearable"]})
    assert schema["pain"].kind.value == "ordinal"
    assert schema["pain"].levels == ("none", "some", "much", "unbearable")


@pytest.mark.parametrize(
    ("name", "cells", "kind", "doubtful"),
    [
        ("size", ["S", "M", "L", "XL", "XL "] * 20, "ordinal", False),
        ("agree", ["yes", "yes ", "no"] * 20, "boolean", False),
        ("rate", [f"€1.{i}" for i in range(100, 199)], "continuous", True),
        ("market cap", list(range(1_000_000, 1_100_000, 1000)), "integer", False),
        ("candidate_votes", list(range(400_000_000, 400_100_000, 1000)), "integer", False),
        ("house number", [int(x) for x in np.random.default_rng(0).permutation(500)[:60]], "integer", False),
        ("zip", [*["94110", "60601", "10001", "73301"] * 20, "unknown"], "categorical", False),
        ("customer_id", [*map(str, range(1, 80)), "n/a"], None, False),
        ("lab", [*(f"{i / 7:.2f}" for i in range(150)), "<0.1", "<0.1", "<0.1"], "continuous", True),
        ("seen", [*(f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(100)), "0000-00-00"], "datetime", False),
        ("children", [*["none"] * 60, *map(str, [1, 2, 3, 4] * 10)], "integer", True),
        ("season", ["2008/09", "2009/10", "2010/11", "2011/12"] * 20, "ordinal", False),
        ("clocks", ["2024-01-01T10:00:00Z", "2024-01-01T10:00:00"] * 20, "categorical", False),
        ("mixed", [*np.linspace(0, 9, 60).tolist(), "n/a"], "continuous", False),
        ("moments", [*pd.date_range("2024-01-01", periods=50).tolist(), "unknown"], "datetime", False),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_is_easily_misread(name: str, cells: list[object], kind: str | None, doubtful: bool) -> None:
    found = understand(name, pd.Series(cells, dtype=object if name in ("mixed", "moments") else None))
    taken = None if found.variable is None else found.variable.kind.value
    assert ALIKE.get(str(taken), taken) == kind, found.why
    assert bool(found.doubts) == doubtful


def test_the_other_reading_can_be_had_as_the_note_says() -> None:
    frame = pd.DataFrame(
        {
            "day": [f"{1 + i * 5 % 11:02d}/{1 + i * 7 % 12:02d}/2023" for i in range(60)],
            "amount": [f"{1 + i % 9},{100 + i}" for i in range(60)],
        }
    )
    with pytest.warns(UserWarning, match="to change this") as said:
        schema, _ = prepare(frame)
    assert (schema["day"].form, schema["amount"].kind.value) == ("%m/%d/%Y", "integer")
    notes = [str(warning.message) for warning in said]
    assert any("kinds={'day': 'datetime %d/%m/%Y'}" in note for note in notes)
    assert any("kinds={'amount': 'continuous 1234,5'}" in note for note in notes)
    other, _ = prepare(frame, {"day": "datetime %d/%m/%Y", "amount": "continuous 1234,5"})
    assert (other["day"].form, other["amount"].kind.value) == ("%d/%m/%Y", "continuous")
    encoding = Encoding.fit(frame, other)
    values, known = encoding.encode(frame)
    pd.testing.assert_frame_equal(encoding.decode(np.where(known, values, np.nan)), frame)
    assert float(encoding.measure("amount", values[:1, 1])[0]) == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("datetime soon", "time format such as"),
        ("continuous 1.234", "form such as 1,234.5"),
        ("continuous 1.234,5", "not all of its cells are numbers written like"),
        ("categorical %d", "can follow datetime"),
    ],
)
def test_forms_that_make_no_sense(kind: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        prepare(pd.DataFrame({"x": ["$1.5", "$2.25"] * 20, "y": np.arange(40.0)}), {"x": kind})
