"""All columns at once: against closed forms, against exact answers, and the same bits whoever else asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, truncnorm

import anyorder as ao
from anyorder.protocols import Canonical
from anyorder.questions.conditional import Conditional
from anyorder.questions.marginals import BLOCK, Marginal, Marginals
from anyorder.variables.ranges import Between, OneOf

from models import gaussian_model, joint_table, random_joint_model

MEAN = np.array([1.0, -2.0, 0.5])
COVARIANCE = np.array([[1.0, 0.8, 0.3], [0.8, 2.0, -0.4], [0.3, -0.4, 0.7]])
V1 = Path(__file__).resolve().parents[1] / "files" / "v1"


@pytest.fixture(scope="module")
def mixed() -> Any:
    """A small model with a column of every kind."""
    return ao.load(V1 / "table_both.anyorder")


def test_a_gaussian_in_closed_form() -> None:
    model = gaussian_model(MEAN, COVARIANCE, scale=3.0)
    given = 3.0 * 1.7
    marginals = Marginals(model)
    (found,) = marginals.of([Conditional(model, {"v0": given})])
    assert list(found) == ["v1", "v2"]
    for index, name in ((1, "v1"), (2, "v2")):
        slope = COVARIANCE[index, 0] / COVARIANCE[0, 0]
        law = norm(3 * (MEAN[index] + slope * (1.7 - MEAN[0])), 3 * np.sqrt(COVARIANCE[index, index] - slope**2))
        one, edges = found[name], marginals.axes[name].edges
        assert one.cells == pytest.approx(np.diff(law.cdf(edges)), abs=1e-9)
        assert (one.below, one.above) == pytest.approx((law.cdf(edges[0]), law.sf(edges[-1])), abs=1e-9)
        assert one.mean == pytest.approx(law.mean(), abs=2e-3 * law.std())
        assert (one.low, one.median, one.high) == pytest.approx(law.ppf([0.05, 0.5, 0.95]), abs=1e-2 * law.std())
        assert one.standard_error == 0


def test_a_range_is_a_truncated_gaussian() -> None:
    model = gaussian_model(MEAN, COVARIANCE)
    question = Conditional(model, {"v0": Between(1.5, 2.5)}, draws=2000)
    (found,) = Marginals(model).of([question])
    inside = truncnorm(1.5 - MEAN[0], 2.5 - MEAN[0], loc=MEAN[0])
    assert found["v0"].mean == pytest.approx(inside.mean(), abs=0.03)
    assert found["v0"].low > 1.5 and found["v0"].high < 2.5
    slope = COVARIANCE[1, 0] / COVARIANCE[0, 0]
    assert found["v1"].mean == pytest.approx(MEAN[1] + slope * (inside.mean() - MEAN[0]), abs=0.05)
    assert 0 < found["v1"].standard_error < 0.05


def test_levels_by_enumeration() -> None:
    table, model = joint_table(), random_joint_model(Canonical())
    (found,) = Marginals(model).of([Conditional(model, {"a": "1"})])
    for axis, name in ((1, "b"), (2, "c")):
        expected = table[1].sum(axis=2 - axis) / table[1].sum()
        assert list(found[name].probs.values()) == pytest.approx(expected, abs=1e-6)
        assert found[name].best == str(expected.argmax())
    (of_two,) = Marginals(model).of([Conditional(model, {"a": OneOf("0", "1")}, draws=4000)], [["b"]])
    expected = table[:2].sum(axis=(0, 2)) / table[:2].sum()
    assert list(of_two) == ["b"]
    assert list(of_two["b"].probs.values()) == pytest.approx(expected, abs=5 * max(of_two["b"].standard_error, 1e-3))


def test_every_kind_is_near_its_exact_answer(mixed: Any) -> None:
    given = mixed.given(count=22)
    for name, one in mixed.marginals({"count": 22}).items():
        exact = given[name]
        if one.probs:
            assert list(one.probs.values()) == pytest.approx([float(p) for p in exact.probs().values()], abs=1e-6)
        if one.cells is not None:
            low, middle, high = exact.measured_quantiles(np.array([0.05, 0.5, 0.95]))
            ends = [
                (t - pd.Timestamp(0)) / pd.Timedelta(days=1) if exact.kind == "datetime" else t
                for t in (one.low, one.median, one.high, one.mean)
            ]
            mean = exact.mean()
            mean = (mean - pd.Timestamp(0)) / pd.Timedelta(days=1) if exact.kind == "datetime" else float(mean)
            slack = 0.02 * float(exact.std()) + exact.discrete
            assert ends == pytest.approx([low, middle, high, mean], abs=slack), name
            assert one.cells.sum() + one.below + one.above == pytest.approx(1, abs=1e-9)
        if name == "grade":
            assert (one.low, one.median, one.high) == tuple(exact.quantile([0.05, 0.5, 0.95]))


def same(one: Marginal, other: Marginal) -> bool:
    names = ("probs", "below", "above", "mean", "median", "low", "high", "best", "standard_error")
    cells = one.cells is None or (one.cells == other.cells).all()  # type: ignore[attr-defined]
    return bool(cells) and all(getattr(one, name) == getattr(other, name) for name in names)


@pytest.mark.parametrize("file", ["table_both", "table_neural", "table_trees"])
def test_the_bits_do_not_depend_on_who_else_asks(file: str) -> None:
    model: Any = ao.load(V1 / f"{file}.anyorder")
    rng, rows, marginals = np.random.default_rng(3), model.sample(40, seed=2), Marginals(model.core)
    names = [rng.choice(model.columns, size=int(rng.integers(0, 6)), replace=False) for _ in range(40)]
    questions = [model.given({name: rows[name].iloc[at] for name in some}) for at, some in enumerate(names)]
    alone = [marginals.of([question])[0] for question in questions]
    for count in (3, BLOCK, BLOCK + 1, 40):
        order = rng.permutation(40)[:count]
        found = marginals.of([questions[at] for at in order])
        for at, answer in zip(order, found, strict=True):
            assert answer.keys() == alone[at].keys()
            assert all(same(answer[name], alone[at][name]) for name in answer)
