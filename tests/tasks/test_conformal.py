"""Guaranteed coverage of a deliberately wrong model, counted on fresh rows of the true distribution."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from anyorder.errors import UserError
from anyorder.questions.conditional import Conditional
from anyorder.tasks.conformal import conformal
from anyorder.variables.codecs import LatticeCodec, LineCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

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


def _alike(columns: int, correlation: float) -> np.ndarray:
    return np.full((columns, columns), correlation) + (1 - correlation) * np.eye(columns)


def _drawn_alike(rows: int, columns: int, correlation: float, seed: int = 0) -> np.ndarray:
    """Normal rows of that law by one shared factor: a decomposition has equal values here, whose vectors each
    processor picks for itself, and so would be the rows."""
    rng = np.random.default_rng(seed)
    shared, own = rng.normal(size=(rows, 1)), rng.normal(size=(rows, columns))
    return math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * own


@pytest.mark.parametrize("hidden", [1, 6])
def test_the_adjustment_is_for_the_holes_of_the_table(hidden: int) -> None:
    """A model too sure of how columns hang together is the more wrong the more it is told; coverage is closed form."""
    count, level = 8, 0.9
    believed, truth = _alike(count, 0.9), _alike(count, 0.3)
    names = [f"v{place}" for place in range(count)]
    held_out = pd.DataFrame(_drawn_alike(2000, count, 0.3), columns=names)
    table = held_out.iloc[:80].copy()
    for row in range(len(table)):
        table.iloc[row, [(row + step) % count for step in range(hidden)]] = np.nan
    model = gaussian_model(np.zeros(count), believed)
    # Every hole of v0 stands beside as many others, wherever they are: columns are exchangeable.
    known = list(range(hidden, count))
    gain = believed[0, known] @ np.linalg.inv(believed[np.ix_(known, known)])
    scale = math.sqrt(1 - gain @ believed[known, 0])
    wrong = math.sqrt(1 - 2 * gain @ truth[known, 0] + gain @ truth[np.ix_(known, known)] @ gain)

    def covers(asked: float) -> float:
        return float(2 * stats.norm.cdf(stats.norm.ppf((1 + asked) / 2) * scale / wrong) - 1)

    adjusted = conformal(model, held_out, like=table)
    assert (adjusted.variable == 0).sum() == 2000  # every row has its say about every column
    error = math.sqrt(level * (1 - level) / 2000)
    for name in names:
        assert covers(adjusted.adjusted_level(name, level)) == pytest.approx(level, abs=4 * error)
    if hidden == 1:  # a random number of known cells is another sort of question
        assert covers(conformal(model, held_out).adjusted_level("v0", level)) < level - 0.03
    lines = adjusted.intervals(table.head(3), level)
    expected = table.iloc[0, known].to_numpy() @ gain
    reach = stats.norm.ppf((1 + adjusted.adjusted_level("v0", level)) / 2) * scale
    assert len(lines) == 3 * hidden
    assert lines.loc[0, ["low", "high"]].tolist() == pytest.approx([expected - reach, expected + reach], abs=1e-5)


def test_fractions_are_evidence_and_never_judged() -> None:
    mean, covariance = np.array([0.5, -1.0]), np.array([[1.0, 0.6], [0.6, 2.0]])
    core = gaussian_model(mean, covariance)
    whole, other = Variable("whole", Kind.INTEGER, dtype="int64"), Variable("other", Kind.CONTINUOUS)
    codecs = (LatticeCodec(whole, Warp.affine(10.0, 4.0), 0, 20), LineCodec(other, Warp.affine(0.0, 1.0)))
    core.encoding = Encoding(Schema((whole, other)), codecs)
    held_out = pd.DataFrame({"whole": [4.5, 7.0, 8.25, 30.0], "other": [0.3, -2.0, 1.0, 0.5]})
    with pytest.warns(UserWarning, match="2 cells have fractions"):
        adjusted = conformal(core, held_out, like=pd.DataFrame({"whole": [3, None], "other": [None, 1.0]}))
    assert (adjusted.variable == 0).sum() == 2
    centre = mean[1] + 0.6 * ((held_out["whole"] - 10) / 4 - mean[0])
    depth = np.abs(2 * stats.norm.cdf((held_out["other"] - centre) / math.sqrt(2 - 0.36)) - 1)
    assert np.sort(adjusted.depth[adjusted.variable == 1]) == pytest.approx(np.sort(depth), abs=1e-6)
    # The table to fill: one note for all of it, not one for every cell.
    table = pd.DataFrame({"whole": [4.5, 5.5, 6.0], "other": [None, None, None]}, dtype=float)
    with pytest.warns(UserWarning, match="2 cells have fractions") as said:
        assert len(adjusted.intervals(table, 0.5)) == 3
    assert len(said) == 1
