"""Oracles of ranges: boxes of a multivariate normal, sums over a table, and what counts as close to them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
from scipy.stats import multivariate_normal, norm

from anyorder.model import AnyOrderModel
from anyorder.protocols import Canonical
from anyorder.query import Query
from anyorder.questions.estimate import Estimate

from models import LEVELS

SCALE = 2.0  # of the units of the data, so that a forgotten Jacobian shows
MEAN = np.array([0.3, -0.5, 1.0, 0.2])
ROOT = np.array([[1.0, 0.0, 0.0, 0.0], [0.7, 0.8, 0.0, 0.0], [-0.4, 0.5, 0.9, 0.0], [0.6, -0.3, 0.4, 0.7]])
COVARIANCE = ROOT @ ROOT.T


def box(low: dict[int, float], high: dict[int, float], given: dict[int, float]) -> float:
    """P(low < x < high | given) of the normal, in the units of the data."""
    positions = sorted(low | high)
    known = sorted(given)
    mean, covariance = SCALE * MEAN, SCALE**2 * COVARIANCE
    location, spread = mean[positions], covariance[np.ix_(positions, positions)]
    if known:
        gain = covariance[np.ix_(positions, known)] @ np.linalg.inv(covariance[np.ix_(known, known)])
        location = location + gain @ (np.array([given[i] for i in known]) - mean[known])
        spread = spread - gain @ covariance[np.ix_(known, positions)]
    law = multivariate_normal(location, spread, seed=0, abseps=1e-7, maxpts=200_000)  # random points: seeded, and many
    lower, upper = ([ends.get(at, far) for at in positions] for ends, far in ((low, -50.0), (high, 50.0)))
    return float(law.cdf(upper, lower_limit=lower))


def close(found: float, truth: float, extra: float = 1e-9) -> None:
    """Within four standard errors (and the error of the oracle itself)."""
    assert isinstance(found, Estimate)
    assert abs(found.value - truth) <= 4 * found.standard_error + extra, (found, truth)


def slope_of_the_cdf(position: float, below: float) -> float:
    ends = [box({1: -1.0, 2: 0.0}, {2: 4.0, 3: position + step}, {0: 1.0}) / below for step in (-0.05, 0.05)]
    return (ends[1] - ends[0]) / 0.1


def above_above_below(first: float, second: float, third: float) -> float:
    """P(x0 > first, x1 > second, x2 < third) by two nested Gauss rules over the Cholesky coordinates."""
    nodes, weights = np.polynomial.legendre.leggauss(200)

    def above(low: float) -> tuple[np.ndarray, np.ndarray]:
        return low + 4 * (1 + nodes), 4 * weights

    total = 0.0
    for a, wa in zip(*above((first / SCALE - MEAN[0]) / ROOT[0, 0]), strict=True):
        b, wb = above((second / SCALE - MEAN[1] - ROOT[1, 0] * a) / ROOT[1, 1])
        c = norm.cdf((third / SCALE - MEAN[2] - ROOT[2, 0] * a - ROOT[2, 1] * b) / ROOT[2, 2])
        total += wa * norm.pdf(a) * float((wb * norm.pdf(b) * c).sum())
    return float(total)


def joint(model: AnyOrderModel, order: tuple[int, ...] = (0, 1, 2, 3)) -> np.ndarray:
    """The chain's joint distribution over all cells, in the model's own order or another, by enumeration."""
    cells = torch.tensor(list(itertools.product(*map(range, LEVELS))), dtype=torch.float64)
    everything = torch.ones(cells.shape, dtype=torch.bool)
    chain = Canonical(order=order).chain(Query(~everything, everything))
    with torch.no_grad():
        nats = model.step_log_prob(cells, chain).double().sum(1)
    return np.asarray(nats.exp().reshape(LEVELS))


def density_given_a_range(low: float, high: float, grid: np.ndarray) -> np.ndarray:
    """The density of v3 given low <= v0 <= high: its own normal times the probability of the range given v3."""
    mean, covariance = SCALE * MEAN, SCALE**2 * COVARIANCE
    slope = covariance[0, 3] / covariance[3, 3]
    location = mean[0] + slope * (grid - mean[3])
    rest = math.sqrt(covariance[0, 0] - slope * covariance[0, 3])
    held = norm.cdf((high - location) / rest) - norm.cdf((low - location) / rest)
    density = norm.pdf(grid, mean[3], math.sqrt(covariance[3, 3])) * held
    return np.asarray(density / np.trapezoid(density, grid))
