"""Rows of any length in any number of readers, and cells that no spreadsheet calculates."""

from __future__ import annotations

import csv

import pytest

from anyorder.support.csv_rows import csv_rows, without_formula


def test_the_end_of_one_reader_does_not_limit_another() -> None:
    long = "x" * 200_000
    first, second = csv_rows(["a\n"]), csv_rows(["b,c\n", f"{long},1\n"])
    csv.field_size_limit(131_072)  # as it is where nobody has read a table before
    assert next(first) == (1, ["a"])
    assert next(second) == (1, ["b", "c"])
    assert list(first) == []
    assert next(second) == (2, [long, "1"])


@pytest.mark.parametrize("cell", ["=1", " =1", "\u00a0\u3000＝1", "\t=1", "  @sum", "\t", " \r-x"])
def test_formulas_are_quoted_with_spaces_in_front_too(cell: str) -> None:
    assert without_formula(cell) == "'" + cell


@pytest.mark.parametrize("cell", ["", " ", " -5", "+1e3", "a=1", " a", "' =1"])
def test_other_cells_stay(cell: str) -> None:
    assert without_formula(cell) == cell
