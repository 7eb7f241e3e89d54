"""New rows for a fitted model: it learns what has changed, and stays as it is where nothing has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.errors import UserError
from anyorder.modalities.tables.model import TableModel
from anyorder.model.parts import trainable_parts

from commands import run

TRAINING = {"minutes": None, "steps": 25, "validation_queries": 100}
QUICK: dict[str, Any] = {"training": TRAINING, "trees": {"rounds": 5, "members": 1}}


def rows(count: int, shift: float, seed: int) -> pd.DataFrame:
    """y = 2 x + shift, nearly, and a level that depends on x."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=count)
    level = np.where(x + rng.normal(size=count) > 0, "a", "b")
    return pd.DataFrame({"x": x, "y": 2 * x + shift + 0.3 * rng.normal(size=count), "level": level})


@pytest.fixture(scope="module")
def before() -> TableModel:
    return ao.fit(rows(120, 0.0, 0), config={**QUICK, "folds": 2})


@pytest.fixture(scope="module")
def after(before: TableModel) -> TableModel:
    return before.update(rows(80, 3.0, 1), minutes=None, config=QUICK, seed=0)


def test_what_has_changed_is_learned(before: TableModel, after: TableModel) -> None:
    said = after.card["updates"][-1]
    assert said["taken"] and said["after"] > said["before"] and said["rows"] == 80 and said["judging_rows"] == 20
    new = rows(200, 3.0, 2)
    assert after.log_prob(new).mean() > before.log_prob(new).mean() + 1
    assert after.given(x=0.0)["y"].mean() == pytest.approx(3.0, abs=0.4)


def test_the_model_itself_stays_as_it_is(before: TableModel, after: TableModel) -> None:
    assert "updates" not in before.card
    assert before.given(x=0.0)["y"].mean() == pytest.approx(0.0, abs=0.4)
    assert {key: value for key, value in after.card.items() if key != "updates"} == before.card


def test_an_updated_model_is_a_model_like_any_other(after: TableModel, tmp_path: Path) -> None:
    path = tmp_path / "after.anyorder"
    after.save(path)
    again, new = ao.load(path), rows(30, 3.0, 3)
    assert isinstance(again, TableModel) and again.card == after.card
    np.testing.assert_array_equal(again.log_prob(new), after.log_prob(new))
    assert after.sample(5, seed=0).equals(again.sample(5, seed=0))
    levels = [after.given(x=0.3, y=2.0).prob(level=level) for level in ("a", "b")]
    assert sum(levels) == pytest.approx(1, abs=1e-5)
    grid = np.linspace(-20, 30, 4001)
    assert np.trapezoid(after.given(x=0.3)["y"].pdf(grid), grid) == pytest.approx(1, abs=2e-3)
    assert after.fill(new.assign(y=np.nan))["y"].notna().all()


def test_where_nothing_has_changed_the_answers_are_not_worse(before: TableModel) -> None:
    newer = before.update(rows(60, 0.0, 4), minutes=None, config=QUICK)
    said = newer.card["updates"][-1]
    assert said["taken"] == (said["after"] - said["before"] > said["standard_error"])
    if not said["taken"]:
        assert newer.core is before.core


def test_an_update_is_repeatable_and_can_follow_another(before: TableModel, after: TableModel) -> None:
    again = before.update(rows(80, 3.0, 1), minutes=None, config=QUICK, seed=0)
    new = rows(20, 3.0, 5)
    np.testing.assert_array_equal(again.log_prob(new), after.log_prob(new))
    third = after.update(rows(60, -3.0, 6), minutes=None, config=QUICK)
    assert [said["rows"] for said in third.card["updates"]] == [80, 60]
    assert third.given(x=0.0)["y"].mean() == pytest.approx(-3.0, abs=0.6)


def test_the_networks_of_a_blend_are_found(before: TableModel, after: TableModel) -> None:
    inside = trainable_parts(before.core)
    assert inside and all(part.network.trainable for part in inside)
    values = np.zeros((2, 3))
    for part in inside:
        assert part.log_prob_beside(*map(_tensor, (values, values > 0))).shape == (2, 3)


def _tensor(array: np.ndarray) -> Any:
    import torch

    return torch.as_tensor(array)


def test_new_rows_may_lack_cells_and_columns(before: TableModel) -> None:
    holes = rows(60, 3.0, 7).drop(columns="level")
    holes["x"] = holes["x"].mask(np.random.default_rng(0).random(60) < 0.3)
    newer = before.update(holes, minutes=None, config=QUICK)
    assert newer.given(x=0.0)["level"].probs() == pytest.approx(before.given(x=0.0)["level"].probs(), abs=0.3)


def test_mistakes(before: TableModel) -> None:
    new = rows(40, 0.0, 8)
    with pytest.raises(UserError, match="24 new rows"):
        before.update(new.head(10))
    with pytest.raises(UserError, match="is not one of its values"):
        before.update(new.assign(level="c"))
    with pytest.raises(UserError, match="no column 'z'"):
        before.update(new.rename(columns={"x": "z"}))


def test_on_the_command_line(before: TableModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, table, new, options = (tmp_path / name for name in ("old.anyorder", "new.csv", "new.anyorder", "run.toml"))
    before.save(old)
    rows(60, 3.0, 9).to_csv(table, index=False)
    options.write_text("[training]\nsteps = 10\n[trees]\nrounds = 3\n", encoding="utf-8")
    out = run(capsys, "update", str(old), str(table), "-o", str(new), "--config", str(options), "--minutes", "1").out
    assert "before" in out and "after" in out
    assert ao.load(new).card["updates"][-1]["rows"] == 60
