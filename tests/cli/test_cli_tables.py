"""``sample``, ``fill``, ``score`` and ``info`` on a model of a table whose answers are known."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from commands import refused, run


def test_sample_keeps_what_is_given(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "sample", model, "-n", "5", "--given", "river=yes", "--seed", "3").out
    frame = pd.read_csv(io.StringIO(text))
    assert len(frame) == 5
    assert set(frame["river"]) == {"yes"}
    assert frame["rooms"].to_numpy() == pytest.approx(np.random.default_rng(3).normal(size=5))
    out = tmp_path / "draws.parquet"
    assert run(capsys, "sample", model, "-n", "7", "-o", str(out)).out == ""
    assert len(pd.read_parquet(out)) == 7


def test_fill_once_and_many_times(model: str, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "6,20.0,yes" in run(capsys, "fill", model, table).out
    out = tmp_path / "filled.csv"
    run(capsys, "fill", model, table, "-o", str(out), "--draws", "3", "--seed", "2")
    frame = pd.read_csv(out)
    assert list(frame.columns) == ["draw", "rooms", "price", "river"]
    assert frame["draw"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert frame.loc[frame["rooms"] == 6, "price"].tolist() == [200, 201, 202]
    assert frame.loc[frame["rooms"] == 4, "price"].tolist() == [17, 17, 17]


def test_draws_do_not_hide_a_column(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("rooms,price,river,draw\n5,,no,1\n", encoding="utf-8")
    assert "'draw'" in refused(capsys, "fill", model, str(path), "--draws", "2")


def test_score_is_a_mean_with_its_standard_error(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pd.DataFrame({"rooms": [5.0, 6.0, 4.0, 5.5], "price": [21.5, 30.0, 17.0, 20.0], "river": "no"})
    path = tmp_path / "t.csv"
    rows.to_csv(path, index=False)
    exact = norm(10 + 2 * rows["rooms"], 3).logpdf(rows["price"])
    result = json.loads(run(capsys, "score", model, str(path), "--given", "rooms, river", "--json", "--per-row").out)
    assert result["mean"] == pytest.approx(exact.mean())
    assert result["standard_error"] == pytest.approx(exact.std(ddof=1) / 2)
    assert result["log_prob"] == pytest.approx(exact.tolist())
    assert result["given"] == ["rooms", "river"]
    joint = run(capsys, "score", model, str(path)).out
    assert f"{(exact + norm(5, 1).logpdf(rows['rooms'])).mean():.4f} ±" in joint


def test_score_per_row_is_csv(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("rooms,price,river\n5,21.5,no\n6,22.5,no\n", encoding="utf-8")
    result = run(capsys, "score", model, str(path), "--per-row", "--given", "rooms")
    rows = list(csv.DictReader(io.StringIO(result.out)))
    assert [row["row"] for row in rows] == ["0", "1"]
    assert float(rows[0]["log_prob"]) == pytest.approx(norm(20, 3).logpdf(21.5))
    assert "nats per row" in result.err


def test_one_row_has_no_standard_error(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("rooms,price,river\n5,21.5,no\n", encoding="utf-8")
    exact = norm(20, 3).logpdf(21.5)
    assert run(capsys, "score", model, str(path), "--given", "rooms").out == f"{exact:.4f} nats per row (1 row)\n"
    assert json.loads(run(capsys, "score", model, str(path), "--json").out)["standard_error"] is None


def test_info(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(run(capsys, "info", model, "--json").out)
    assert result["variables"][2] == {"name": "river", "kind": "categorical", "levels": ["no", "yes"]}
    assert result["card"]["training"]["steps"] == 7
    assert result["card"]["scores"]["bad"] is None  # JSON has no NaN
    text = run(capsys, "info", model).out
    assert "river" in text
    assert "training.steps" in text
