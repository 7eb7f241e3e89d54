"""Probabilities of events, against the multivariate normal and against sums over a table."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.protocols import Random
from anyorder.questions.conditional import Conditional
from anyorder.questions.evidence import Between, OneOf

from models import gaussian_model
from range_oracles import COVARIANCE, MEAN, SCALE, above_above_below, box, close, joint


def test_one_range_is_exact(gaussian: AnyOrderModel) -> None:
    c = Conditional(gaussian, {"v0": 1.0})
    found = c.prob(v1=Between(-1, 2))
    assert found.standard_error == 0
    assert found.method == "exact"
    assert found.value == pytest.approx(box({1: -1.0}, {1: 2.0}, {0: 1.0}), abs=1e-7)
    assert c.prob("v1 > 2").value + c.prob("v1 <= 2").value == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("draws", [500, 8000])
def test_joint_events_agree_with_the_normal_cdf(gaussian: AnyOrderModel, draws: int) -> None:
    c = Conditional(gaussian, {"v0": 1.0}, draws=draws)
    found = c.prob("v1 > -1, 0 < v2 < 4, v3 < 1")
    close(found, box({1: -1.0, 2: 0.0}, {2: 4.0, 3: 1.0}, {0: 1.0}), 1e-4)
    assert 0 < found.standard_error < 0.3 * found.value / math.sqrt(draws / 100)
    assert found.method == f"truncated draws ({draws})"


def test_an_event_about_a_range_variable_itself(gaussian: AnyOrderModel) -> None:
    c = Conditional(gaussian, {"v0": 1.0, "v1": Between(-1, 3), "v2": Between(0, None)}, draws=4000)
    below = box({1: -1.0, 2: 0.0}, {1: 3.0}, {0: 1.0})
    close(c.prob("v1 > 1"), box({1: 1.0, 2: 0.0}, {1: 3.0}, {0: 1.0}) / below, 1e-4)
    close(c.prob("v1 > 1, v3 < 0"), box({1: 1.0, 2: 0.0}, {1: 3.0, 3: 0.0}, {0: 1.0}) / below, 1e-4)
    close(c["v1"].cdf(1.0), 1 - box({1: 1.0, 2: 0.0}, {1: 3.0}, {0: 1.0}) / below, 1e-4)
    assert c.prob("v1 > 5").value == 0
    one = Conditional(gaussian, {"v1": Between(-1, 3)})
    exact = one.prob("v1 > 1")
    assert exact.standard_error == 0
    assert exact.value == pytest.approx(box({1: 1.0}, {1: 3.0}, {}) / box({1: -1.0}, {1: 3.0}, {}), abs=1e-7)


@pytest.mark.parametrize("far", [4.0, 6.0, 7.5])
def test_rare_events_keep_their_digits(gaussian: AnyOrderModel, far: float) -> None:
    location, scale = SCALE * MEAN[2], SCALE * math.sqrt(COVARIANCE[2, 2])
    below = Conditional(gaussian).prob(v2=Between(None, location - far * scale))
    assert below.value == pytest.approx(norm.cdf(-far), rel=1e-8)
    above = Conditional(gaussian).prob(v2=Between(location + far * scale, None))
    assert above.value == pytest.approx(norm.sf(far), rel=1e-2 if far > 7 else 1e-6)
    # A joint event of that size, and an answer given it: every draw lies inside.
    c = Conditional(gaussian, {"v2": Between(None, location - far * scale), "v3": Between(0, None)}, draws=2000)
    drawn = c.sample(200, seed=1)
    assert (drawn["v2"] <= location - far * scale + 1e-9).all()
    assert (drawn["v3"] >= 0).all()


def test_a_rare_joint_event(gaussian: AnyOrderModel) -> None:
    found = Conditional(gaussian, draws=4000).prob("v0 > 6, v1 > 6, v2 < 2.2")
    # The normal cdf of three variables is itself estimated by random points, to some 1e-5: too coarse for a rare event.
    truth = above_above_below(6.0, 6.0, 2.2)
    assert 0 < found.standard_error < 0.1 * found.value
    assert abs(found.value - truth) < 4 * found.standard_error + 1e-3 * truth


def test_weights_are_unbiased_and_errors_honest(gaussian: AnyOrderModel) -> None:
    truth = box({1: 0.0, 3: 1.0}, {2: 2.0}, {})
    found = [Conditional(gaussian, draws=100, seed=s).prob("v1 > 0, v2 < 2, v3 > 1") for s in range(120)]
    values = np.array([estimate.value for estimate in found])
    assert abs(values.mean() - truth) < 4 * values.std() / math.sqrt(120) + 1e-5
    stated = np.array([estimate.standard_error for estimate in found])
    assert 0.8 < values.std() / stated.mean() < 1.25
    z = (values - truth) / stated
    assert 0.9 <= (np.abs(z) < 1.96).mean() <= 0.99


def test_a_random_order_gives_the_same_answer(gaussian: AnyOrderModel) -> None:
    model = gaussian_model(MEAN, COVARIANCE, Random(), scale=SCALE)
    close(Conditional(model, draws=2000).prob("v1 > 0, v2 < 2"), box({1: 0.0}, {2: 2.0}, {}), 1e-5)


def test_sets_of_levels_against_the_sum(table: AnyOrderModel) -> None:
    p = (joint(table) + joint(table, (3, 2, 1, 0))) / 2  # an order and its opposite
    c = Conditional(table, draws=4000)
    close(c.prob(a="0", b=OneOf("0", "2"), c="1", d="{1, 3}"), float(p[0][[0, 2]][:, 1][:, [1, 3]].sum()), 1e-7)
    # Evidence as sets of the first variables of the order, so the chains are the same.
    given = [one[1] / one[1].sum() for one in (joint(table), joint(table, (0, 2, 1, 3)))]
    ranged = Conditional(table, {"a": "1", "b": "{0, 2}", "c": OneOf("0", "1")}, draws=4000)
    inside = (given[0] + given[1])[[0, 2]]
    truth = inside.sum(axis=(0, 1)) / inside.sum()
    for level, probability in ranged["d"].probs().items():
        close(probability, float(truth[int(level)]), 1e-6)
    drawn = ranged.sample(2000, seed=3)
    assert set(drawn["b"]) == {"0", "2"}
    assert set(drawn["a"]) == {"1"}
    counts = drawn["d"].value_counts(normalize=True)
    for level, share in enumerate(truth):
        assert counts.get(str(level), 0.0) == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / 2000) + 1e-9)


def test_what_cannot_happen_is_said(gaussian: AnyOrderModel, table: AnyOrderModel) -> None:
    c = Conditional(gaussian)
    with pytest.raises(UserError, match="ends before it begins"):
        c.given(v1=Between(3, 1))
    with pytest.raises(UserError, match="probability 0"):
        c.given(v1=Between(1, 1))
    with pytest.raises(UserError, match="probability 0"):
        c.given(v1=Between(1e6, 2e6))["v2"].mean()
    assert c.prob(v1=Between(1e6, 2e6)).value == 0
    with pytest.raises(UserError, match="a single value has probability 0"):
        c.prob(v1=3.0)
    with pytest.raises(UserError, match="already given"):
        c.given(v1=3.0).prob(v1=Between(0, 1))
    with pytest.raises(UserError, match="no order"):
        Conditional(table, {"a": "0..1"})
    with pytest.raises(UserError, match="not one of its values"):
        Conditional(table, {"b": OneOf("0", "seven")})
    with pytest.raises(UserError, match="needs an event"):
        c.prob()


@pytest.mark.parametrize("name", ["line", "whole", "spike"])
def test_events_outside_the_bounds_are_impossible(bounded: AnyOrderModel, name: str) -> None:
    c = Conditional(bounded)
    for event in (f"{name} > 200", f"{name} > 10", f"{name} < 0", f"{name} < -7", f"{name}=20..30"):
        assert c.prob(event).value == 0.0, event
        assert c.prob(f"{event}, other > 5").value == 0.0
        with pytest.raises(UserError, match="probability 0 under the model"):
            c.given({name: event.removeprefix(name).removeprefix("=")})["other"].mean()
        with pytest.raises(UserError, match="probability 0 under the model"):
            c.given({name: event.removeprefix(name).removeprefix("=")}).prob(f"{name} > 3")
    # What lies beyond a bound adds nothing to a range that reaches there.
    assert c.prob({name: Between(4, 200)}).value == pytest.approx(1 - c.prob(f"{name} < 4").value, abs=1e-9)
    assert c.prob({name: Between(-50, 200)}).value == pytest.approx(1, abs=1e-12)
    assert c.given({name: Between(4, 200)})[name].cdf(10) == pytest.approx(1, abs=1e-12)


def test_values_outside_the_bounds_are_impossible(bounded: AnyOrderModel) -> None:
    c = Conditional(bounded)
    assert c.prob("whole=60").value == 0.0
    assert c.prob(spike=-3).value == 0.0
    assert c.prob(whole=OneOf(60, 70)).value == 0.0
    assert c.prob(whole=OneOf(5, 60)).value == pytest.approx(c.prob(whole=5).value, rel=1e-9)
