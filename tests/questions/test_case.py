"""One case as evidence: a row of a frame, a mapping with holes, a frame of one row."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.questions.case import known_cells

import release

MODEL = ao.load(Path(release.__file__).parent / "v1" / "table_neural.anyorder")
FRAME = release.every_kind()
KNOWN = {"size": 1.5, "kind": "ash", "flag": True}


def mean_rain(evidence: Any, **more: Any) -> float:
    return float(MODEL.given(evidence, **more)["rain"].mean())


@pytest.mark.parametrize("nothing", [None, float("nan"), np.nan, pd.NA, pd.NaT], ids=str)
def test_what_is_unknown_is_not_evidence(nothing: Any) -> None:
    assert mean_rain({**KNOWN, "count": nothing}) == mean_rain(KNOWN)
    assert mean_rain(KNOWN, count=nothing) == mean_rain(KNOWN)
    assert MODEL.given(KNOWN).given(count=nothing).evidence == KNOWN


def test_a_row_of_a_frame_is_evidence() -> None:
    row = FRAME.drop(columns="rain").iloc[0]
    assert mean_rain(row) == mean_rain({name: cell for name, cell in row.items() if not pd.isna(cell)})
    assert mean_rain(row, size=3.0) == mean_rain({**row.dropna(), "size": 3.0})
    assert mean_rain(row) == pytest.approx(
        MODEL.given(row.to_frame().T.astype(object))["rain"].mean().iloc[0], rel=1e-5
    )
    assert "np." not in repr(MODEL.given(row)) and "Timestamp" not in repr(MODEL.given(row))
    assert repr(MODEL.given(day=datetime.date(2024, 5, 1))) == "p(... | day=2024-05-01)"


def test_a_cell_of_the_row_can_be_asked_given_the_others() -> None:
    row = FRAME.dropna().iloc[0]
    with pytest.warns(UserWarning, match="'rain' is asked, so its value in the given row"):
        found = MODEL.given(row)["rain"].mean()
    assert found == mean_rain(row.drop("rain"))
    with pytest.raises(ao.UserError, match="'rain' is given"):
        MODEL.given(row, rain=2.0)["rain"]
    with pytest.raises(ao.UserError, match="'rain' is given"):
        MODEL.given(dict(row))["rain"]


def test_a_row_of_polars_is_evidence() -> None:
    pl = pytest.importorskip("polars")
    row = pl.DataFrame({"size": [1.5], "kind": ["ash"], "count": [None]}).row(0, named=True)
    assert mean_rain(row) == mean_rain({"size": 1.5, "kind": "ash"})


def test_marks_and_left_out_columns_of_a_row_are_not_evidence() -> None:
    schema = ao.TableModel.of_file(MODEL.core, MODEL.card).schema
    marked = type(schema)(schema.variables, left_out=("id",), dropped=("note",), missing=("?", "-9"))
    row = {"size": -9, "count": 4, "kind": " ? ", "grade": "", "id": 7, "note": "x", "flag": np.bool_(True)}
    assert known_cells(marked, row) == {"count": 4, "flag": True}


def test_what_is_no_row_is_refused() -> None:
    with pytest.raises(ao.UserError, match="expected a table"):
        MODEL.given([1.0, 2.0])
