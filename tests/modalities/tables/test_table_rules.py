"""Rules of a table: kept with the model, obeyed by draws, fills and answers, on the command line too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anyorder as ao

from commands import refused, run
from messy_tables import QUICK

BRIEF = {**QUICK, "folds": 1, "training": {"steps": 30, "batch": 64, "validation_queries": 50}}
RULES = ["end > start", "total = a + b", "x + y + z = 100", "most >= least"]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = 300
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, rows), unit="D")
    a, b = np.exp(rng.normal(2, 0.5, rows)).round(2), np.exp(rng.normal(1, 0.7, rows)).round(2)
    share = rng.dirichlet([2, 3, 4], rows) * 100
    x, y = share[:, 0].round(1), share[:, 1].round(1)
    least = rng.integers(1, 20, rows)
    return pd.DataFrame(
        {
            "start": start,
            "end": start + pd.to_timedelta(rng.integers(1, 60, rows), unit="D"),
            "a": a,
            "b": b,
            "total": (a + b).round(2),
            "x": x,
            "y": y,
            "z": (100 - x - y).round(1),
            "least": least,
            "most": least + rng.integers(0, 10, rows),
            "colour": rng.choice(["red", "blue"], rows),
        }
    )


@pytest.fixture(scope="module")
def fitted(frame: pd.DataFrame) -> ao.TableModel:
    return ao.fit(frame, engine="neural", rules=RULES, config=BRIEF, seed=0)


def check(rows: pd.DataFrame) -> None:
    assert bool((rows["end"] > rows["start"]).all() and (rows["most"] >= rows["least"]).all())
    np.testing.assert_allclose(rows["a"] + rows["b"], rows["total"], atol=1e-9)
    np.testing.assert_allclose(rows[["x", "y", "z"]].sum(axis=1), 100.0, atol=1e-9)
    for name, digits in {"a": 2, "b": 2, "total": 2, "x": 1, "y": 1, "z": 1}.items():
        assert bool((rows[name] == rows[name].round(digits)).all()), name
    assert bool((rows[["a", "b", "x", "y", "z"]] >= 0).all(axis=None))


def test_draws_obey(fitted: ao.TableModel) -> None:
    check(fitted.sample(150, seed=0))
    check(fitted.given(colour="red", start="2024-05-05", total=9.0).sample(40, seed=1))
    loose = fitted.sample(150, seed=0, rules=[])
    assert not np.allclose(loose["a"] + loose["b"], loose["total"], atol=1.0)
    assert bool((fitted.sample(50, rules=["a > b"])["a"] > 0).all())


def test_fills_obey(fitted: ao.TableModel, frame: pd.DataFrame) -> None:
    holes = frame.head(40).mask(np.random.default_rng(0).random((40, frame.shape[1])) < 0.4)
    for filled in (*fitted.fill(holes, draws=2, seed=0), fitted.fill(holes)):
        check(filled)
        known = holes.notna()
        assert bool((filled.where(known) == holes.where(known)).where(known, True).all(axis=None))
    one, other = fitted.fill(holes, draws=2, seed=0)
    assert not one.equals(other) and fitted.fill(holes, draws=1, seed=0)[0].equals(fitted.fill(holes, draws=1)[0])


def test_answers_obey(fitted: ao.TableModel) -> None:
    known = fitted.given(least=15, start="2024-05-01").using(draws=200)
    assert known["most"].quantile(0.001) >= 15
    assert pd.Timestamp(known["end"].quantile(0.001)) > pd.Timestamp("2024-05-01")
    assert known.prob("most < 15") == 0
    assert fitted.given(a=5.0, b=3.25)["total"].mean() == pytest.approx(8.25)


def test_the_file_keeps_them(fitted: ao.TableModel, tmp_path: Path) -> None:
    assert fitted.card["arguments"]["rules"] == RULES
    fitted.save(tmp_path / "model.anyorder")
    again = ao.load(tmp_path / "model.anyorder")
    assert again.sample(20, seed=3).equals(fitted.sample(20, seed=3))
    for rules in (["nothing > a"], "a > b", [7]):
        card = {**fitted.card, "arguments": {**fitted.card["arguments"], "rules": rules}}
        with pytest.raises(ao.UserError):
            ao.TableModel.of_file(fitted.core, card)


def test_rows_that_break_a_rule_are_named(frame: pd.DataFrame) -> None:
    wrong = frame.copy()
    wrong.loc[[3, 70], "total"] += 1.0
    with pytest.warns(UserWarning, match=r"'total = a \+ b' is broken by 2 of 300 rows: 3, 70"):
        ao.fit(wrong, engine="neural", rules=RULES, config=BRIEF, seed=0)
    with pytest.raises(ao.UserError, match="colour"):
        ao.fit(frame, rules=["colour > a"])


def test_what_cannot_obey_is_refused(fitted: ao.TableModel, frame: pd.DataFrame) -> None:
    with pytest.raises(ao.UserError, match=r"breaks the rule 'total = a \+ b'"):
        fitted.given(a=5.0, b=3.0, total=9.0)
    holes = frame.head(3).copy()
    holes.loc[1, ["x", "y", "z"]] = [90.0, 20.0, np.nan]
    with pytest.raises(ao.UserError, match="row 1"):
        fitted.fill(holes)


def test_the_command_line_takes_rules(
    fitted: ao.TableModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, drawn, holes, filled = (str(tmp_path / name) for name in ("model.anyorder", "rows.csv", "holes.csv", "f.csv"))
    fitted.save(path)
    run(capsys, "sample", path, "-n", "30", "-o", drawn, "--rule", "a >= 2 * b")
    rows = pd.read_csv(drawn)
    assert bool((rows["a"] >= 2 * rows["b"] - 1e-9).all())
    rows.loc[::2, "a"] = np.nan
    rows.to_csv(holes, index=False)
    run(capsys, "fill", path, holes, "-o", filled, "--rule", "a >= 2 * b")
    rows = pd.read_csv(filled)
    assert bool((rows["a"] >= 2 * rows["b"] - 1e-9).all())
    asked = run(capsys, "ask", path, "P(a > 2 | b=3)", "--rule", "a > b", "--json", "--draws", "50")
    assert json.loads(asked.out)["probability"]["value"] == pytest.approx(1.0)
    assert "a >> b" in refused(capsys, "ask", path, "a | b=3", "--rule", "a >> b")
