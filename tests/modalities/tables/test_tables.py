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
    "trees": {"members": 1, "shown": 1000, "rounds": 20},
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


def test_far_outliers_do_not_ruin_the_fit() -> None:
    rng = np.random.default_rng(0)
    clean = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    config = {**QUICK, "encoding": "standard", "training": {"steps": 150, "batch": 64}}
    best = ao.fit(clean, seed=0, config=config).log_prob(clean).mean()
    for row in range(0, 300, 60):
        spoilt = clean.copy()
        spoilt.loc[row, "a"] = 1e25
        model = ao.fit(spoilt, seed=0, config={**config, "encoding": "normal_scores"})
        assert model.card["training"]["best_step"] > 0
        assert model.log_prob(clean.drop(index=row)).mean() > best - 0.5


def test_absurd_evidence_gives_finite_answers(model: ao.TableModel) -> None:
    conditional = model.given(size=1e60)
    assert np.isfinite(conditional["rooms"].mean())
    assert np.isfinite(conditional.log_prob(river="yes"))


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


@pytest.mark.parametrize("network", ["residual_mlp", "causal_transformer"])
def test_rows_of_which_nothing_or_everything_is_known(frame: pd.DataFrame, network: str) -> None:
    size = {"width": 16, "blocks": 1}
    model = ao.fit(frame, seed=0, config={"training": {"steps": 5}, "network": {"name": network, **size}})
    whole = frame.dropna()
    pd.testing.assert_frame_equal(model.fill(whole, draws=1)[0], whole)
    row = whole.iloc[0].to_dict()
    assert len(model.given(row).sample(2)) == 2
    empty = pd.DataFrame(index=range(3), columns=frame.columns, dtype=object)
    assert (model.log_prob(empty) == 0).all()


def test_a_hundred_columns_within_budget_and_memory() -> None:
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(60, 100)), columns=[f"c{i}" for i in range(100)])
    wide = wide.mask(rng.random(wide.shape) < 0.1)
    quick = {"training": {"steps": 3, "batch": 16, "validation_queries": 20}, "trees": {"members": 1, "shown": 300}}
    model = ao.fit(wide, seed=0, config=quick)
    assert np.isfinite(model.log_prob(wide.head(3))).all()
    assert not model.fill(wide.head(5)).isna().any().any()


def test_curve_of_a_resumed_run_has_every_step_once(frame: pd.DataFrame, tmp_path: Path) -> None:
    log = tmp_path / "curve.jsonl"
    for resume in (False, True):
        ao.fit(frame, seed=0, config=QUICK, checkpoint=tmp_path / "run", log=log, resume=resume)
        points = [(point["run"], point["step"]) for point in map(json.loads, log.read_text().splitlines())]
        assert len(points) == len(set(points)) > 0


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
        (lambda m, f: m.given().log_prob(rooms=2.5), "whole"),
        (lambda m, f: m.log_prob(f.assign(rooms=2.5)), "whole"),
        (lambda m, f: m.given(rooms="many"), "expected a number"),
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
        (lambda m, f: ao.fit(f, config={"network": {"name": "gaussian"}}), "is not trained"),
        (lambda m, f: ao.fit(f, config={"masking": {"name": "targets", "targets": ["pric"]}}), "valid names"),
        (lambda m, f: ao.fit(f, device="gpu9"), "device"),
        (lambda m, f: ao.fit(f, seed=-1), "seed"),
        (lambda m, f: ao.fit(f, seed="a"), "seed"),
        (lambda m, f: ao.fit(f, resume=True), "resume needs checkpoint"),
        (lambda m, f: ao.fit(f, config="run.toml"), "config must be a mapping"),
        (lambda m, f: ao.fit(f, config={"network": {"name": "residual_mlp", "width": "x"}}), "cannot be made"),
        (lambda m, f: ao.fit(f, config={"network": {"name": "residual_mlp", "width": -1}}), "cannot be made"),
        (lambda m, f: ao.fit(f, config={"network": {"name": "causal_transformer", "width": 50}}), "multiple"),
        (lambda m, f: ao.fit(f, config={"masking": {"name": "bernoulli"}}), "cannot be made"),
        (lambda m, f: ao.fit(f, config={"objective": {"name": "parallel", "foo": 1}}), "no option 'foo'"),
        (lambda m, f: ao.fit(f, config={"objective": {"name": "chain", "reweight": True}}), "leave reweight out"),
        (lambda m, f: ao.fit(f, config={"training": {"patience": -1}}), "patience"),
        (lambda m, f: m.log_prob(f, given=pd.DataFrame({"zz": [True] * len(f)})), "zz"),
        (lambda m, f: m["rooms"].quantile([0, 0.5]), "no least"),
    ],
)
def test_mistakes_are_explained(model: ao.TableModel, frame: pd.DataFrame, action, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ao.UserError, match=words):
        action(model, frame)


