"""Particles inside a region carry the probability of the region, against the normal."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import norm

from anyorder.distributions.region import Interval
from anyorder.model import AnyOrderModel
from anyorder.questions.particles import ranged_draws

from range_oracles import COVARIANCE, MEAN


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
