"""The benchmark tables: labelled once, loaded as a user would load them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import table_sets

EMBEDDED = ("wine", "diabetes", "breast_cancer")


def test_half_of_the_tables_or_more_were_never_looked_at() -> None:
    assert not set(table_sets.TUNING) & set(table_sets.UNSEEN)
    assert len(table_sets.UNSEEN) >= len(table_sets.TUNING) and len(table_sets.NAMES) >= 10
    assert set(table_sets.SOURCES) == set(table_sets.NAMES)
    assert {table_sets.label(name) for name in table_sets.UNSEEN} == {"unseen"}


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_table_says_what_its_columns_are(name: str) -> None:
    table = table_sets.load(name)
    assert list(table.kinds) == list(table.frame.columns) and set(table.targets) <= set(table.kinds)
    for column, kind in table.kinds.items():
        cells = table.frame[column].dropna()
        if kind == "categorical":
            assert set(map(type, cells)) == {str} and set(cells) == set(table.levels[column])
        else:
            assert cells.dtype == np.float64


def test_a_wide_table_is_thinned_and_keeps_its_targets() -> None:
    whole, thin = table_sets.load("breast_cancer"), table_sets.load("breast_cancer", widest=12)
    assert thin.frame.shape == (len(whole.frame), 12) and set(thin.targets) <= set(thin.frame.columns)
    pd.testing.assert_frame_equal(thin.frame, whole.frame[thin.frame.columns])
    assert table_sets.load("wine", widest=14).frame.shape[1] == 14


def test_a_file_that_is_not_at_hand_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANYORDER_DATA", str(tmp_path))
    assert table_sets.at_hand() == [name for name in table_sets.NAMES if name in EMBEDDED]
    with pytest.raises(FileNotFoundError, match="ANYORDER_DATA"):
        table_sets.load("yacht")


def test_zeros_that_stand_for_missing_become_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    columns = ["pregnancies", "glucose", "blood_pressure", "skin_thickness", "insulin", "bmi", "age", "diabetes"]
    pd.DataFrame([[0, 0, 70, 20, 0, 30.5, 21, 1], [2, 99, 0, 0, 5, 0, 40, 0]], columns=columns).to_csv(
        tmp_path / "pima_diabetes.csv.gz", index=False
    )
    monkeypatch.setenv("ANYORDER_DATA", str(tmp_path))
    frame = table_sets.load("pima").frame
    assert frame["pregnancies"].tolist() == [0, 2] and frame["diabetes"].tolist() == ["1", "0"]
    assert int(frame.isna().sum().sum()) == 5
