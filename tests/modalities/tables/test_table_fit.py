"""Fits of tables: any network, masking and scale, resumed to the same model, and repeated from the card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.errors import UserError

from messy_tables import QUICK, messy


def test_the_card_repeats_the_run(model: ao.TableModel, frame: pd.DataFrame) -> None:
    arguments = model.card["arguments"]
    again = ao.fit(frame, **arguments, config=model.card["config"])
    pd.testing.assert_series_equal(model.log_prob(frame), again.log_prob(frame), check_exact=True)
    assert again.card["data"]["fingerprint"] == model.card["data"]["fingerprint"]


def test_a_file_is_fitted_as_its_frame(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60).round(3), "level": rng.choice(["a", "b"], 60)})
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";")
    brief = {"engine": "neural", "training": {"steps": 5}}
    models = [ao.fit(given, seed=0, config=brief) for given in (frame, tmp_path / "t.csv", str(tmp_path / "t.csv"))]
    assert len({model.card["data"]["fingerprint"] for model in models}) == 1
    assert models[0].log_prob(frame).tolist() == models[1].log_prob(str(tmp_path / "t.csv")).tolist()


def test_no_unknown_value_leaks_into_a_fit() -> None:
    frame = messy(60)
    changed = frame.copy()
    changed["note"] = np.nan
    with pytest.warns(UserWarning, match="note"):
        with_empty = ao.fit(changed, seed=0, config=QUICK)
    plain = ao.fit(frame, seed=0, config=QUICK)
    np.testing.assert_array_equal(plain.log_prob(frame), with_empty.log_prob(frame))


@pytest.mark.parametrize("network", ["causal_transformer", "bidirectional_transformer"])
def test_other_networks_fit_tables_too(frame: pd.DataFrame, network: str) -> None:
    config = {**QUICK, "network": {"name": network, "width": 16, "blocks": 1, "heads": 2}}
    model = ao.fit(frame, seed=0, config=config)
    assert np.isfinite(model.log_prob(frame)).all()
    assert not model.fill(frame.head(20)).isna().any().any()
    assert len(model.given(river="yes").sample(5)) == 5


@pytest.mark.parametrize(
    "masking",
    [
        {"name": "targets", "targets": ["size", "sold"]},
        {"name": "observed"},
        {"name": "mixture", "maskings": [{"name": "observed"}, {"name": "cardinality"}], "weights": [1, 2]},
    ],
    ids=lambda masking: masking["name"],
)
def test_maskings_speak_of_columns(frame: pd.DataFrame, masking: dict[str, object]) -> None:
    model = ao.fit(frame, seed=0, config={**QUICK, "masking": masking, "encoding": "standard"})
    assert np.isfinite(model.log_prob(frame)).all()


def test_far_outliers_do_not_ruin_the_fit() -> None:
    rng = np.random.default_rng(0)
    clean = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    # Without trees, which would make up for a network that an outlier has ruined.
    config = {**QUICK, "engine": "neural", "encoding": "standard", "training": {"steps": 150, "batch": 64}}
    best = ao.fit(clean, seed=0, config=config).log_prob(clean).mean()
    for row in range(0, 300, 60):
        spoilt = clean.copy()
        spoilt.loc[row, "a"] = 1e25
        model = ao.fit(spoilt, seed=0, config={**config, "encoding": "normal_scores"})
        assert model.card["training"]["best_step"] > 0
        assert model.log_prob(clean.drop(index=row)).mean() > best - 0.5


def test_a_small_spread_on_a_large_offset_survives() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    frame = pd.DataFrame(
        {"x": 1e9 + x, "y": x + 0.1 * rng.normal(size=200), "k": 1_700_000_000 + rng.integers(0, 999, 200)}
    )
    model = ao.fit(frame, seed=0, config={**QUICK, "training": {"steps": 100, "batch": 64}})
    holes = frame.copy()
    holes.loc[:20, "x"] = np.nan
    assert np.abs(model.fill(holes)["x"] - 1e9).max() < 5
    assert abs(model["x"].mean() - 1e9) < 1 and 0.5 < model["x"].std() < 2
    assert abs(model["k"].mean() - 1_700_000_500) < 100


def test_a_hundred_columns_are_fitted_scored_and_filled() -> None:
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(60, 100)), columns=[f"c{i}" for i in range(100)])
    wide = wide.mask(rng.random(wide.shape) < 0.1)
    trees = {"members": 1, "shown": 300, "rounds": 3, "bins": 4}
    quick = {"training": {"steps": 3, "batch": 16, "validation_queries": 20}, "trees": trees, "folds": 1}
    model = ao.fit(wide, seed=0, config=quick)
    assert np.isfinite(model.log_prob(wide.head(3))).all()
    assert not model.fill(wide.head(5)).isna().any().any()


def test_curve_of_a_resumed_run_has_every_step_once(frame: pd.DataFrame, tmp_path: Path) -> None:
    log = tmp_path / "curve.jsonl"
    for resume in (False, True):
        ao.fit(frame, seed=0, config=QUICK, checkpoint=tmp_path / "run", log=log, resume=resume)
        points = [(point["run"], point["step"]) for point in map(json.loads, log.read_text().splitlines())]
        assert len(points) == len(set(points)) > 0


@pytest.mark.parametrize("trial", [True, False])
def test_killed_race_resumes_to_the_same_model(frame: pd.DataFrame, tmp_path: Path, trial: bool) -> None:
    whole = ao.fit(frame, seed=0, config=QUICK)
    ao.fit(frame, seed=0, config=QUICK, checkpoint=tmp_path / "run")
    chosen = whole.card["chosen"]
    names = {"encodings.json", "standard.checkpoint", "normal_scores.checkpoint"}
    names |= {f"{chosen}-{fold}.checkpoint" for fold in range(1, QUICK["folds"])}
    assert {path.name for path in (tmp_path / "run").iterdir()} == names
    # As if the run had been killed while the second candidate was at work, or the network of the last fold.
    lost = "standard.checkpoint" if trial else f"{chosen}-1.checkpoint"
    (tmp_path / "run" / lost).unlink()
    again = ao.fit(frame, seed=0, config=QUICK, checkpoint=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(again.log_prob(frame), whole.log_prob(frame))


@pytest.mark.parametrize("encoding", ["normal_scores", "standard"])
@pytest.mark.parametrize("scale", [1e-200, 1e-140, 1e-30, 1e-12, 1e-10, 1e12, 1e98])
def test_any_scale(scale: float, encoding: str) -> None:
    """A change of units changes the units of the answers and nothing else: but for the folds, which go by content."""
    rng = np.random.default_rng(0)
    values = rng.normal(3.0, 1.0, 80)
    frame = pd.DataFrame({"x": values * scale, "y": values + rng.normal(size=80)})
    config = {**QUICK, "training": {"steps": 5}, "encoding": encoding, "folds": 1}
    if scale < 1e-150:
        with pytest.raises(ao.UserError, match=r"column 'x' varies by less than 1e-150.*another unit"):
            ao.fit(frame, seed=0, config=config)
        return
    model = ao.fit(frame, seed=0, config=config)
    plain = ao.fit(frame.assign(x=values), seed=0, config=config)
    answer, expected = model.given(y=3.0)["x"], plain.given(y=3.0)["x"]
    assert answer.mean() / scale == pytest.approx(expected.mean(), rel=1e-3)
    assert answer.std() / scale == pytest.approx(expected.std(), rel=1e-3)
    assert answer.log_prob(3 * scale) + np.log(scale) == pytest.approx(expected.log_prob(3.0), abs=1e-3)
    holes = frame.copy()
    holes.loc[7, "x"] = np.nan
    filled = model.fill(holes)
    assert filled["x"].drop(index=7).equals(frame["x"].drop(index=7))
    assert 0 < filled.loc[7, "x"] / scale < 6


@pytest.mark.parametrize("zone", ["Z", "+02:00", "-0330", "+00:00"])
def test_zoned_texts_keep_their_spelling(zone: str) -> None:
    rng = np.random.default_rng(0)
    moments = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**6, 40), unit="s")
    frame = pd.DataFrame({"t": moments.strftime(f"%Y-%m-%dT%H:%M:%S{zone}"), "x": rng.normal(size=40)})
    model = ao.fit(frame, seed=0, config={**QUICK, "training": {"steps": 2}})
    drawn = model.sample(3)["t"]
    assert drawn.str.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d" + zone.replace("+", r"\+")).all()
    middle = pd.to_datetime(model.sample(60)["t"], utc=True).median()
    truth = pd.to_datetime(frame["t"], utc=True)
    assert truth.min() < middle < truth.max()


def test_an_encoding_that_would_eat_up_the_budget_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc"))
    config = {"training": {"minutes": 1.0, "steps": 4}, "network": {"name": "residual_mlp", "width": 8, "blocks": 1}}
    tried = ao.fit(frame, engine="neural", config=config).card["scores"]["encodings"]
    assert set(tried) == {"standard", "normal_scores"}
    monkeypatch.setattr("anyorder.modalities.tables.race._time_for_another", lambda job, kept: False)
    model = ao.fit(frame, engine="neural", config=config)
    assert set(model.card["scores"]["encodings"]) == {"normal_scores"}
    assert model.card["training"]["steps"] == 4  # the whole budget is the one candidate's


@pytest.mark.parametrize("first_late", [True, False])
def test_a_resumed_run_tries_the_encodings_of_the_first(
    first_late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=list("abc"))
    training = {"minutes": 60.0, "steps": 4, "validate_every": 1}
    config = {"training": training, "network": {"name": "residual_mlp", "width": 8, "blocks": 1}}

    def fit(late: bool, **given: Any) -> set[str]:
        monkeypatch.setattr("anyorder.modalities.tables.race._time_for_another", lambda job, kept: not late)
        model = ao.fit(frame, engine="neural", config=config, checkpoint=tmp_path, **given)
        return set(model.card["scores"]["encodings"])

    tried = fit(first_late)
    assert len(tried) == (1 if first_late else 2)
    (tmp_path / "standard.checkpoint").unlink(missing_ok=True)  # killed before it came to this one
    assert fit(not first_late, resume=True) == tried
    assert len(fit(not first_late)) == (2 if first_late else 1)  # afresh, it is chosen afresh


@pytest.mark.parametrize("text", ["no json", '["odd"]', "[]", '["standard", "odd"]', "3"])
def test_a_choice_of_encodings_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=list("abc"))
    (tmp_path / "encodings.json").write_text(text)
    with pytest.raises(UserError, match=r"encodings\.json"):
        ao.fit(frame, engine="neural", minutes=0.01, checkpoint=tmp_path, resume=True)


@pytest.mark.parametrize(
    "config, problem",
    [
        ({"network": {"name": "residual_mlp", "width": 10**7}}, "too large to be trained"),
        ({"network": {"name": "residual_mlp", "width": 10**30}}, "too large to be trained"),
        ({"training": {"validation_queries": 10**9}}, "validation_queries must be .* at most"),
    ],
)
def test_an_absurd_size_is_refused_before_memory_is_taken(config: dict[str, Any], problem: str) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=list("abc"))
    with pytest.raises(UserError, match=problem):
        ao.fit(frame, engine="neural", minutes=0.01, config=config)


def test_a_wide_table_in_little_time_does_without_trees() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 60)), columns=[f"c{i}" for i in range(60)])
    config = {"training": {"steps": 2, "validation_queries": 4}, "trees": {"members": 1, "rounds": 1}}
    assert "trees" not in ao.fit(frame, minutes=0.04, config=config).card["scores"].get("members", {})
    few = frame[["c0", "c1", "c2"]]
    assert "trees" in ao.fit(few, minutes=0.04, config=config).card["scores"]["members"]


def test_trees_are_not_grown_for_more_columns_than_a_file_can_describe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyorder.modalities.tables.engines.MOST_COLUMNS", 2)
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    config = {"training": {"minutes": None, "steps": 2}}
    assert "trees" not in ao.fit(table, config=config).card["scores"]["members"]
    with pytest.raises(UserError, match="trees can handle at most 2 columns, but the table has 3"):
        ao.fit(table, engine="trees", config=config)
