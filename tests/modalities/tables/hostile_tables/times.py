"""Dates and times: far from now, across clock changes, of mixed zones, or impossible."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd

from hostile_tables.record import hostile, with_column


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


@hostile(warned="times have several offsets from UTC")
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
