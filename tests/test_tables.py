"""From a messy table to any conditional answer, in the units of the data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import anyorder as ao

QUICK = {
    "training": {"steps": 60, "batch": 64, "validation_queries": 100},
    "network": {"name": "residual_mlp", "width": 32, "blocks": 1},
}


def messy(rows: int = 240, seed: int = 0) -> pd.DataFrame:
    """Every kind of column, dependent, with holes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    frame = pd.DataFrame(
        {
            "size": np.exp(0.5 * x + 5),
            "rooms": np.clip(np.round(30 + 8 * x + 4 * rng.normal(size=rows)), 1, 90).astype(int),
            "stars": rng.choice([0.0, 0.5, 1.0], rows),
            "river": np.where(x + rng.normal(size=rows) > 0, "yes", "no"),
            "sold": rng.random(rows) < 0.3,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, rows), unit="D"),
            "clock": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.random(rows) * 30, unit="D"),
        },
        index=pd.Index(np.arange(rows) * 10, name="id"),
    )
    for place, name in enumerate(("size", "stars", "river", "day")):
        frame.loc[frame.index[rng.random(rows) < 0.1 + 0.02 * place], name] = None
    return frame


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return messy()


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> ao.TableModel:
    return ao.fit(frame, seed=0, config=QUICK)


def test_kinds(model: ao.TableModel) -> None:
    kinds = {variable.name: str(variable.kind) for variable in model.schema.variables}
    assert kinds == {
        "size": "continuous",
        "rooms": "integer",
        "stars": "atoms",
        "river": "categorical",
        "sold": "boolean",
        "day": "datetime",
        "clock": "datetime",
    }


def test_one_number_a_row(model: ao.TableModel, frame: pd.DataFrame) -> None:
    scores = model.log_prob(frame)
    assert scores.index.equals(frame.index) and np.isfinite(scores).all()


def test_conditional_and_marginal_add_up(model: ao.TableModel, frame: pd.DataFrame) -> None:
    # The protocol answers columns in order, so p(first two) p(rest | first two) walks the same chain as p(all).
    whole = frame.dropna()
    first = whole[["size", "rooms"]]
    split = model.log_prob(first) + model.log_prob(whole, given=["size", "rooms"])
    np.testing.assert_allclose(split, model.log_prob(whole), atol=1e-3)


def test_given_as_a_frame_of_booleans(model: ao.TableModel, frame: pd.DataFrame) -> None:
    known = pd.DataFrame(False, index=frame.index, columns=frame.columns)
    known[["size", "river"]] = True
    by_mask = model.log_prob(frame, given=known)
    np.testing.assert_array_equal(by_mask, model.log_prob(frame, given=["size", "river"]))


def test_missing_cells_are_marginalised_out(model: ao.TableModel, frame: pd.DataFrame) -> None:
    row = frame.dropna().head(1)
    alone = row.copy()
    alone[["stars", "river", "day"]] = None
    left = row.drop(columns=["stars", "river", "day"])
    np.testing.assert_allclose(model.log_prob(alone), model.log_prob(left))


def test_density_integrates_to_one_in_the_units_of_the_data(model: ao.TableModel) -> None:
    answer = model.given(river="yes", rooms=21)["size"]
    low, high = answer.quantile([1e-9, 1 - 1e-9])
    grid = np.linspace(low, high, 200_001)
    assert np.trapezoid(answer.pdf(grid), grid) == pytest.approx(1.0, abs=1e-3)
    assert np.trapezoid(answer.pdf(grid) * grid, grid) == pytest.approx(answer.mean(), rel=1e-3)
    second = np.trapezoid(answer.pdf(grid) * (grid - answer.mean()) ** 2, grid)
    assert second**0.5 == pytest.approx(answer.std(), rel=1e-2)
    density = answer.pdf(grid)
    entropy = -np.trapezoid(density * np.log(np.maximum(density, 1e-300)), grid)
    assert entropy == pytest.approx(answer.entropy(), abs=1e-2)


