"""Guaranteed coverage of a deliberately wrong model, counted on fresh rows of the true distribution."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from anyorder.conditional import Conditional
from anyorder.conformal import conformal
from anyorder.errors import UserError

from models import categorical_model, categorical_table, gaussian_model

MEAN = np.array([0.5, -1.0, 2.0])
COVARIANCE = np.array([[1.0, 0.6, -0.4], [0.6, 2.0, 0.3], [-0.4, 0.3, 1.5]])


def _frame(rows: int, seed: int) -> pd.DataFrame:
    drawn = np.random.default_rng(seed).multivariate_normal(MEAN, COVARIANCE, rows)
    return pd.DataFrame(drawn, columns=["v0", "v1", "v2"])


def _halved():  # type: ignore[no-untyped-def]
    """A Gaussian with every deviation halved: its own 90 % interval covers 2 Phi(1.645 / 2) - 1 = 59 %."""
    return gaussian_model(MEAN, COVARIANCE / 4)


def _true_coverage(asked: float) -> float:
    """What the interval of that level of the halved model covers: centre +- z s / 2, with s the true deviation."""
    return float(2 * stats.norm.cdf(stats.norm.ppf((1 + asked) / 2) / 2) - 1)


def test_the_adjusted_level_is_the_order_statistic() -> None:
    adjusted = conformal(_halved(), _frame(99, seed=0), given=["v0", "v2"])
    scores = np.sort(adjusted.depth[adjusted.variable == 1])
    assert len(scores) == 99
    assert adjusted.adjusted_level("v1", 0.9) == scores[89]  # ceil(100 * 0.9) = 90
    assert adjusted.adjusted_level("v1", 0.991) == 1.0  # needs more than 99 cells: the honest answer is everything
    assert adjusted.interval({"v0": 0.0, "v2": 0.0}, "v1", 0.995) == (-math.inf, math.inf)
    table = adjusted.adjusted_levels([0.9]).set_index("variable")
    assert table.loc["v1", "90%"] == scores[89]
    # The true level to ask a model of half the deviation for, at nominal 90 %, is 2 Phi(2 * 1.645) - 1 = 0.999.
    assert table.loc["v1", "90%"] == pytest.approx(2 * stats.norm.cdf(2 * stats.norm.ppf(0.95)) - 1, abs=0.005)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_coverage_is_guaranteed_however_wrong_the_model(level: float) -> None:
    """Mean over 150 calibration sets of 40 rows of the exact coverage: level <= mean <= level + 1 / 41."""
    model, covered = _halved(), []
    for seed in range(150):
        asked = conformal(model, _frame(40, seed), given=["v0", "v2"], seed=seed).adjusted_level("v1", level)
        covered.append(_true_coverage(asked))
    error = np.std(covered) / math.sqrt(150)
    assert level - 3 * error <= np.mean(covered) <= level + 1 / 41 + 3 * error


def test_every_number_of_known_cells_has_its_own_adjustment() -> None:
    model = _halved()
    adjusted = conformal(model, _frame(3000, seed=1), by_known=True)
    for known, evidence in enumerate(({}, {"v0": 1.0}, {"v0": 1.0, "v2": 0.3})):
        asked = adjusted.adjusted_level("v1", 0.8, known=known)
        # Some 1000, 700 and 300 calibration cells: three binomial errors.
        assert _true_coverage(asked) == pytest.approx(0.8, abs=3 * math.sqrt(0.16 / 300))
        low, high = adjusted.interval(evidence, "v1", 0.8)
        left, right = Conditional(model, evidence)["v1"].interval(asked)
        assert (low, high) == (left, right)
        assert high - low > 1.5 * np.subtract(*Conditional(model, evidence)["v1"].interval(0.8)[::-1])
    assert list(adjusted.adjusted_levels().columns[:3]) == ["variable", "known", "cells"]
    with pytest.raises(UserError, match="known=3"):
        adjusted.adjusted_level("v1", 0.8)


def test_sets_of_levels_hold_what_they_promise() -> None:
    model = categorical_model({"name": "residual_mlp", "width": 32, "blocks": 1}, steps=3)  # hardly trained
    adjusted = conformal(model, categorical_table(1000, seed=5), given=["a", "c"])
    fresh = categorical_table(1000, seed=6)
    for level in (0.6, 0.9):
        sets = {
            (a, c): adjusted.levels({"a": a, "c": c}, "d", level) for a in sorted(set(fresh["a"])) for c in ("0", "1")
        }
        held = np.mean([d in sets[a, c] for a, c, d in zip(fresh["a"], fresh["c"], fresh["d"], strict=True)])
        assert held >= level - 3 * math.sqrt(2 * level * (1 - level) / 1000)
    everything = conformal(model, categorical_table(3, seed=5), given=["a", "c"])
    assert len(everything.levels({"a": "0", "c": "0"}, "d", 0.9)) == 4


def test_the_promise_is_refused_for_another_question() -> None:
    adjusted = conformal(_halved(), _frame(50, seed=0), given=["v0"])
    with pytest.raises(UserError, match="made for evidence on"):
        adjusted.interval({"v2": 1.0}, "v1")
    model = categorical_model({"name": "residual_mlp", "width": 8, "blocks": 1}, steps=1)
    with pytest.raises(UserError, match="no order"):
        conformal(model, categorical_table(20)).interval({}, "b")
    with pytest.raises(UserError, match="between 0 and 1"):
        adjusted.adjusted_level("v1", 90)
