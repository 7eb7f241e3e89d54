"""What a notation writes it reads back; what looks alike but means something else is left alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from anyorder.errors import UserError
from anyorder.variables.notations import NOTATIONS, Notation, find_notation
from anyorder.variables.notations.number import NumberNotation

EXAMPLES = [
    ["$1,204.50", "-$3.00"],
    ["1.204,50 €", "-3,00 €"],
    ["CHF 1'204.50", "CHF 3.00"],
    ["₹1,23,456.00", "₹5,000.00"],
    ["(1,204.50)", "3.00"],
    ["$-1.50", "$2.50"],
    ["12.50-", "3.00"],
    ["64,3", "7,5"],
    ["1.2M", "350.0K"],
    ["1 day", "3 days"],
    ["1.250e+03", "-2.500e-02"],
    ["−5,3", "4,0"],
    ["14:30", "02:05"],
    ["2:30 PM", "11:05 AM"],
    ["100:00:01", "1:23:45"],
    ["12:07.5", "100:59.0"],
    ["2h 30m", "45m"],
    ["1d 4h 5m", "6h"],
    ["PT2H30M", "P1DT5M"],
    ["2024-05", "1999-12"],
    ["May 2024", "Dec 1999"],
    ["MAY-24", "DEC-99"],
    ["2024-Q3", "2019-Q1"],
    ["2024-W05", "2020-W53"],
    ["T3 2024", "T1 2019"],
    ["14:30 Uhr", "02:05 Uhr"],
    ["+2.5 %", "-3.0 %"],
    ["29,2 Mio. EUR", "1,0 Mio. EUR"],
    ["~292", "~7"],
    ["5 ft 11 in", "6 ft 0 in"],
    ["5'11\"", "6'0\""],
    ["2 years 3 months", "1 year 1 month"],
    ["39w2d", "24w0d"],
    ["204,50 S", "3,00 H"],
    ["33.87° S", "51.50° N"],
]


def found(texts: list[str]) -> Notation:
    notation = find_notation(texts)
    assert notation is not None
    return notation


@pytest.mark.parametrize("texts", EXAMPLES, ids=lambda texts: texts[0])
def test_texts_are_read_and_written_back(texts: list[str]) -> None:
    notation = found(texts)
    values = [notation.read(text) for text in texts]
    assert None not in values
    assert [notation.write(float(value)) for value in values if value is not None] == texts
    assert notation.meaning


@pytest.mark.parametrize("texts", EXAMPLES, ids=lambda texts: texts[0])
def test_any_number_is_written_so_that_it_is_read_back_as_near_as_the_form_allows(texts: list[str]) -> None:
    notation = found(texts)
    low, high = (notation.read(text) or 0.0 for text in texts)
    for value in np.random.default_rng(0).uniform(min(low, high), max(low, high), 50):
        once = notation.read(notation.write(float(value)))
        assert once is not None
        assert notation.read(notation.write(once)) == once  # rounding is done once
        assert abs(once - value) <= 0.51 * max(
            _step(notation), 0.006 * abs(value) * isinstance(notation, NumberNotation)
        )


def _step(notation: Notation) -> float:
    """The distance between two numbers that the notation can tell apart."""
    if isinstance(notation, NumberNotation):
        return 1e5 if notation.short else float(10.0**-notation.places)
    return 0.1 if getattr(notation, "places", 0) else 1.0


@pytest.mark.parametrize(
    "texts",
    [
        ["612 345 678", "655 123 456"],
        ["+44 20 7946 0958"],
        ["10.0.0.1", "10.0.0.2"],
        ["1.2.3", "2.0.10"],
        ["SW1A 1AA", "M1 1AE"],
        ["1012 AB", "1013 CD"],
        ["01234", "94110"],
        ["120/80", "130/85"],
        ["12A", "14B"],
        ["1kg", "500g"],
        ["€5", "$6"],
        ["A1", "A2"],
        ["3-1", "2-2"],
        ["25:70", "12:99"],
        ["2024-13", "2024-05"],
        ["2023-W53"],
        ["many", "few"],
        ["($5", "$6"],
    ],
    ids=lambda texts: texts[0],
)
def test_left_alone(texts: list[str]) -> None:
    assert find_notation(texts) is None


def test_a_separator_that_could_be_either_is_said() -> None:
    assert found(["1,234", "5,678"]).read("1,234") == 1234
    assert "could mark a fraction" in found(["1,234", "5,678"]).doubt
    comma = find_notation(["1,234", "5,678"], decimal_comma=True)
    assert comma is not None
    assert comma.read("1,234") == 1.234
    assert "could mark thousands" in comma.doubt
    assert found(["$1,234", "$5,678"]).doubt == ""
    assert found(["0,234", "5,678"]).read("5,678") == 5.678


def test_marks_around_a_number_need_not_be_typed() -> None:
    dollars = found(["$1,204.50", "$3.00"])
    assert dollars.read("1204.5") == dollars.read("1,204.50") == dollars.read("$1204.5") == 1204.5
    assert dollars.read("€3.00") is None
    german = found(["1.204,50 €", "3,00 €"])
    assert german.read("1.204") == 1204
    assert german.read("3.5") == 3.5


@pytest.mark.parametrize("name", NOTATIONS.names())
def test_options_out_of_range_are_refused(name: str) -> None:
    fields = {entry.name for entry in dataclasses.fields(NOTATIONS.get(name))}
    wrong = {"places": 99, "form": "YYYY", "parts": 7, "units": ("x", "x")}
    for option in fields & wrong.keys():
        with pytest.raises(UserError):
            NOTATIONS.build({"name": name, option: wrong[option]})


@pytest.mark.parametrize(
    ("texts", "value", "text"),
    [
        (["1 day", "3 days"], 2.6, "2.60 days"),
        (["12%", "3%"], 12.57, "12.6%"),
        (["12%", "3%"], 13.0, "13%"),
        (["¥12,045", "¥3"], 1204.5, "¥1,204"),
        (["$1.50", "$2.25"], 3.14159, "$3.14"),
        (["1,5", "2,25"], 3.14159265, "3,14"),
    ],
)
def test_computed_numbers_keep_the_digits_that_tell(texts: list[str], value: float, text: str) -> None:
    assert found(texts).shown(value) == text
