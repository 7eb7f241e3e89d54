"""What ``look`` writes of times and of words that begin alike."""

from __future__ import annotations

import pandas as pd
import pytest

import anyorder as ao
from anyorder.data.tables import prepare
from anyorder.variables.schema import Schema

OPEN = ["2021-03-04", "2022-01-04", "9999-12-31", "2020-11-30"]


def test_times_are_shown_to_the_second() -> None:
    moments = [f"2022-01-{day:02d} 17:56:00" for day in range(1, 29)] * 3
    shown = str(ao.look(pd.DataFrame({"seen": moments, "x": range(len(moments))})))
    assert "17:56:00" in shown
    assert "17:55:59" not in shown


def test_an_open_end_in_the_year_9999_is_shown() -> None:
    assert "9999-12-31" in str(ao.look(pd.DataFrame({"until": OPEN * 40, "x": range(160)})))


@pytest.mark.parametrize(("yes", "also_yes", "no"), [("on", "On", "off"), ("yes", "Y", "no"), ("ON", "on", "Off")])
def test_spellings_are_one_level_and_opposites_two(yes: str, also_yes: str, no: str) -> None:
    cells = [yes, also_yes, no, yes] * 40
    model = prepare(pd.DataFrame({"switch": cells, "x": range(len(cells))}))
    schema = next(part for part in model if isinstance(part, Schema))
    variable = next(one for one in schema.variables if one.name == "switch")
    assert set(variable.levels) == {yes, no}
