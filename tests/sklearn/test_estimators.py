"""scikit-learn's own checks of both estimators, and what its users build of them."""

from __future__ import annotations

import copy
import functools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import anyorder as ao
from anyorder.model.checkpoint import model_from_bytes
from anyorder.sklearn import AnyOrderDensity, AnyOrderImputer

TINY: dict[str, Any] = {
    "folds": 1,
    "encoding": "standard",
    "components": 2,
    "training": {"steps": 1, "batch": 16, "validation_queries": 10},
    "network": {"name": "residual_mlp", "width": 8, "blocks": 1},
}
LEARNS = {
    "encoding": "normal_scores",
    "training": {"steps": 150, "batch": 64, "validation_queries": 100},
    "network": {"name": "residual_mlp", "width": 32, "blocks": 1},
}


# Every check that is expected to fail, and why: none does. (The checks' own tables have no unknown cell, so
# draws are not seen to depend on which other rows are filled beside them, as with IterativeImputer.)
EXPECTED_FAILURES: dict[str, dict[str, str]] = {"AnyOrderImputer": {}, "AnyOrderDensity": {}}


@parametrize_with_checks(
    [
        AnyOrderImputer(config=TINY, engine="neural"),
        AnyOrderImputer(config=TINY, engine="neural", sample_posterior=True),
        AnyOrderDensity(config=TINY, engine="neural"),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES[type(estimator).__name__],
)
def test_scikit_learns_own_checks(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


def line(rows: int = 200, holes: float = 0.2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows on a noisy line, with holes; and without."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    whole = np.column_stack([x, 2 * x + 0.1 * rng.normal(size=rows), -x + 0.1 * rng.normal(size=rows)])
    return np.where(rng.random(whole.shape) < holes, np.nan, whole), whole


def houses(rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "size": rng.normal(100, 20, rows),
            "rooms": rng.integers(1, 30, rows),
            "river": rng.choice(["yes", "no"], rows),
            "floor": pd.Categorical(rng.choice(["low", "high"], rows)),
        },
        index=pd.Index(np.arange(rows) + 1000, name="id"),
    )
    frame["rooms"] = frame["rooms"].astype("Int64")
    frame.iloc[3, 0] = frame.iloc[4, 1] = frame.iloc[5, 2] = frame.iloc[6, 3] = None
    return frame


def imputer(**options: Any) -> AnyOrderImputer:
    return AnyOrderImputer(**{"config": TINY, "engine": "neural", "random_state": 0, **options})


@pytest.fixture(scope="module")
def learnt() -> AnyOrderImputer:
    return imputer(config=LEARNS).fit(line()[0])


def test_fills_are_conditional_means(learnt: AnyOrderImputer) -> None:
    # On a line with noise of deviation 0.1 the other cells say nearly all; the mean of a column has an error of its
    # own deviation. A quarter of that is far from what an imputer without the other columns can do.
    holes, whole = line(seed=1)
    filled = learnt.transform(holes)
    unknown = np.isnan(holes) & (np.isnan(holes).sum(axis=1, keepdims=True) == 1)
    error = np.sqrt(np.mean((filled - whole)[unknown] ** 2 / np.var(whole, axis=0)[np.nonzero(unknown)[1]]))
    assert error < 0.25


def test_known_cells_come_back_bit_for_bit(learnt: AnyOrderImputer) -> None:
    holes, whole = line(seed=2)
    filled = learnt.transform(holes)
    known = ~np.isnan(holes)
    assert filled[known].tobytes() == holes[known].tobytes() and np.isfinite(filled).all()
    assert learnt.transform(whole).tobytes() == whole.tobytes()


def test_draws_are_coherent_and_repeat(learnt: AnyOrderImputer) -> None:
    rows = np.full((400, 3), np.nan)
    rows[:, 0] = np.linspace(-1.5, 1.5, 400)
    drawing = copy.deepcopy(learnt).set_params(sample_posterior=True, random_state=7)
    one, two = drawing.transform(rows), drawing.transform(rows)
    assert one.tobytes() == two.tobytes()
    assert drawing.set_params(random_state=8).transform(rows).tobytes() != one.tobytes()
    # Best values hide the spread that draws show; and drawn cells of a row hang together as the columns do.
    assert np.corrcoef(one[:, 1], one[:, 2])[0, 1] < -0.8
    assert np.std(one[:, 1] - learnt.transform(rows)[:, 1]) > 0.02


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_stay_floats(dtype: type) -> None:
    # Few values, or whole ones: the model takes the columns for atoms and integers, the array stays what it was.
    array = np.column_stack([np.tile([0.0, 1.0, 2.0], 20), np.arange(60) % 37]).astype(dtype)
    array[5, 0] = array[6, 1] = np.nan
    filled = imputer().fit_transform(array)
    assert filled.dtype == dtype and np.isfinite(filled).all()


def test_whole_numbers_with_a_mark() -> None:
    array = np.arange(60).reshape(30, 2) % 17
    array[4, 0] = array[7, 1] = -1
    filled = imputer(missing_values=-1).fit_transform(array)
    assert filled.dtype == array.dtype
    assert (filled[array >= 0] == array[array >= 0]).all() and (filled != -1).all()


def test_texts_in_arrays_and_lists() -> None:
    rows = [["yes", 1.5], ["no", None], [None, 2.5], ["yes", 3.25]] * 8
    for given in (rows, np.array(rows, dtype=object)):
        filled = imputer().fit_transform(given)
        assert filled.dtype == object and set(filled[:, 0]) == {"yes", "no"} and None not in filled[:, 1]
        assert all(isinstance(cell, float) for cell in filled[:, 1])


def test_pandas_in_and_out() -> None:
    frame = houses()
    fitted = imputer().fit(frame)
    filled = fitted.transform(frame)
    assert isinstance(filled, pd.DataFrame) and filled.index.equals(frame.index) and not filled.isna().any().any()
    assert dict(filled.dtypes) == dict(frame.dtypes)
    whole = frame.dropna()
    pd.testing.assert_frame_equal(filled.loc[whole.index], whole, check_exact=True)
    assert list(fitted.feature_names_in_) == list(fitted.get_feature_names_out()) == list(frame.columns)
    assert fitted.n_features_in_ == 4 and isinstance(fitted.model_, ao.TableModel)


def test_polars_in_and_out() -> None:
    frame = pl.DataFrame({"a": [1.5, None, 2.5, 4.0] * 10, "b": ["x", "y", None, "x"] * 10, "c": [1, 2, None, 4] * 10})
    fitted = imputer().fit(frame)
    filled = fitted.transform(frame)
    assert isinstance(filled, pl.DataFrame) and filled.schema == frame.schema
    assert sum(filled.null_count().row(0)) == 0
    assert isinstance(fitted.set_output(transform="pandas").transform(frame), pd.DataFrame)
    assert list(fitted.transform(frame)["b"]) == list(filled["b"])


def test_set_output() -> None:
    array, _ = line(rows=30)
    fitted = imputer().set_output(transform="pandas").fit(array)
    filled = fitted.transform(array)
    assert list(filled.columns) == ["x0", "x1", "x2"] and not filled.isna().any().any()
    as_polars = imputer().set_output(transform="polars").fit_transform(houses())
    assert isinstance(as_polars, pl.DataFrame) and as_polars.columns == list(houses().columns)


@pytest.mark.parametrize("text", [False, True])
def test_columns_without_values(text: bool) -> None:
    frame = houses().drop(columns=["river", "floor"])
    frame.insert(0, "void", pd.Series([None] * len(frame), index=frame.index, dtype="str" if text else "float64"))
    with pytest.warns(UserWarning, match="'void' .every cell is missing"):
        dropping, keeping = imputer().fit(frame), imputer(keep_empty_features=True).fit(frame)
    assert list(dropping.transform(frame).columns) == list(dropping.get_feature_names_out()) == ["size", "rooms"]
    assert list(keeping.get_feature_names_out()) == ["void", "size", "rooms"]
    kept = keeping.transform(frame)
    assert set(kept["void"]) == ({"missing_value"} if text else {0.0})


def test_a_later_fold_may_surprise() -> None:
    train = pd.DataFrame({"level": ["a", "b"] * 20, "whole": np.arange(40.0), "few": [0.0, 1.0, 2.0, 3.0] * 10})
    fitted = imputer().fit(train)
    later = pd.DataFrame({"level": ["never", None], "whole": [2.5, np.nan], "few": [7.5, np.nan]})
    with (
        pytest.warns(UserWarning, match="never seen in training.*'level'.*'few'"),
        pytest.warns(UserWarning, match=r"'whole': 1 cell has a fraction \(2\.5\), in row 0"),
    ):
        filled = fitted.transform(later)
    assert filled.iloc[0].tolist() == ["never", 2.5, 7.5]
    assert not filled.iloc[1].isna().any()
    with pytest.raises(ao.UserError, match=r"'level'.*'never'"):
        fitted.set_params(unseen="refuse").transform(later.assign(whole=2.0))


def test_bounds_by_name_and_by_place() -> None:
    holes, _ = line(60)
    for names in (None, ["a", "b", "c"]):
        key: Any = 1 if names is None else "b"
        X = holes if names is None else pd.DataFrame(holes, columns=names)
        fitted = imputer(bounds={key: (-30, None), 0: (None, 25)}).fit(X)
        assert [variable.bounds for variable in fitted.model_.schema.variables] == [
            (None, 25.0),
            (-30.0, None),
            (None, None),
        ]
        assert fitted.model_.prob(f"{fitted.model_.schema.names[1]} < -30").value == 0.0
    density = AnyOrderDensity(config=TINY, engine="neural", bounds={1: (-30, 30)}).fit(holes)
    assert density.model_.schema.variables[1].bounds == (-30.0, 30.0)


def test_joint_missingness_fills_and_scores_what_is_recorded() -> None:
    """With one indicator a column the score is log p(mask, cells): with every cell unknown, that of the mask alone."""
    holes, _ = line(120)
    filled = imputer(missingness="joint").fit(holes)
    assert [v.name for v in filled.model_.schema.variables if v.indicates] == [f"missing(x{i})" for i in range(3)]
    assert np.isfinite(filled.transform(holes)).all()
    assert filled.transform(holes).shape == holes.shape
    density = AnyOrderDensity(config=TINY, engine="neural", random_state=0, missingness="joint").fit(holes)
    nothing = density.score_samples(np.full((1, 3), np.nan))[0]
    mask = density.model_.given().log_prob({f"missing(x{i})": True for i in range(3)})
    assert nothing == pytest.approx(mask.value, abs=1e-5)
    assert density.sample(5, random_state=0).shape == (5, 3)


SHORT_CHECKS = (
    "check_estimators_dtypes",
    "check_dict_unchanged",
    "check_transformer_general",
    "check_readonly_memmap_input",
)
TREES = {"encoding": "standard", "trees": {"rounds": 2, "members": 1, "threads": 1}}


@pytest.mark.parametrize("estimator", [AnyOrderImputer, AnyOrderDensity])
def test_some_of_scikit_learns_checks_with_trees(estimator: type[BaseEstimator]) -> None:
    pytest.importorskip("lightgbm")
    ran = 0
    for each, check in estimator_checks_generator(estimator(config=TREES, engine="trees", random_state=0)):
        if getattr(check, "func", check).__name__ in SHORT_CHECKS:
            check(each)
            ran += 1
    assert ran >= 2


def test_kinds_by_name_and_by_place() -> None:
    array = np.arange(40.0).reshape(20, 2)
    assert str(imputer(kinds={1: "continuous"}).fit(array).model_.schema["x1"].kind) == "continuous"
    assert str(imputer(kinds={"x0": "continuous"}).fit(array).model_.schema["x0"].kind) == "continuous"


def test_pipelines_and_cross_validation() -> None:
    frame = houses(40)
    target = np.arange(40.0)
    pipeline = make_pipeline(
        imputer().set_output(transform="pandas"),
        make_column_transformer(
            (StandardScaler(), ["size", "rooms"]), (OneHotEncoder(handle_unknown="ignore"), ["river", "floor"])
        ),
        LinearRegression(),
    )
    scores = cross_val_score(pipeline, frame, target, cv=2)
    assert scores.shape == (2,) and np.isfinite(scores).all()
    some = make_column_transformer((imputer(), ["size", "river"]), remainder="drop")
    assert some.fit_transform(frame).shape == (40, 2)
    assert list(some.get_feature_names_out()) == ["anyorderimputer__size", "anyorderimputer__river"]


def test_grid_search_over_config() -> None:
    array, _ = line(rows=40, holes=0.1)
    grid = {"config": [TINY, {**TINY, "training": {**TINY["training"], "steps": 2}}]}
    search = GridSearchCV(AnyOrderDensity(random_state=0, engine="neural"), grid, cv=2).fit(array)
    assert search.best_params_["config"] in grid["config"] and np.isfinite(search.best_score_)


def test_models_travel_between_processes() -> None:
    array, whole = line(rows=30)
    fitted = imputer().fit(array)
    # What pickling and joblib do with an object, without either: its state is the bytes of a model file.
    state = fitted.model_.__getstate__()
    assert isinstance(state, bytes) and b"anyorder" in state[:500_000]
    twin = ao.TableModel.__new__(ao.TableModel)
    twin.__setstate__(state)
    assert twin.log_prob(pd.DataFrame(whole, columns=["x0", "x1", "x2"])).equals(
        fitted.model_.log_prob(pd.DataFrame(whole, columns=["x0", "x1", "x2"]))
    )
    assert twin.card == fitted.model_.card
    damaged = bytearray(state)
    damaged[-1] ^= 1
    for wrong in (bytes(damaged), state[:-40], b"", b"no model at all"):
        with pytest.raises(ao.UserError, match=r"damaged|not one of anyorder"):
            model_from_bytes(wrong)


def test_clone_forgets_the_model() -> None:
    fitted = imputer(kinds={0: "continuous"}).fit(line(rows=30)[0])
    fresh = clone(fitted)
    assert not hasattr(fresh, "model_") and fresh.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        fresh.transform(line(rows=30)[0])


def test_density_of_a_line() -> None:
    # One column, fitted by its closed form in the limit: the density integrates to one on a fine grid.
    values = np.random.default_rng(0).normal(3.0, 2.0, size=(300, 1))
    fitted = AnyOrderDensity(config=LEARNS, random_state=0, engine="neural").fit(values)
    grid = np.linspace(-60.0, 60.0, 24_001)[:, None]
    assert np.exp(fitted.score_samples(grid)).sum() * 0.005 == pytest.approx(1.0, abs=1e-3)
    assert fitted.score(values) == pytest.approx(fitted.score_samples(values).mean())
    # The best any model can do on average is the entropy of the normal, up to the noise of 300 rows.
    assert fitted.score(values) == pytest.approx(-0.5 * np.log(2 * np.pi * np.e * 4.0), abs=0.15)


def test_density_samples_like_its_input() -> None:
    frame = houses()
    fitted = AnyOrderDensity(config=TINY, random_state=0, engine="neural").fit(frame)
    drawn = fitted.sample(5, random_state=3)
    assert list(drawn.columns) == list(frame.columns) and dict(drawn.dtypes) == dict(frame.dtypes)
    pd.testing.assert_frame_equal(drawn, fitted.sample(5, random_state=3))
    in_polars = AnyOrderDensity(config=TINY, random_state=0, engine="neural").fit(pl.DataFrame({"a": [1.5, 2.0] * 9}))
    assert in_polars.sample(4).schema == {"a": pl.Float64}
    array, _ = line(rows=30)
    drawn_array = AnyOrderDensity(config=TINY, random_state=0, engine="neural").fit(array).sample(6)
    assert drawn_array.shape == (6, 3) and drawn_array.dtype == np.float64


def test_mistakes_are_named() -> None:
    array, _ = line(rows=30)
    with pytest.raises(ao.UserError, match="engine"):
        imputer(engine="steam").fit(array)
    with pytest.raises(ao.UserError, match="did you mean"):
        imputer(config={"trainin": {}}).fit(array)
    with pytest.raises(ao.UserError, match="n_samples=1"):
        imputer().fit(array[:1])


def test_without_scikit_learn_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import anyorder\n"
        "try:\n    anyorder.AnyOrderImputer\n"
        "except anyorder.UserError as error:\n    assert 'pip install anyorder[sklearn]' in str(error)\n"
        "else:\n    raise SystemExit(1)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[2] / "docs" / "sklearn.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert len(blocks) >= 5

    @functools.wraps(ao.fit)
    def quick(frame: Any, **options: Any) -> ao.TableModel:
        given = options.pop("config") or {}
        options["engine"] = "neural"
        return ao.fit(
            frame,
            **{**options, "minutes": 1.0},
            config={**TINY, "encoding": "standard"}
            | {name: value for name, value in given.items() if name == "encoding"},
        )

    monkeypatch.setattr("anyorder.sklearn.base.fit", quick)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "sklearn.md", "exec"), names)
    assert names["copies"][0].isna().sum().sum() == 0 and names["search"].best_params_


def test_a_mark_of_missing_cells_beside_a_fraction_is_filled() -> None:
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 40, 60).astype(float)
    array = np.column_stack([whole, 2 * whole + rng.normal(size=60)])
    array[3, 0] = -999
    fitted = AnyOrderImputer(missing_values=-999, engine="neural", random_state=0, config=TINY).fit(array)
    array[0, 0] = 3.5
    with pytest.warns(UserWarning, match="1 cell has a fraction"):
        filled = fitted.transform(array)
    assert filled[0, 0] == 3.5
    assert filled[3, 0] != -999


def test_ids_come_back_untouched() -> None:
    frame = houses().drop(columns=["river", "floor"])
    frame.insert(0, "id", [f"H-{number}" for number in range(len(frame))])
    frame.loc[frame.index[3], "size"] = np.nan
    with pytest.warns(UserWarning, match="left out of the model: 'id'"):
        fitted = imputer().fit(frame)
    filled = fitted.transform(frame)
    assert list(filled.columns) == list(fitted.get_feature_names_out()) == list(frame.columns)
    assert filled["id"].tolist() == frame["id"].tolist()
    assert filled["size"].notna().all()
