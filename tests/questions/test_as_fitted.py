"""Drawn rows come in the library of the frame that was fitted to."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.questions.as_fitted import as_fitted, library_of

from written_tables import QUICK

pl = pytest.importorskip("polars")


def frame() -> Any:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "count": rng.integers(0, 50, 60),
            "size": rng.normal(size=60).round(2),
            "day": [datetime.date(2024, 1, 1) + datetime.timedelta(days=int(day)) for day in rng.integers(0, 90, 60)],
            "kind": pl.Series(rng.choice(["ash", "birch"], 60), dtype=pl.Categorical),
            "grade": pl.Series(rng.choice(["low", "high"], 60), dtype=pl.Enum(["low", "high"])),
            "flag": rng.random(60) < 0.5,
        }
    )


@pytest.fixture(scope="module")
def model() -> ao.TableModel:
    return ao.fit(frame(), engine="neural", config=QUICK, seed=0)


def test_polars_after_polars(model: ao.TableModel, tmp_path: Path) -> None:
    drawn = model.sample(5, seed=0)
    assert isinstance(drawn, pl.DataFrame) and drawn.schema == frame().schema
    assert isinstance(model.given(count=3).sample(2), pl.DataFrame)
    assert isinstance(model.given(count=3).given(flag=True).asking("size").sample(2), pl.DataFrame)
    assert isinstance(model.asking("size").sample(2), pl.DataFrame)
    model.save(tmp_path / "model.anyorder")
    assert ao.load(tmp_path / "model.anyorder").sample(5, seed=0).equals(drawn)


def test_pandas_after_pandas_and_where_the_library_is_not_installed(
    model: ao.TableModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pd.DataFrame({"size": [1.0, 2.0]})
    assert as_fitted(table, "", model.schema) is table
    assert as_fitted(table, ["odd"], model.schema) is table
    monkeypatch.setitem(sys.modules, "polars", None)
    assert as_fitted(table, "polars", model.schema) is table


def test_the_library_of_a_frame() -> None:
    assert library_of(frame()) == "polars"
    assert library_of(pd.DataFrame({"x": [1]})) == ""
    assert library_of({"x": [1]}) == ""
    assert library_of(pytest.importorskip("pyarrow").table({"x": [1]})) == "pyarrow"


def test_arrow_after_arrow(model: ao.TableModel) -> None:
    pa = pytest.importorskip("pyarrow")
    table = as_fitted(pd.DataFrame({"size": [1.0, 2.0], "flag": [True, False]}), "pyarrow", model.schema)
    assert isinstance(table, pa.Table) and table.num_rows == 2
