"""A zero-inflated table end to end: fitted, asked, filled and saved."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.errors import UserError
from anyorder.questions.facts import answer_facts


@pytest.fixture(scope="module")
def weather() -> tuple[pd.DataFrame, ao.TableModel]:
    rng = np.random.default_rng(1)
    cloud = rng.uniform(0, 1, 600)
    dry = rng.random(600) > cloud  # P(rain = 0 | cloud) = 1 - cloud
    fallen = np.where(dry, 0.0, rng.lognormal(1.0, 0.5, 600))
    grade = pd.Categorical.from_codes((4 * cloud).astype(int), ["clear", "fair", "grey", "dark"], ordered=True)
    frame = pd.DataFrame({"cloud": cloud, "rain": fallen, "grade": grade, "visits": rng.poisson(9, 600) * dry})
    network = {"name": "residual_mlp", "width": 48, "blocks": 1, "dropout": 0.0}
    config = {
        "training": {"steps": 300, "minutes": 1.0},
        "encoding": "normal_scores",
        "network": network,
        "engine": "neural",
    }
    return frame, ao.fit(frame, config=config, bounds={"cloud": (0, 1)}, seed=0)


def test_a_zero_inflated_table_end_to_end(weather: tuple[pd.DataFrame, ao.TableModel]) -> None:
    _, model = weather
    assert [str(variable.kind) for variable in model.schema.variables] == ["continuous", "spiked", "ordinal", "integer"]
    for cloud in (0.15, 0.85):
        answer = model.given(cloud=cloud)["rain"]
        zero = float(answer.probs()[0.0])
        assert zero == pytest.approx(1 - cloud, abs=0.2)
        assert float(answer.pdf(0.0)) == pytest.approx(zero)
        assert float(answer.cdf(0.0)) == pytest.approx(zero, abs=1e-5)  # nothing lies below
        grid = np.linspace(1e-6, 80, 40_001)
        continuum = np.trapezoid(answer.pdf(list(grid)), grid)
        assert continuum + zero == pytest.approx(1, abs=2e-3)
        drawn = answer.sample(2000, seed=0)
        assert drawn.min() >= 0 and (drawn == 0).mean() == pytest.approx(zero, abs=0.04)
        mean = np.trapezoid(grid * answer.pdf(list(grid)), grid)
        assert float(answer.mean()) == pytest.approx(mean, rel=0.02, abs=0.02)
        assert math.isfinite(float(answer.entropy()))
        assert answer.mode() == 0.0


def test_declared_and_inferred_bounds(weather: tuple[pd.DataFrame, ao.TableModel]) -> None:
    _, model = weather
    with pytest.raises(UserError, match=r"cloud.*outside its bounds 0\.\.1"):
        model.given(cloud=1.5)
    with pytest.raises(UserError, match="cloud"):
        model.given(rain=0.0)["cloud"].log_prob(-0.1)
    # Inferred from the data: another value is improbable beyond words, but no mistake.
    assert -60 < float(model.given(cloud=0.5)["rain"].log_prob(-1.0)) < -25
    assert float(model.given(cloud=0.5)["rain"].cdf(-1e-9)) == 0.0
    assert model.given(rain=-1.0)["grade"].probs()
    assert -60 < float(model.given(cloud=0.5)["visits"].log_prob(-1)) < -25
    assert model.given(rain=0.0).sample(300, seed=0)["cloud"].between(0, 1).all()


def test_ordinal_answers(weather: tuple[pd.DataFrame, ao.TableModel]) -> None:
    _, model = weather
    answer = model.given(cloud=0.6)["grade"]
    assert sum(answer.probs().values()) == pytest.approx(1, abs=1e-5)
    assert answer.mode() == "grey" == answer.median()
    assert float(answer.cdf("dark")) == pytest.approx(1)
    assert float(answer.cdf("fair")) == pytest.approx(answer.probs()["clear"] + answer.probs()["fair"], abs=1e-6)
    with pytest.raises(UserError, match="no distance"):
        answer.mean()


def test_fills_files_and_facts(weather: tuple[pd.DataFrame, ao.TableModel], tmp_path: object) -> None:
    frame, model = weather
    holes = frame.head(60).copy()
    holes["rain"] = holes["rain"].mask(np.arange(60) % 2 == 0)
    holes.loc[holes.index[::3], "grade"] = np.nan
    point, (drawn,) = model.fill(holes), model.fill(holes, draws=1)
    assert point["rain"].min() >= 0 and drawn["rain"].min() >= 0
    assert (drawn["rain"][::2] == 0).any() and not drawn.isna().any().any()
    assert drawn["grade"].dtype == frame["grade"].dtype
    assert np.isfinite(model.log_prob(frame.head(20))).all()
    model.save(f"{tmp_path}/m.anyorder")
    again = ao.load(f"{tmp_path}/m.anyorder")
    assert np.array_equal(again.log_prob(frame.head(20)), model.log_prob(frame.head(20)))
    for name in model.schema.names:
        facts = answer_facts(model.given()[name])
        assert "quantiles" in facts and ("mean" in facts) == (name != "grade")


def test_a_guessed_bound_does_not_rule_out_rows_in_silence(weather: tuple[pd.DataFrame, ao.TableModel]) -> None:
    frame, model = weather
    odd = frame.head(3).copy()
    odd.loc[odd.index[1], "rain"] = -0.5
    with pytest.warns(UserWarning, match="'rain': 1 values, the first in row 1"):
        nats = model.log_prob(odd)
    usual = np.asarray(model.log_prob(frame.head(3)))
    assert (np.asarray(nats) < usual - 20).tolist() == [False, True, False]
    assert np.isfinite(nats).all()