def typed(rows: int = 60) -> pd.DataFrame:
    """Narrow dtypes, so that a later frame can differ from each of them."""
    rng = np.random.default_rng(1)
    start = pd.Timestamp("2024-01-01")
    return pd.DataFrame(
        {
            "narrow": rng.normal(size=rows).astype(np.float32),
            "small": rng.integers(-100, 100, rows).astype(np.int8),
            "second": (start + pd.to_timedelta(rng.integers(0, 10**7, rows), unit="s")).astype("datetime64[s]"),
            "day": start + pd.to_timedelta(rng.integers(0, 300, rows), unit="D"),
            "price": rng.normal(20, 5, rows),
            "digits": [f"{number}" for number in rng.integers(0, 99999, rows)],
            "sold": rng.random(rows) < 0.4,
            "stars": rng.choice([0.0, 0.5, 1.0], rows),
            "grade": pd.Categorical(rng.choice(["lo", "hi"], rows)),
        }
    )


@pytest.fixture(scope="module")
def narrow_model() -> ao.TableModel:
    return ao.fit(typed(), seed=0, config={**QUICK, "training": {**QUICK["training"], "steps": 10}})


CELLS = {
    "float64": ("narrow", pd.Series([0.1, 1 / 3, np.nan, -2.5e-7]), "float64"),
    "Float64": ("narrow", pd.Series([0.1, 1 / 3, None, -2.5e-7], dtype="Float64"), "Float64"),
    "number as text": ("narrow", pd.Series(["0.10", "1e0", None, "-2.5e-7"], dtype="str"), "str"),
    "int64": ("small", pd.Series([300, 5, None, -7], dtype="Int64"), "Int64"),
    "float for int": ("small", pd.Series([300.0, 5, np.nan, -7]), "float64"),
    "microseconds": (
        "second",
        pd.Series(["2024-01-01T00:00:00.123456", "2024-02-01T01:01:01.5", None], dtype="datetime64[us]"),
        "datetime64[us]",
    ),
    "nanoseconds": (
        "second",
        pd.Series(["2024-01-01T00:00:00.123456789", None, "2024-03-01"], dtype="datetime64[ns]"),
        "datetime64[ns]",
    ),
    "text dates": ("day", pd.Series(["2024-01-05", None, "2024-03-01"], dtype="str"), "str"),
    "text times": ("second", pd.Series(["2024-01-05 12:00", None, "2024-03-01 01:30"], dtype="str"), "str"),
    "dates": ("day", pd.Series([pd.Timestamp("2024-01-05").date(), None], dtype=object), "object"),
    "whole for float": ("price", pd.Series([20, None, 2**40], dtype="Int64"), "Float64"),
    "too long for float": ("price", pd.Series([2**60 + 1, None], dtype="Int64"), "object"),
    "text": ("price", pd.Series(["20", "19.50", None], dtype="str"), "str"),
    "number for text": ("digits", pd.Series([123.0, np.nan, 77.0]), "float64"),
    "truth as text": ("sold", pd.Series(["yes", None, "no"], dtype="str"), "str"),
    "truth as number": ("sold", pd.Series([1, None, 1], dtype="Int8"), "Int8"),
    "atoms as text": ("stars", pd.Series(["0", "0.50", None, "1.0"], dtype="str"), "str"),
    "atoms as float32": ("stars", pd.Series([0, 0.5, np.nan], dtype="float32"), "float32"),
    "fewer categories": ("grade", pd.Series(["hi", None], dtype=pd.CategoricalDtype(["hi"])), "category"),
    "category as text": ("grade", pd.Series(["hi", None], dtype="str"), "str"),
    "nothing known": ("narrow", pd.Series([np.nan, np.nan]), "float64"),
    "nothing known, no dtype": ("grade", pd.Series([None, None], dtype=object), "category"),
}