def test_whole_numbers_sum_to_one(model: ao.TableModel) -> None:
    answer = model.given(size=150.0)["rooms"]
    numbers = np.arange(-400, 800)
    assert answer.pdf(numbers).sum() == pytest.approx(1.0, abs=1e-4)
    assert (answer.pdf(numbers) * numbers).sum() == pytest.approx(answer.mean(), abs=0.5)


def test_levels_sum_to_one(model: ao.TableModel) -> None:
    for name in ("stars", "river", "sold"):
        assert sum(model.given(size=150.0)[name].probs().values()) == pytest.approx(1.0, abs=1e-5)
    assert model["river"].probs().keys() == {"no", "yes"}


def test_log_prob_of_a_conditional_is_the_answers_density(model: ao.TableModel) -> None:
    conditional = model.given(river="no", stars=0.5)
    assert conditional.log_prob(size=120.0) == pytest.approx(conditional["size"].log_prob(120.0), abs=1e-6)
    assert conditional.log_prob(sold=True) == pytest.approx(np.log(conditional["sold"].probs()[True]), abs=1e-6)


def test_order_average_is_the_log_of_the_mean_probability(model: ao.TableModel) -> None:
    spread = model.given(river="no").order_spread(size=120.0, rooms=28, stars=1.0, orders=6)
    assert len(set(spread.log_probs)) > 1
    assert spread.average == pytest.approx(np.log(np.mean(np.exp(spread.log_probs))))
    again = model.given(river="no").log_prob(size=120.0, rooms=28, stars=1.0, orders=6)
    assert again == pytest.approx(spread.average)


def test_samples_are_full_rows_of_the_right_types(model: ao.TableModel, frame: pd.DataFrame) -> None:
    rows = model.given(river="yes", rooms=21).sample(50, seed=1)
    assert list(rows.columns) == list(frame.columns)
    assert (rows["river"] == "yes").all() and (rows["rooms"] == 21).all()
    assert not rows.isna().any().any()
    assert set(rows["stars"]) <= {0.0, 0.5, 1.0} and rows["sold"].dtype == bool
    assert (rows["day"].dt.normalize() == rows["day"]).all()
    pd.testing.assert_frame_equal(rows, model.given(river="yes", rooms=21).sample(50, seed=1))
    assert not rows.equals(model.given(river="yes", rooms=21).sample(50, seed=2))


def test_fill_keeps_what_is_known(model: ao.TableModel, frame: pd.DataFrame) -> None:
    for filled in (model.fill(frame), model.fill(frame, draws=2, seed=3)[1]):
        assert filled.index.equals(frame.index) and list(filled.columns) == list(frame.columns)
        assert not filled.isna().any().any()
        for name in frame.columns:
            known = frame[name].notna()
            assert (filled.loc[known, name] == frame.loc[known, name]).all()
            assert filled[name].dtype == frame[name].dtype, name


def test_draws_are_coherent_and_differ(model: ao.TableModel, frame: pd.DataFrame) -> None:
    first, second = model.fill(frame, draws=2, seed=0)
    hole = frame["size"].isna()
    assert (first.loc[hole, "size"] != second.loc[hole, "size"]).any()
    again = model.fill(frame, draws=2, seed=0)
    pd.testing.assert_frame_equal(first, again[0])


def test_polars_in_polars_out(model: ao.TableModel, frame: pd.DataFrame) -> None:
    table = pl.DataFrame(
        {name: frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in ("size", "river")}
    )
    filled = model.fill(table)
    assert isinstance(filled, pl.DataFrame) and filled["size"].null_count() == 0
    assert isinstance(model.log_prob(table), pl.Series)


