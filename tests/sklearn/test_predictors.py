"""The classifier and the regressor: scikit-learn's own checks, unknown inputs, and agreement with the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from anyorder.errors import UserError
from anyorder.sklearn import AnyOrderClassifier, AnyOrderRegressor

TINY: dict[str, Any] = {
    "folds": 1,
    "encoding": "standard",
    "components": 2,
    "training": {"minutes": None, "steps": 1, "batch": 16, "validation_queries": 10},
    "network": {"name": "residual_mlp", "width": 8, "blocks": 1},
}
LEARNS: dict[str, Any] = {
    **TINY,
    "training": {
        "minutes": None,
        "steps": 150,
        "batch": 64,
        "validation_queries": 50,
        "learning_rate": 0.02,
        "warmup": 5,
        "average": 0.9,
    },
    "network": {"name": "residual_mlp", "width": 16, "blocks": 1},
}
TREES = {"folds": 1, "encoding": "standard", "trees": {"rounds": 10, "members": 1, "shown": 1000, "learning_rate": 0.3}}
WITH_TREES = {
    "check_classifiers_train": "asks for a good score, which one step of training has not",
    "check_regressors_train": "asks for a good score, which one step of training has not",
    "check_methods_subset_invariance": "compares to 1e-7; networks compute in single precision",
    "check_methods_sample_order_invariance": "compares to 1e-7; networks compute in single precision",
}
"""Checks that a briefly trained network cannot pass, and why."""


@parametrize_with_checks(
    [
        AnyOrderClassifier(config=TINY, engine="neural", random_state=0),
        AnyOrderRegressor(config=TINY, engine="neural", random_state=0),
    ]
)
def test_scikit_learns_own_checks(estimator: BaseEstimator, check: Any) -> None:
    if getattr(check, "func", check).__name__ in WITH_TREES:
        estimator.set_params(config=TREES, engine="trees")
    check(estimator)


def learned(estimator: type[Any]) -> Any:
    return estimator(config=LEARNS, engine="neural", random_state=0)


def inputs(rows: int = 200) -> tuple[pd.DataFrame, np.ndarray]:
    """Two numbers that say the same of the target, and a text that says nothing."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=rows)
    columns = {"one": truth + 0.1 * rng.normal(size=rows), "two": 5 - truth + 0.1 * rng.normal(size=rows)}
    frame = pd.DataFrame({**columns, "text": rng.choice(["a", "b"], rows)})
    return frame.mask(rng.random(frame.shape) < 0.2), truth


def test_a_regressor_uses_what_is_known() -> None:
    frame, truth = inputs()
    regressor = learned(AnyOrderRegressor).fit(frame, truth)
    for known in (["one", "two", "text"], ["one"], ["two"]):
        some = frame.where(frame.columns.isin(known)[None, :].repeat(len(frame), 0))
        here = some[known[:2]].notna().any(axis=1).to_numpy()
        assert np.corrcoef(regressor.predict(some)[here], truth[here])[0, 1] > 0.8, known
    blind = frame.head(3).assign(one=np.nan, two=np.nan, text=None)
    mean, spread = regressor.predict(blind, return_std=True)
    sharp = regressor.predict(frame.dropna().head(3), return_std=True)[1]
    assert spread.min() > sharp.max()
    answer = regressor.model_.given()[regressor.target_]
    assert mean == pytest.approx([float(answer.mean())] * 3, rel=1e-3, abs=1e-3)
    found = regressor.predict_quantiles(blind, [0.1, 0.9])
    assert found.shape == (3, 2) and found[0] == pytest.approx(answer.quantile([0.1, 0.9]), rel=1e-3, abs=1e-3)


def test_a_classifier_uses_what_is_known() -> None:
    frame, truth = inputs()
    classes = np.where(truth > 0.5, "much", np.where(truth < -0.5, "little", "some"))
    classifier = learned(AnyOrderClassifier).fit(frame, classes)
    assert classifier.classes_.tolist() == ["little", "much", "some"]
    sure = frame.notna().all(axis=1).to_numpy()
    assert classifier.score(frame[sure], classes[sure]) > 0.75
    blind = classifier.predict_proba(frame.head(2).assign(one=np.nan, two=np.nan, text=None))
    assert blind[0] == pytest.approx([np.mean(classes == name) for name in classifier.classes_], abs=0.15)
    nats = classifier.predict_log_proba(frame.head(4))
    np.testing.assert_allclose(np.exp(nats), classifier.predict_proba(frame.head(4)))


@pytest.mark.parametrize("labels", [[0, 1], [True, False], ["x", "y"], [3, 70]])
def test_classes_come_back_as_they_are(labels: list[Any]) -> None:
    frame, truth = inputs(40)
    y = np.array(labels)[(truth > 0).astype(int)]
    classifier = AnyOrderClassifier(config=TINY, engine="neural", random_state=0).fit(frame, y)
    assert classifier.predict(frame).dtype == y.dtype
    assert set(classifier.predict(frame)) <= set(labels)


def test_frames_of_polars_and_a_column_named_like_the_target() -> None:
    frame, truth = inputs(40)
    frame = frame.rename(columns={"one": "target"})
    whole = pl.DataFrame({"target": frame["target"].to_numpy(), "two": frame["two"].to_numpy()})
    regressor = AnyOrderRegressor(config=TINY, engine="neural", random_state=0).fit(whole, truth)
    assert regressor.target_ == "target_"
    assert regressor.predict(whole).shape == (40,)


def test_a_target_of_few_numbers_still_has_a_mean() -> None:
    frame, truth = inputs(40)
    regressor = AnyOrderRegressor(config=TINY, engine="neural", random_state=0).fit(frame, (truth > 0).astype(int))
    assert np.isfinite(regressor.predict(frame)).all()


def test_a_level_never_seen_is_unknown_unless_it_is_refused() -> None:
    frame, truth = inputs(40)
    regressor = AnyOrderRegressor(config=TINY, engine="neural", random_state=0).fit(frame, truth)
    with pytest.warns(UserWarning, match="never seen"):
        assert np.isfinite(regressor.predict(frame.head(2).assign(text="c"))).all()
    with pytest.raises(UserError, match="is not one of its values"):
        regressor.set_params(unseen="refuse").predict(frame.head(2).assign(text="c"))


def test_mistakes() -> None:
    frame, truth = inputs(40)
    with pytest.raises(UserError, match="one class"):
        AnyOrderClassifier(config=TINY).fit(frame, ["same"] * 40)
    with pytest.raises(UserError, match="y is None"):
        AnyOrderRegressor(config=TINY).fit(frame)
    with pytest.raises(ValueError, match="NaN"):
        AnyOrderRegressor(config=TINY).fit(frame, np.where(truth > 1, np.nan, truth))


def test_some_checks_with_trees() -> None:
    pytest.importorskip("lightgbm")
    wanted, ran = ("check_estimators_dtypes", "check_classifiers_one_label", "check_regressors_int"), 0
    for estimator in (AnyOrderClassifier, AnyOrderRegressor):
        for each, check in estimator_checks_generator(estimator(config=TREES, engine="trees", random_state=0)):
            if getattr(check, "func", check).__name__ in wanted:
                check(each)
                ran += 1
    assert ran >= 3
