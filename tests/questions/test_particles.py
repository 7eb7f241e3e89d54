"""Particles inside a region carry the probability of the region, against the normal."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import norm

from anyorder.distributions.region import Interval
from anyorder.model import AnyOrderModel
from anyorder.questions.conditional import Conditional
from anyorder.questions.particles import ranged_draws
from anyorder.variables.ranges import Between

from range_oracles import COVARIANCE, MEAN, box


def test_particles_lie_inside_and_carry_the_mass(gaussian: AnyOrderModel) -> None:
    regions = {1: Interval(0.0, 1.0, 0.0, 1.0), 2: Interval(-math.inf, 0.5, -math.inf, 0.5)}
    rows = torch.zeros(50, 4, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    drawn = ranged_draws(gaussian, rows, torch.zeros(4, dtype=torch.bool), regions, generator)
    assert bool(((drawn.values[:, 1] >= 0) & (drawn.values[:, 1] <= 1) & (drawn.values[:, 2] <= 0.5)).all())
    assert drawn.known.tolist() == [False, True, True, False]
    # Every other row in the opposite order: what is drawn first has its own mass, the other that given the first.
    for rows_, one, other in ((slice(0, None, 2), 1, 2), (slice(1, None, 2), 2, 1)):
        gain = COVARIANCE[other, one] / COVARIANCE[one, one]
        left = math.sqrt(COVARIANCE[other, other] - gain * COVARIANCE[one, other])
        location = MEAN[other] + gain * (drawn.values[rows_, one].numpy() - MEAN[one])
        ends = {1: (0.0, 1.0), 2: (-math.inf, 0.5)}
        first, second = (
            norm.cdf(ends[which][1], at, scale) - norm.cdf(ends[which][0], at, scale)
            for which, at, scale in ((one, MEAN[one], math.sqrt(COVARIANCE[one, one])), (other, location, left))
        )
        assert drawn.log_weights[rows_].exp().numpy() == pytest.approx(first * second, rel=1e-9)


def test_draws_of_one_range_come_in_strata(gaussian: AnyOrderModel) -> None:
    rows, count = torch.zeros(60, 4, dtype=torch.float64), 60
    region = Interval(-0.5, 1.5, -0.5, 1.5)
    nothing = torch.zeros(4, dtype=torch.bool)
    drawn = ranged_draws(gaussian, rows, nothing, {1: region}, torch.Generator().manual_seed(0), paired=True)
    law = norm(MEAN[1], math.sqrt(COVARIANCE[1, 1]))
    level = (law.cdf(drawn.values[:, 1].numpy()) - law.cdf(-0.5)) / (law.cdf(1.5) - law.cdf(-0.5))
    stratum = np.floor(level * count / 2).astype(int)
    assert drawn.paired and (stratum[::2] == stratum[1::2]).all()
    assert sorted(stratum[::2]) == list(range(count // 2))
    assert (np.diff(stratum[::2]) < 0).any()  # in no order, so that the first few stand for all
    for regions, some in (({1: region, 2: region}, 60), ({1: region}, 59)):
        others = ranged_draws(gaussian, rows[:some], nothing, regions, torch.Generator().manual_seed(0), paired=True)
        assert not others.paired


def test_the_error_of_draws_in_strata_is_what_they_vary_by(gaussian: AnyOrderModel) -> None:
    asked = [Conditional(gaussian, {"v1": Between(-1, 3)}, draws=40, seed=seed) for seed in range(60)]
    for found in ([one.prob("v3 < 0") for one in asked], [one["v3"].mean() for one in asked]):
        spread = float(np.std([one.value for one in found]))
        told = math.sqrt(float(np.mean([one.standard_error**2 for one in found])))
        assert 0.7 < spread / told < 1.4, (spread, told)  # two standard deviations of either are 0.2
    exact = box({1: -1.0}, {1: 3.0, 3: 0.0}, {}) / box({1: -1.0}, {1: 3.0}, {})
    values = [one.prob("v3 < 0").value for one in asked]
    assert float(np.mean(values)) == pytest.approx(exact, abs=4 * float(np.std(values)) / math.sqrt(60))
