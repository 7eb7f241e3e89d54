"""Estimators whose context is known: by name or position, and all inputs of a regressor at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from anyorder.errors import UserError
from anyorder.sklearn import AnyOrderClassifier, AnyOrderDensity, AnyOrderImputer, AnyOrderRegressor

TINY: dict[str, Any] = {
    "folds": 1,
    "encoding": "standard",
    "components": 2,
    "training": {"minutes": None, "steps": 3, "batch": 16, "validation_queries": 10},
    "network": {"name": "residual_mlp", "width": 8, "blocks": 1},
}
SETTINGS: dict[str, Any] = {"engine": "neural", "config": TINY, "random_state": 0}


def rows(count: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    known = rng.normal(size=(count, 2))
    return pd.DataFrame({"a": known[:, 0], "b": known[:, 1], "c": known @ [1.0, 2.0] + 0.1 * rng.normal(size=count)})


def test_an_imputer_fills_the_rest_given_its_context() -> None:
    holes = rows()
    holes.loc[::3, "c"] = np.nan
    for given, context in ((holes, ["a", "b"]), (holes, holes.columns[:2]), (holes.to_numpy(), np.arange(2))):
        imputer = clone(AnyOrderImputer(context=context, **SETTINGS)).fit(given)
        assert imputer.model_.schema.context == (0, 1)
        assert not np.isnan(np.asarray(imputer.transform(given), dtype=float)).any()
    with pytest.raises(UserError, match=r"'a' is context, .* unknown in row 0"):
        AnyOrderImputer(context=["a"], **SETTINGS).fit(holes).transform(holes.assign(a=[np.nan] + [0.0] * 59))


def test_a_density_scores_the_rest_and_draws_none_without_context() -> None:
    density = AnyOrderDensity(context=("a", "b"), **SETTINGS).fit(rows())
    assert np.allclose(density.score_samples(rows()), density.model_.log_prob(rows(), given=["a", "b"]))
    with pytest.raises(UserError, match="every question must know"):
        density.sample(2)


@pytest.mark.parametrize("estimator", [AnyOrderRegressor, AnyOrderClassifier])
def test_all_inputs_as_context(estimator: type[Any]) -> None:
    frame = rows().assign(code=[f"row {number} of the whole table" for number in range(60)])
    target = frame["c"] if estimator is AnyOrderRegressor else np.where(frame["c"] > 0, "high", "low")
    with pytest.warns(UserWarning, match="left out of the model: 'code'"):
        fitted = estimator(context="inputs", **SETTINGS).fit(frame[["a", "b", "code"]], target)
    assert fitted.model_.schema.context_names == ("a", "b")
    assert len(fitted.predict(frame[["a", "b", "code"]])) == 60
    some = estimator(context=["b"], **SETTINGS).fit(frame[["a", "b"]], target)
    assert some.model_.schema.context_names == ("b",)
    assert len(some.predict(frame[["a", "b"]].assign(a=np.nan))) == 60
    with pytest.raises(UserError, match="context must be a list"):
        estimator(context="a", **SETTINGS).fit(frame[["a", "b"]], target)
    with pytest.raises(UserError, match="context names the target, 'target'; name inputs, or say context='inputs'"):
        estimator(context=["a", "target"], **SETTINGS).fit(frame[["a", "b"]], target)