def test_answers_survive_a_file(model: ao.TableModel, frame: pd.DataFrame, tmp_path: Path) -> None:
    model.save(tmp_path / "m.anyorder")
    again = ao.load(tmp_path / "m.anyorder")
    pd.testing.assert_series_equal(model.log_prob(frame), again.log_prob(frame), check_exact=True)
    pd.testing.assert_frame_equal(model.sample(20, seed=4), again.sample(20, seed=4), check_exact=True)
    assert json.loads(json.dumps(again.card)) == json.loads(json.dumps(model.card))


def test_the_card_repeats_the_run(model: ao.TableModel, frame: pd.DataFrame) -> None:
    arguments = model.card["arguments"]
    again = ao.fit(frame, **arguments, config=model.card["config"])
    pd.testing.assert_series_equal(model.log_prob(frame), again.log_prob(frame), check_exact=True)
    assert again.card["data"]["fingerprint"] == model.card["data"]["fingerprint"]


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


def test_killed_race_resumes_to_the_same_model(frame: pd.DataFrame, tmp_path: Path) -> None:
    whole = ao.fit(frame, seed=0, config=QUICK)
    ao.fit(frame, seed=0, config=QUICK, checkpoint=tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"standard.checkpoint", "normal_scores.checkpoint"}
    # As if the run had been killed while the second candidate was at work.
    (tmp_path / "run" / "normal_scores.checkpoint").unlink()
    again = ao.fit(frame, seed=0, config=QUICK, checkpoint=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(again.log_prob(frame), whole.log_prob(frame))


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda m, f: m.given(roms=3), "did you mean 'rooms'"),
        (lambda m, f: m.given(river="yess"), "did you mean 'yes'"),
        (lambda m, f: m.given(size="big"), "size"),
        (lambda m, f: m.given(rooms=2.5), "whole"),
        (lambda m, f: m.given(river="yes")["river"], "is given"),
        (lambda m, f: m.given(river="yes").asking("river"), "both asked and given"),
        (lambda m, f: m["river"].mean(), "no order"),
        (lambda m, f: m["size"].probs(), "no list of levels"),
        (lambda m, f: m["size"].quantile(1.5), "between 0 and 1"),
        (lambda m, f: m.given().log_prob(), "needs values"),
        (lambda m, f: m.log_prob(f.rename(columns={"size": "siz"})), "did you mean 'size'"),
        (lambda m, f: m.log_prob(f, given=["siz"]), "did you mean 'size'"),
        (lambda m, f: m.log_prob(f, given=np.zeros((2, 2), bool)), "shape"),
        (lambda m, f: m.log_prob(f, orders=0), "orders"),
        (lambda m, f: m.fill(f, draws=0), "draws"),
        (lambda m, f: m.sample(-1), "cannot draw"),
        (lambda m, f: ao.fit(f.head(3)), "at least 4 rows"),
        (lambda m, f: ao.fit(f, config={"netwrk": {}}), "did you mean 'network'"),
        (lambda m, f: ao.fit(f, config={"training": {"stepz": 3}}), "did you mean 'steps'"),
        (lambda m, f: ao.fit(f, config={"network": {"name": "residual_mpl"}}), "did you mean 'residual_mlp'"),
        (lambda m, f: ao.fit(f, config={"network": {"name": "residual_mlp", "widht": 3}}), "did you mean 'width'"),
        (lambda m, f: ao.fit(f, config={"training": {"steps": "many"}}), "must be a number"),
        (lambda m, f: ao.fit(f, minutes=-1), "minutes"),
        (lambda m, f: ao.fit(f, config={"network": {"name": "gaussian"}}), "closed-form"),
        (lambda m, f: ao.fit(f, config={"masking": {"name": "targets", "targets": ["pric"]}}), "valid names"),
        (lambda m, f: ao.fit(f, device="gpu9"), "device"),
    ],
)
def test_mistakes_are_explained(model: ao.TableModel, frame: pd.DataFrame, action, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ao.UserError, match=words):
        action(model, frame)