@pytest.mark.parametrize("draws", [None, 2])
@pytest.mark.parametrize("case", CELLS)
def test_known_cells_come_back_as_they_were(narrow_model: ao.TableModel, case: str, draws: int | None) -> None:
    name, column, dtype = CELLS[case]
    filled = narrow_model.fill(pd.DataFrame({name: column}), draws=draws)
    found = (filled if draws is None else filled[0])[name]
    assert str(found.dtype) == dtype
    assert not found.isna().any()
    known = column.notna()
    if dtype != "category" or column.dtype == "category":
        assert [(type(a), a) for a in found[known].astype(object)] == [
            (type(b), b) for b in column[known].astype(object if dtype != "Float64" else "Float64").astype(object)
        ]
    # What was filled in can be read again as the same variable.
    assert np.isfinite(narrow_model.log_prob(pd.DataFrame({name: found.iloc[~known.to_numpy()]}))).all()


def test_text_is_filled_in_its_own_spelling(narrow_model: ao.TableModel) -> None:
    frame = pd.DataFrame(
        {
            "sold": pd.Series(["yes", "no", None], dtype="str"),
            "second": pd.Series(["2024-01-05 12:00", "2024-03-01 01:30", None], dtype="str"),
        }
    )
    filled = narrow_model.fill(frame)
    assert filled["sold"].iloc[2] in ("yes", "no")
    assert pd.Timestamp(filled["second"].iloc[2]).strftime("%Y-%m-%d %H:%M") == filled["second"].iloc[2]


@pytest.mark.parametrize("draws", [None, 1])
def test_one_unknown_cell_and_one_row(model: ao.TableModel, frame: pd.DataFrame, draws: int | None) -> None:
    whole = frame.dropna()
    for name in whole.columns:
        for part in (whole.iloc[:5], whole.iloc[:1]):
            holes = part.astype({name: object})
            holes.iloc[-1, holes.columns.get_loc(name)] = None
            filled = model.fill(holes, draws=draws)
            filled = filled if draws is None else filled[0]
            assert filled.notna().all(axis=None)
            others = [other for other in whole.columns if other != name]
            pd.testing.assert_frame_equal(filled[others], part[others])
            assert filled[name].tolist()[:-1] == part[name].tolist()[:-1]


def test_chunks_do_not_change_a_fill(
    model: ao.TableModel, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, scores = model.fill(frame), model.log_prob(frame)
    monkeypatch.setattr("anyorder.model.any_order.rows_at_once", lambda layout: 7)
    pd.testing.assert_frame_equal(model.fill(frame), whole, rtol=1e-4)
    np.testing.assert_allclose(model.log_prob(frame), scores, rtol=1e-4, atol=1e-4)
    assert model.fill(frame, draws=1)[0].notna().all(axis=None)


def test_column_labels_come_back() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=pd.Index([0, 1, 2], name="sensor"))
    model = ao.fit(frame, seed=0, config={**QUICK, "training": {"steps": 5}}, kinds={2: "continuous"}, drop=[1])
    frame.iloc[0, 0] = np.nan
    for filled in (model.fill(frame), model.fill(frame, draws=1)[0]):
        pd.testing.assert_index_equal(filled.columns, frame.columns)
        assert filled.columns.dtype == frame.columns.dtype
        assert (filled[1] == frame[1]).all()
    fewer = model.fill(frame[[2]])
    assert fewer.columns.tolist() == [2, "0"]
    assert fewer.columns.name == "sensor"


