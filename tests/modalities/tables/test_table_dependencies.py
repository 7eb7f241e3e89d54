"""A table in which columns fix others, from fit to file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.model.leave_out import folds, leave_out
from anyorder.questions.doubt import jackknife
from anyorder.variables.folds import folds_of

from commands import refused, run
from messy_tables import QUICK

BRIEF = {**QUICK, "folds": 2, "training": {"steps": 30, "batch": 64, "validation_queries": 50}}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    city = rng.integers(0, 12, 900)
    return pd.DataFrame(
        {
            "city": [f"city {k}" for k in city],
            "price": rng.normal(city, 1.0).round(2),
            "country": pd.Categorical([f"land {k // 4}" for k in city]),
            "code": [f"c{5 * k % 12}" for k in city],
        }
    )


@pytest.fixture(scope="module", params=["neural", "auto"])
def fitted(request: pytest.FixtureRequest, frame: pd.DataFrame) -> ao.TableModel:
    return ao.fit(frame, engine=request.param, config=BRIEF, seed=0)


def seen(frame: pd.DataFrame, *names: str) -> set[tuple[str, ...]]:
    return set(frame[list(names)].astype(str).itertuples(index=False, name=None))


def test_draws_and_fills_have_no_impossible_pairs(fitted: ao.TableModel, frame: pd.DataFrame) -> None:
    drawn = fitted.sample(400, seed=1)
    holes = frame.head(200).mask(np.random.default_rng(0).random((200, 4)) < 0.4)
    for rows in (drawn, fitted.fill(holes, draws=1, seed=0)[0]):
        for pair in (("city", "code"), ("city", "country"), ("code", "country")):
            possible = seen(frame, *pair)
            wrong = [one not in possible for one in rows[list(pair)].astype(str).itertuples(index=False)]
            assert np.mean(wrong) < 0.01, pair


def test_every_level_goes_with_its_own(fitted: ao.TableModel, frame: pd.DataFrame) -> None:
    for city, code in seen(frame, "city", "code"):
        assert fitted.given(city=city)["code"].probs()[code] > 0.99
        assert fitted.given(code=code, price=3.0)["city"].probs()[city] > 0.99
    probs = fitted.given(country="land 1")["city"].probs()
    assert sum(probs[f"city {k}"] for k in range(4, 8)) > 0.99
    assert sum(probs.values()) == pytest.approx(1)


def test_the_card_and_the_file_keep_them(fitted: ao.TableModel, tmp_path: Path) -> None:
    said = {(one["fixed_by"], one["column"]): one["exceptions"] for one in fitted.card["dependencies"]}
    assert said == {("city", "code"): 0, ("code", "city"): 0, ("city", "country"): 0, ("code", "country"): 0}
    fitted.save(tmp_path / "model.anyorder")
    again = ao.load(tmp_path / "model.anyorder")
    assert again.given(city="city 3")["code"].probs() == fitted.given(city="city 3")["code"].probs()
    assert again.sample(20, seed=3).equals(fitted.sample(20, seed=3))


def test_parts_that_have_left_out_a_fold_keep_to_them(fitted: ao.TableModel, frame: pd.DataFrame) -> None:
    assert folds(fitted.core) == 2
    views = [ao.TableModel(leave_out(fitted.core, fold), fitted.card) for fold in range(2)]
    for view in views:
        assert view.given(city="city 3")["code"].probs()["c3"] > 0.99
    found = fitted.given(country="land 1")["price"].mean()
    each = [float(view.given(country="land 1")["price"].mean()) for view in views]
    assert each[0] != each[1]
    assert found.doubt == pytest.approx(jackknife(each), rel=1e-6)

    rows = frame.head(60).copy()
    rows.loc[7, "code"] = "c0" if rows.loc[7, "code"] != "c0" else "c1"
    surprise = fitted.surprise(rows)
    own = folds_of(fitted.core.encoding, rows, 2)
    for fold, view in enumerate(views):
        assert 0 < (own == fold).sum() < len(rows)
        pd.testing.assert_frame_equal(surprise[own == fold], view.surprise(rows[own == fold]), rtol=1e-4, atol=1e-5)
    first = fitted.anomalies(rows, top=1)[0]
    assert (first.row, first.column) == (7, "code")


def test_the_most_probable_completion_goes_together(
    fitted: ao.TableModel, frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    best = fitted.most_probable({"price": 3.0}, columns=["city", "code", "country"])
    assert best.exact and tuple(best.row[name] for name in ("city", "code")) in seen(frame, "city", "code")
    assert fitted.given(price=3.0).log_prob(best.row, orders=1) == pytest.approx(best.log_prob, abs=1e-3)
    fitted.save(tmp_path / "model.anyorder")
    arguments = ("ask", str(tmp_path / "model.anyorder"), "city, code, country | price=3", "--most-probable", "--json")
    assert json.loads(run(capsys, *arguments).out)["row"] == best.row
    assert "--most-probable" in refused(capsys, *arguments[:2], "city=city 1", "--most-probable")


def test_they_can_be_switched_off(frame: pd.DataFrame) -> None:
    model = ao.fit(frame, engine="neural", config={**BRIEF, "dependencies": False}, seed=0)
    assert "dependencies" not in model.card
    with pytest.raises(ao.UserError, match="dependencies"):
        ao.fit(frame, config={"dependencies": "no"})
