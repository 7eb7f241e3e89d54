"""Excesses over a threshold: the law that made them is found again, and its scores are those of its tail."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from anyorder.variables.tails import TAPER, Tail
from anyorder.variables.warp import Warp


@pytest.mark.parametrize(
    ("law", "shape"), [(stats.expon(), 0.0), (stats.pareto(3), 1 / 3), (stats.norm(), 0.0), (stats.uniform(), 0.0)]
)
def test_the_shape_is_found(law: stats.rv_continuous, shape: float) -> None:
    values = np.sort(law.rvs(5000, random_state=np.random.default_rng(0)))
    assert Tail.fit(values).shape == pytest.approx(shape, abs=0.15)


def test_a_short_tail_is_short() -> None:
    """What exceeds the greatest of many uniform numbers is far less than a typical excess over the threshold."""
    values = np.sort(np.random.default_rng(0).uniform(size=2000))
    assert 0 < Tail.fit(values).scale < 0.03


@pytest.mark.parametrize("shape", [0.0, 0.3])
def test_scores_follow_the_survival_function(shape: float) -> None:
    tail = Tail(0.5, shape, 4.0)
    reach = torch.cat([torch.zeros(1, dtype=torch.float64), tail.knots()])
    score, slope = tail.scores(reach, 2.0)
    pareto = stats.genpareto(shape, scale=0.5).logsf(reach.numpy())
    wanted = stats.norm.logsf(2.0) + pareto - TAPER * (reach.numpy() / 4) ** 2
    np.testing.assert_allclose(stats.norm.logsf(score.numpy()), wanted, rtol=1e-9)
    step = 1e-6
    difference = (tail.scores(reach + step, 2.0)[0] - tail.scores((reach - step).clamp(min=0), 2.0)[0]) / (2 * step)
    np.testing.assert_allclose(slope[1:].numpy(), difference[1:].numpy(), rtol=1e-5)


def test_equal_values_at_the_end_and_few_values() -> None:
    for values in ([0.0, 1.0], [0.0, 0.0, 1.0], [0.0] + [1.0] * 50, list(range(50)) + [50] * 40):
        tail = Tail.fit(np.array(values, dtype=np.float64))
        assert 0 < tail.scale <= tail.width and math.isfinite(tail.scale)


def test_most_of_a_tail_fits_between_the_last_value_and_a_bound() -> None:
    values = np.concatenate([[0.01, 0.03, 0.04], np.linspace(0.1, 60.0, 200)])
    apart, within = (Warp.normal_scores(values, minimum_scale=0.01, bounds=(low, None)) for low in (None, 0.0))
    at = torch.tensor([0.0, 0.005, 30.0], dtype=torch.float64)
    free, bounded = (torch.special.ndtr(warp.forward(at)) for warp in (apart, within))
    assert free[1] == pytest.approx(1 / 204, rel=0.05) and bounded[1] == pytest.approx(1 / 204, rel=0.05)
    assert free[2] == pytest.approx(float(bounded[2]))  # what lies between the values stays as it is
    assert free[0] > 0.9 * free[1]
    assert bounded[0] < 0.3 * bounded[1]
