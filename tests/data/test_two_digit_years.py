"""Years of two digits are decided for a whole column: nobody is born in the future, and plans are not a century old."""

from __future__ import annotations

import datetime

import pandas as pd
import pytest

from anyorder.data.tables import prepare
from anyorder.data.two_digit_years import find_century
from anyorder.variables.centuries import moved, split_century, with_century
from anyorder.variables.encoding import Encoding
from anyorder.variables.time_forms import TimeForm, read_times, write_times

TODAY = datetime.date(2026, 6, 15)


def years(name: str, texts: list[str]) -> list[int]:
    form = find_century(name, TimeForm("%d/%m/%y"), texts, TODAY).form.pattern
    read = read_times(pd.Series(texts, dtype="str"), form, utc=False)
    assert write_times(pd.DatetimeIndex(read), form) == texts
    return read.dt.year.tolist()


@pytest.mark.parametrize(
    ("name", "texts", "meant"),
    [
        ("dob", ["05/03/58", "05/03/04", "05/03/99"], [1958, 2004, 1999]),
        ("dob", ["05/03/26", "05/03/27"], [2026, 1927]),
        ("dob", ["05/12/26", "05/03/58"], [1926, 1958]),  # December is still to come
        ("dateOfBirth", ["29/02/00", "29/02/60"], [2000, 1960]),
        ("first visit", ["05/03/58", "05/03/04"], [1958, 2004]),
        ("first visit", ["05/03/30", "05/03/24"], [2030, 2024]),  # planned
        ("expires", ["05/03/58", "05/03/44"], [2058, 2044]),
        ("loan", ["05/03/24", "05/03/45", "05/03/58"], [2024, 2045, 2058]),  # a span of 34 years, not of 79
        ("seen", ["05/03/69", "05/03/70"], [1969, 1970]),
    ],
)
def test_the_years_that_are_meant(name: str, texts: list[str], meant: list[int]) -> None:
    assert years(name, texts) == meant


def test_every_day_keeps_its_month_and_day() -> None:
    days = pd.Series(pd.date_range("1969-01-01", "2068-12-31", freq="D"))
    there = moved(days, 1927)
    assert there.dt.year.between(1927, 2026).all()
    assert (there.dt.strftime("%d/%m/%y") == days.dt.strftime("%d/%m/%y")).all()


def test_forms_with_years() -> None:
    assert split_century("1927:%d/%m/%y") == (1927, "%d/%m/%y")
    assert split_century("%H:%M") == (1969, "%H:%M")
    assert with_century("1927:%d/%m/%y", 1969) == "%d/%m/%y"
    assert with_century("%d/%m/%Y", 1927) == "%d/%m/%Y"


def test_the_other_years_can_be_had_as_the_note_says() -> None:
    frame = pd.DataFrame({"since": [f"{1 + i % 28:02d}/{1 + i % 12:02d}/{50 + i % 40}" for i in range(80)]})
    with pytest.warns(UserWarning, match=r"would lie in the future; to change this: kinds=\{'since': 'datetime %d"):
        schema, _ = prepare(frame)
    assert Encoding.fit(frame, schema).measure("since", Encoding.fit(frame, schema).encode(frame)[0][:1, 0])[0] < 0
    other, _ = prepare(frame, {"since": "datetime %d/%m/%y"})
    usual = Encoding.fit(frame, other)
    assert usual.measure("since", usual.encode(frame)[0][:1, 0])[0] > 29_000
    named, _ = prepare(frame, {"since": "datetime 1850:%d/%m/%y"})
    early = Encoding.fit(frame, named)
    assert early.measure("since", early.encode(frame)[0][:1, 0])[0] < -43_000
    pd.testing.assert_frame_equal(early.decode(early.encode(frame)[0]), frame)
