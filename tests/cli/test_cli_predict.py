"""``predict`` on models whose answers are known."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anyorder.modalities.tables.model import TableModel

from commands import refused, run
from models import categorical_model, categorical_table, gaussian_model


@pytest.fixture
def normal(tmp_path: Path) -> str:
    """v0 and v1 standard normal with correlation 0.6."""
    path = tmp_path / "normal.anyorder"
    TableModel(gaussian_model(np.zeros(2), np.array([[1.0, 0.6], [0.6, 1.0]])), {}).save(path)
    return str(path)


@pytest.fixture
def rows(tmp_path: Path) -> str:
    path = tmp_path / "rows.csv"
    path.write_text("v0,v1\n9,1\n,2\n0,\n", encoding="utf-8")
    return str(path)


def test_a_number_and_its_quantiles(normal: str, rows: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "predict", normal, rows, "--column", "v0", "--quantiles", "0.025,0.5").out
    found = pd.read_csv(io.StringIO(text))
    assert list(found.columns) == ["v0", "v0 0.025", "v0 0.5"]
    assert found["v0"].tolist() == pytest.approx([0.6, 1.2, 0.0], abs=1e-6)  # its own cells are not looked at
    assert found["v0 0.5"].tolist() == pytest.approx([0.6, 1.2, 0.0], abs=1e-6)
    assert found["v0 0.025"].tolist() == pytest.approx([0.6 - 1.959964 * 0.8, 1.2 - 1.959964 * 0.8, -1.959964])


def test_levels_and_their_probabilities(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = TableModel(categorical_model({"name": "residual_mlp", "width": 16, "blocks": 1}, steps=5), {})
    path, rows, out = tmp_path / "levels.anyorder", tmp_path / "rows.parquet", tmp_path / "found.csv"
    model.save(path)
    table = categorical_table(4)
    table.to_parquet(rows)
    run(capsys, "predict", str(path), str(rows), "--column", "b", "--probabilities", "-o", str(out))
    found = pd.read_csv(out, dtype={"b": str})
    assert found["b"].tolist() == model.predict(table, "b").tolist()
    assert list(found.columns) == ["b", "P(b=0)", "P(b=1)", "P(b=2)"]
    np.testing.assert_allclose(found.drop(columns="b").sum(axis=1), 1, rtol=1e-5)


def test_mistakes(normal: str, rows: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "between 0 and 1" in refused(capsys, "predict", normal, rows, "--column", "v0", "--quantiles", "5%")
    assert "between 0 and 1" in refused(capsys, "predict", normal, rows, "--column", "v0", "--quantiles", "5")
    assert "v7" in refused(capsys, "predict", normal, rows, "--column", "v7")
    assert "no list of levels" in refused(capsys, "predict", normal, rows, "--column", "v0", "--probabilities")