@pytest.mark.parametrize("encoding", ["normal_scores", "standard"])
@pytest.mark.parametrize("scale", [1e-200, 1e-140, 1e-30, 1e-12, 1e-10, 1e12, 1e98])
def test_any_scale(scale: float, encoding: str) -> None:
    """A change of units changes the units of the answers and nothing else."""
    rng = np.random.default_rng(0)
    values = rng.normal(3.0, 1.0, 80)
    frame = pd.DataFrame({"x": values * scale, "y": values + rng.normal(size=80)})
    config = {**QUICK, "training": {"steps": 5}, "encoding": encoding}
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


def test_extra_columns_pass_through(model: ao.TableModel, frame: pd.DataFrame) -> None:
    more = frame.assign(note=[f"n{i}" for i in range(len(frame))], extra=None)
    with pytest.warns(UserWarning, match="'note', 'extra'"):
        filled = model.fill(more)
    pd.testing.assert_frame_equal(filled[["note", "extra"]], more[["note", "extra"]])
    pd.testing.assert_frame_equal(filled[list(frame.columns)], model.fill(frame))
    with pytest.warns(UserWarning, match="'note'"):
        np.testing.assert_array_equal(model.log_prob(more), model.log_prob(frame))
    with pytest.raises(ao.UserError, match="no column 'roms'; did you mean 'rooms'"):
        model.log_prob(more.rename(columns={"rooms": "roms"}))


def test_unseen_values_as_unknown(model: ao.TableModel, frame: pd.DataFrame) -> None:
    strange, holes = frame.copy(), frame.copy()
    places = strange.index[[0, 3, 5]]
    strange.loc[places, "river"] = "maybe"
    strange.loc[places[:1], "stars"] = 0.75
    holes.loc[places, "river"] = None
    holes.loc[places[:1], "stars"] = np.nan
    with pytest.raises(ao.UserError, match=r"river.*row 0.*valid values: 'no', 'yes'.*--unseen missing"):
        model.fill(strange.assign(stars=1.0))
    with pytest.raises(ao.UserError, match=r"stars.*valid values: 0.0, 0.5, 1.0.*'continuous'.*unseen='missing'"):
        model.log_prob(strange)
    with pytest.warns(UserWarning, match="1 in 'stars', 3 in 'river'"):
        np.testing.assert_array_equal(model.log_prob(strange, unseen="missing"), model.log_prob(holes))
    with pytest.warns(UserWarning, match="3 in 'river'"):
        filled = model.fill(strange, unseen="missing")
    assert (filled.loc[places, "river"] == "maybe").all()
    assert filled.loc[places[0], "stars"] == 0.75
    rest = [name for name in frame.columns if name not in ("river", "stars")]
    pd.testing.assert_frame_equal(filled[rest], model.fill(holes)[rest])
    assert filled.notna().all(axis=None)
    with pytest.raises(ao.UserError, match="unseen='mising'; did you mean 'missing'"):
        model.fill(frame, unseen="mising")  # type: ignore[arg-type]


def test_advice_reads_in_python_and_on_the_command_line() -> None:
    frame = pd.DataFrame({"the name": [f"n{i}" for i in range(30)], "x": [1, 2, 3] * 10})
    with pytest.raises(ao.UserError, match=r"drop=\['the name'\] \(command line: --drop 'the name'\)"):
        ao.fit(frame)
    with pytest.raises(ao.UserError, match=r"kinds=\{'the name': 'categorical'\} \(command line: --kind 'the name=cat"):
        ao.fit(frame)
    model = ao.fit(frame[["x"]], config={**QUICK, "training": {"steps": 2}})
    with pytest.raises(ao.UserError, match=r"kinds=\{'x': 'integer'\} \(command line: --kind x=integer\)"):
        model.fill(pd.DataFrame({"x": [4]}))
    with pytest.raises(ao.UserError, match=r"row 7: expected a whole number below 2\*\*52, got 0.126"):
        ao.fit(pd.DataFrame({"x": [0.126, 2.0] * 5}, index=range(7, 17)), kinds={"x": "integer"})


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


def test_polars_whole_numbers_take_a_fraction(model: ao.TableModel) -> None:
    filled = model.fill(pl.DataFrame({"size": [100, None, 2**40]}, schema={"size": pl.Int64}))
    assert filled["size"].to_list()[::2] == [100, 2**40]
    assert filled["size"].to_list()[1] % 1 != 0
