"""Dates are read and written back in the form of their column; the order of day and month is found or said."""

from __future__ import annotations

import datetime

import pandas as pd
import pytest

from anyorder.variables.time_forms import find_time_form, read_times, write_times

DAYS = [
    datetime.datetime(2024, 7, 16, 13, 5, 9),
    datetime.datetime(1999, 12, 3, 0, 0),
    datetime.datetime(2023, 2, 28, 9, 30),
]
FORMS = [
    "%d/%m/%Y", "%m/%d/%Y", "%-m/%-d/%Y", "%d.%m.%Y", "%-d.%-m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d/%m/%y", "%m/%d/%y",
    "%d-%b-%Y", "%d-%^b-%Y", "%d-%b-%y", "%-d %b %Y", "%b %-d, %Y", "%B %d, %Y", "%A, %B %-d, %Y", "%a, %d %b %Y",
    "%Y%m%d", "%Y%m%d%H%M%S", "%d/%m/%Y %H:%M", "%-m/%-d/%Y %-I:%M %p", "%d.%m.%Y %H:%M:%S", "%Y/%m/%d %H:%M:%S",
    "%d %B %Y at %H:%M", "%a %b %d %H:%M:%S %Y", "%d/%b/%Y:%H:%M:%S", "%m/%d/%Y, %I:%M:%S %p",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_found_read_and_written_back(form: str) -> None:
    texts = write_times(pd.DatetimeIndex(DAYS), form)
    found = find_time_form(texts)
    assert found is not None
    assert found.pattern == form
    assert found.other == ""
    read = read_times(pd.Series(texts), found.pattern, utc=False)
    assert write_times(pd.DatetimeIndex(read), form) == texts
    assert read.dt.date.tolist() == [day.date() for day in DAYS]


def test_an_order_that_is_open_is_said() -> None:
    either = find_time_form(["03/04/2024", "01/12/2024", "05/06/2023"])
    assert either is not None
    assert (either.pattern, either.other) == ("%m/%d/%Y", "%d/%m/%Y")
    points = find_time_form(["03.04.2024", "01.12.2024", "05.06.2023"])
    assert points is not None
    assert points.pattern == "%d.%m.%Y"


def test_rows_in_the_order_of_time_decide() -> None:
    found = find_time_form(["01/02/2024", "05/02/2024", "02/03/2024", "01/05/2024", "03/06/2024", "02/07/2024"])
    assert found is not None
    assert (found.pattern, found.other) == ("%d/%m/%Y", "")


@pytest.mark.parametrize("texts", [["31/02/2024"], ["16/07/2024", "soon"], ["12345678"], ["1.2.3"], ["July"], [""]])
def test_no_date(texts: list[str]) -> None:
    assert find_time_form(texts) is None


def test_seconds_since_1970() -> None:
    read = read_times(pd.Series([1_721_088_000, 0]), "epoch s", utc=False)
    assert read.tolist() == [pd.Timestamp("2024-07-16"), pd.Timestamp(0)]
    assert write_times(pd.DatetimeIndex(read), "epoch s") == [1_721_088_000, 0]
    assert write_times(pd.DatetimeIndex(read), "epoch ms") == [1_721_088_000_000, 0]
