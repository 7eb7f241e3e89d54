"""Times of one column that have several offsets from UTC, as summer time makes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from anyorder.data.columns import understand
from anyorder.variables.encoding import Encoding
from anyorder.variables.offsets import clock_of, minutes_of, written_offset
from anyorder.variables.place_back import put_back
from anyorder.variables.schema import Kind, Schema

Write = Callable[[pd.DatetimeIndex], list[str]]
HOURS = 37 * np.arange(120)  # from winter through most of the summer


def _moments(zone: str) -> pd.DatetimeIndex:
    start = pd.Timestamp("2023-02-11 15:25:32", tz="UTC")
    return pd.DatetimeIndex(start + pd.to_timedelta(HOURS, unit="h")).tz_convert(zone)


def _shop(moments: pd.DatetimeIndex) -> list[str]:
    return list(moments.strftime("%Y-%m-%d %H:%M:%S %z"))


def _iso(moments: pd.DatetimeIndex) -> list[str]:
    return [moment.isoformat() for moment in moments]


def _survey(moments: pd.DatetimeIndex) -> list[str]:
    return [f"{at:%Y/%m/%d} {at.hour % 12 or 12}:{at:%M:%S %p} GMT+{at.utcoffset().seconds // 3600}" for at in moments]


def _survey_in_london(moments: pd.DatetimeIndex) -> list[str]:
    return [f"{at:%d/%m/%Y %H:%M:%S} GMT" + ("+1" if at.utcoffset() else "") for at in moments]


COLUMNS = [
    ("America/New_York", _shop, " -0400"),
    ("Europe/Berlin", _iso, "+02:00"),
    ("Europe/Berlin", _survey, " GMT+2"),
    ("Europe/London", _survey_in_london, " GMT+1"),
]


@pytest.mark.parametrize(("zone", "write", "commonest"), COLUMNS)
def test_they_are_the_moments_that_they_say(zone: str, write: Write, commonest: str) -> None:
    moments = _moments(zone)
    texts = pd.Series(write(moments))
    assert texts.map(written_offset).nunique() == 2
    found = understand("Created at", texts)
    assert found.variable is not None
    assert found.variable.kind is Kind.DATETIME
    assert found.variable.form.endswith(commonest)
    assert [doubt for doubt in found.doubts if "offsets" in doubt and f"with {commonest.strip()}, " in doubt]
    frame = pd.DataFrame({"Created at": texts})
    encoding = Encoding.fit(frame, Schema((found.variable,)))
    values, known = encoding.encode(frame)
    assert known.all()
    again = encoding.decode(values)["Created at"]
    assert all(text.endswith(commonest) for text in again)
    own = encoding.encode(pd.DataFrame({"Created at": again}))[0]
    np.testing.assert_allclose(own, values)
    # Moments are a known number of days apart, whatever the clocks showed.
    measured = encoding.measure("Created at", values[:, 0])
    np.testing.assert_allclose(np.diff(measured), np.diff(HOURS) / 24, atol=1e-6)


@pytest.mark.parametrize(("zone", "write", "commonest"), COLUMNS)
def test_known_cells_stay_and_new_ones_have_the_commonest(zone: str, write: Write, commonest: str) -> None:
    texts = pd.Series(write(_moments(zone)))
    variable = understand("Created at", texts).variable
    assert variable is not None
    encoding = Encoding.fit(pd.DataFrame({"Created at": texts}), Schema((variable,)))
    codec = encoding.codecs[0]
    values = encoding.encode(pd.DataFrame({"Created at": texts}))[0][:, 0]
    rows, known = np.array([0, 119]), np.arange(1, 119)
    column = texts.copy()
    column[rows] = None
    filled = put_back(codec, column, rows, values[rows], known, values[known])
    assert filled[known].tolist() == texts[known].tolist()
    assert filled[119] == texts[119]  # in summer, as most
    assert filled[0] != texts[0]
    assert filled[0].endswith(commonest)


def test_one_offset_is_no_matter_of_doubt() -> None:
    winter = pd.Series(_shop(_moments("America/New_York"))[:15] * 8)
    found = understand("Created at", winter)
    assert found.variable is not None
    assert found.variable.zone == "UTC-05:00"
    assert not found.doubts


@pytest.mark.parametrize(
    ("offset", "minutes", "clock"),
    [
        *(("Z", 0, "UTC"), ("-0500", -300, "UTC-05:00"), ("+05:30", 330, "UTC+05:30"), (" GMT+1", 60, "UTC+01:00")),
        *((" GMT", 0, "UTC"), (" UTC-3:30", -210, "UTC-03:30"), (" GMT+10", 600, "UTC+10:00")),
    ],
)
def test_offsets_in_minutes(offset: str, minutes: int, clock: str) -> None:
    assert minutes_of(offset) == minutes
    assert clock_of(offset) == clock
    assert written_offset(f"2024-05-01 12:30:00{offset}") == offset


@pytest.mark.parametrize("text", ["2024-05-01", "16-07-2024", "2024-05-01 12:30", "12:30 16-07-2024", "5:30 PM"])
def test_no_offset(text: str) -> None:
    assert written_offset(text) == ""
