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


def test_a_column_inside_its_own_range_is_a_law_and_not_draws() -> None:
    model = gaussian_model(MEAN, COVARIANCE)
    edges, ends = Marginals(model).axes["v0"].edges, (1.5, 2.5)
    (alone,) = Marginals(model).of([Conditional(model, {"v0": Between(*ends)}, draws=2)])
    inside = truncnorm(*(np.array(ends) - MEAN[0]), loc=MEAN[0])
    assert alone["v0"].cells == pytest.approx(np.diff(inside.cdf(edges)), abs=1e-6)
    assert alone["v0"].standard_error == 0
    # With a second range: p(v0 | v0 in R, v1 in S) is p(v0) P(v1 in S | v0), by quadrature.
    other = (-2.5, 0.0)
    (both,) = Marginals(model).of([Conditional(model, {"v0": Between(*ends), "v1": Between(*other)}, draws=400)])
    grid = np.linspace(*ends, 4001)
    slope = COVARIANCE[1, 0] / COVARIANCE[0, 0]
    rest = norm(MEAN[1] + slope * (grid - MEAN[0]), np.sqrt(COVARIANCE[1, 1] - slope**2))
    density = norm.pdf(grid, MEAN[0]) * (rest.cdf(other[1]) - rest.cdf(other[0]))
    reached = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    expected = np.diff(np.interp(edges, grid, reached / reached[-1], left=0.0, right=1.0))
    assert both["v0"].cells == pytest.approx(expected, abs=3 * both["v0"].standard_error)
    assert 0 < both["v0"].standard_error < 0.05
    # Smooth: the density rises and falls once, as the law does, where 400 draws in some cells would not.
    within = both["v0"].cells[expected > 0.1 * expected.max()]
    assert np.abs(within / expected[expected > 0.1 * expected.max()] - 1).max() < 0.1


@pytest.mark.parametrize(
    "given",
    [
        {"size": Between(0, 2)},
        {"count": Between(21, 30), "kind": OneOf("ash", "cedar")},
        {"day": "2024-04-01..2024-08-01", "moment": "> 2024-04-01"},
        {"grade": OneOf("a", "c"), "half": OneOf(0.0, 1.0), "flag": True},
        {"rain": Between(0, 3), "size": "< 0 or > 1"},
    ],
)
def test_ranges_of_every_kind_are_near_their_exact_answers(mixed: Any, given: dict[str, Any]) -> None:
    known = mixed.given(given).using(draws=300)
    (found,) = Marginals(mixed.core).of([known])
    for name in given.keys() & found.keys():
        one, exact = found[name], known[name]
        if one.cells is not None:
            edges = Marginals(mixed.core).axes[name].edges
            assert one.cells == pytest.approx(np.diff(exact.measured_cdf(edges)).clip(min=0), abs=1e-9)
        if one.probs:
            assert list(one.probs.values()) == pytest.approx([float(p) for p in exact.probs().values()], abs=1e-9)


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


def test_a_quantile_on_an_atom_is_the_atom(mixed: Any) -> None:
    # More than 5 % of the cells are 0, and nothing lies below: the cdf reaches 5 % there, in its jump.
    found = mixed.marginals({})["rain"]
    assert found.probs[0.0] > 0.05 and found.below == pytest.approx(found.probs[0.0], abs=1e-9)
    assert found.low == 0.0 == mixed["rain"].quantile(0.05)


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
