"""Excesses over a threshold: the law that made them is found again, and its scores are those of its tail."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from anyorder.variables.tails import TAPER, Tail


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
