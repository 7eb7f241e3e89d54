"""A table in which columns fix others, from fit to file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anyorder as ao

from messy_tables import QUICK


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
    return ao.fit(frame, engine=request.param, config=QUICK, seed=0)


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
        assert fitted.given(city=city)["code"].probs()[code] > 0.995
        assert fitted.given(code=code, price=3.0)["city"].probs()[city] > 0.995
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


def test_they_can_be_switched_off(frame: pd.DataFrame) -> None:
    model = ao.fit(frame, engine="neural", config={**QUICK, "dependencies": False}, seed=0)
    assert "dependencies" not in model.card
    with pytest.raises(ao.UserError, match="dependencies"):
        ao.fit(frame, config={"dependencies": "no"})
