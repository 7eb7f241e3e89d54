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
    first = norm.cdf((1 - MEAN[1]) / math.sqrt(COVARIANCE[1, 1])) - norm.cdf(-MEAN[1] / math.sqrt(COVARIANCE[1, 1]))
    gain = COVARIANCE[2, 1] / COVARIANCE[1, 1]
    left = math.sqrt(COVARIANCE[2, 2] - gain * COVARIANCE[1, 2])
    second = norm.cdf((0.5 - MEAN[2] - gain * (drawn.values[:, 1].numpy() - MEAN[1])) / left)
    assert drawn.log_weights.exp().numpy() == pytest.approx(first * second, rel=1e-9)
