"""Answers given ranges, against the truncated and the multivariate normal."""

from __future__ import annotations

import math

import numpy as np
import pytest

from anyorder.model import AnyOrderModel
from anyorder.questions.conditional import Conditional
from anyorder.questions.estimate import Estimate
from anyorder.questions.evidence import Between, OneOf

from models import gaussian_model
from range_oracles import COVARIANCE, MEAN, SCALE, box, close, density_given_a_range, slope_of_the_cdf


def test_answers_under_ranges_are_ratios_of_boxes(gaussian: AnyOrderModel) -> None:
    c = Conditional(gaussian, {"v0": 1.0, "v1": Between(-1, None), "v2": "0..4"}, draws=4000)
    below = box({1: -1.0, 2: 0.0}, {2: 4.0}, {0: 1.0})
    for end in (-1.0, 0.5, 2.0):
        truth = box({1: -1.0, 2: 0.0}, {2: 4.0, 3: end}, {0: 1.0}) / below
        close(c["v3"].cdf(end), truth, 1e-4)
        close(c.prob(v3=Between(None, end)), truth, 1e-4)
    # The density is the derivative of that cdf; the mean its integral.
    grid = np.linspace(-9, 9, 61)
    cdf = np.array([box({1: -1.0, 2: 0.0}, {2: 4.0, 3: x}, {0: 1.0}) / below for x in grid])
    close(
        c["v3"].pdf(0.5),
        slope_of_the_cdf(0.5, below),
        1e-3,
    )
    close(c["v3"].mean(), float(grid[-1] - np.trapezoid(cdf, grid)), 5e-3)
    close(c["v3"].quantile(0.5), float(np.interp(0.5, cdf, grid)), 5e-3)
    close(c.log_prob(v3=0.5), math.log(slope_of_the_cdf(0.5, below)), 2e-3)


def test_a_variable_inside_its_own_range(gaussian: AnyOrderModel) -> None:
    """The truncated normal has its moments and entropy in closed form."""
    from scipy.stats import truncnorm

    location, scale = SCALE * MEAN[1], SCALE * math.sqrt(COVARIANCE[1, 1])
    for low, high in ((-1.0, 2.0), (3.0, None), (None, -6.0)):
        ends = [(-80.0 if low is None else low) - location, (80.0 if high is None else high) - location]
        law = truncnorm(ends[0] / scale, ends[1] / scale, location, scale)
        answer = Conditional(gaussian, {"v1": Between(low, high)})["v1"]
        assert answer.mean() == pytest.approx(law.mean(), rel=1e-6)
        assert answer.std() == pytest.approx(law.std(), rel=1e-5)
        assert answer.entropy() == pytest.approx(float(law.entropy()), abs=1e-5)
        assert answer.quantile([0.1, 0.5, 0.9]) == pytest.approx(law.ppf([0.1, 0.5, 0.9]), rel=1e-7)
        inside = float(law.mean())
        assert answer.pdf(inside) == pytest.approx(law.pdf(inside), rel=1e-8)
        assert answer.cdf(inside) == pytest.approx(law.cdf(inside), rel=1e-8)
        assert answer.pdf(-1.5 if low is not None else 0.0) == 0


def test_few_effective_draws_are_said() -> None:
    narrow = gaussian_model(np.zeros(2), np.array([[1.0, 0.995], [0.995, 1.0]]))
    c = Conditional(narrow, {"v0": Between(-3, 3), "v1": Between(1.9, 2.0)}, draws=500)
    with pytest.warns(UserWarning, match="independent draws"):
        c.sample(400)


def test_entropy_of_levels_knows_that_probabilities_add_up(table: AnyOrderModel) -> None:
    """The standard error is that of the spread of entropies over seeds, not of levels that vary by themselves."""
    names = table.schema.names
    said = {names[0]: OneOf(*table.schema.variables[0].levels[:2])}
    found = [Conditional(table, said, draws=50, seed=seed)[names[-1]].entropy() for seed in range(60)]
    spread = float(np.std([float(one) for one in found], ddof=1))
    claimed = float(np.mean([one.standard_error for one in found]))
    assert claimed == pytest.approx(spread, rel=0.35)


def test_places_under_ranges_have_standard_errors(gaussian: AnyOrderModel) -> None:
    """Mode, interval and highest-density set against a fine grid of the true density; errors as their spread."""
    grid = np.linspace(-15, 15, 30_001)
    density = density_given_a_range(1.5, 6.0, grid)
    cdf = np.cumsum(density) * (grid[1] - grid[0])
    order = np.argsort(-density)
    inside = np.sort(grid[order[: np.searchsorted(np.cumsum(density[order]) * (grid[1] - grid[0]), 0.8)]])
    truth = {
        "mode": grid[np.argmax(density)],
        "low": np.interp(0.1, cdf, grid),
        "high": np.interp(0.9, cdf, grid),
        "first": inside[0],
        "last": inside[-1],
    }
    found: dict[str, list[Estimate]] = {name: [] for name in truth}
    for seed in range(12):
        answer = Conditional(gaussian, {"v0": Between(1.5, 6.0)}, draws=400, seed=seed)["v3"]
        ((first, last),) = answer.hdi(0.8)
        low, high = answer.interval(0.8)
        for name, value in zip(found, (answer.mode(), low, high, first, last), strict=True):
            found[name].append(value)
    for name, values in found.items():
        errors = np.array([value.standard_error for value in values])
        assert (errors > 0).all()
        assert all("truncated draws (400)" in value.method for value in values)
        far = np.array([float(value) for value in values]) - truth[name]
        # An end of a highest-density set lies on a grid; a mode is flat, so its error is the least sure of all.
        assert abs(far.mean()) < 4 * errors.mean() / math.sqrt(len(far)) + 0.03, (name, far, errors)
        assert 0.4 < far.std() / errors.mean() < 2.2, (name, far.std(), errors.mean())


def test_quantiles_of_whole_numbers_under_ranges_have_standard_errors(bounded: AnyOrderModel) -> None:
    c = Conditional(bounded, {"line": Between(2, 6), "other": Between(3, None)}, draws=500)
    for name in ("whole", "spike"):
        for value in (c[name].median(), *c[name].interval(0.8), c[name].mode()):
            assert isinstance(value, float)
            if not (name == "spike" and value == 0.0):
                assert isinstance(value, Estimate), name
                assert "truncated draws (500)" in value.method
                assert 0 <= value.standard_error < 1


def test_an_atom_inside_its_own_range_keeps_its_probability(bounded: AnyOrderModel) -> None:
    c = Conditional(bounded, {"spike": Between(0, 5)})
    truth = Conditional(bounded).prob(spike=0).value / Conditional(bounded).prob(spike=Between(0, 5)).value
    assert c["spike"].probs()[0.0] == pytest.approx(truth, rel=1e-6)
    other = Conditional(bounded, {"spike": Between(0, 5), "other": Between(-500, 500)}, draws=400)
    # Nothing lies below the atom, so the cdf there is its probability.
    held = other["spike"].probs()[0.0]
    assert float(held) == pytest.approx(other["spike"].cdf(0.0).value, rel=1e-6)
    assert 0.3 < float(held) < 1
    assert held.standard_error > 0
