"""What the benchmarks of acquisition do, against cases worked out by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "acquisition"))
from classes import by_cost
from policies import acquire, at_random, by_reward, in_order, oracle
from predictors import Array, Library, Mask, Predictor, histogram_information

from models import gaussian_model

MEAN = np.array([1.0, -2.0, 0.5])
COVARIANCE = np.array([[1.0, 0.1, 0.7], [0.1, 1.0, 0.5], [0.7, 0.5, 1.0]])


def test_histograms_of_copies_and_of_noise() -> None:
    rng = np.random.default_rng(0)
    target = rng.integers(0, 5, (20_000, 2)).astype(float)
    drawn = np.stack([target, rng.random((20_000, 2)), 3 * target + 1], axis=2)
    found = histogram_information(drawn, 0)
    assert found[:, 2] == pytest.approx(np.log(5), abs=1e-3)
    assert found[:, 1] == pytest.approx(0, abs=2e-3)
    constant = histogram_information(np.ones((10, 1, 2)), 0)
    assert constant == pytest.approx(0)


def test_a_library_model_predicts_the_conditional_mean_and_density() -> None:
    predictor = Library(gaussian_model(MEAN, COVARIANCE), 2)
    values = np.array([[2.0, -1.0, 9.0], [0.0, 0.0, 0.0]])
    known = np.array([[True, True, False], [True, False, False]])
    means, nats = predictor.predicted(values, known)
    slope = np.linalg.solve(COVARIANCE[:2, :2], COVARIANCE[:2, 2])
    assert means[0] == pytest.approx(0.5 + slope @ (values[0, :2] - MEAN[:2]), abs=1e-6)
    assert means[1] == pytest.approx(0.5 + 0.7 * (0.0 - 1.0), abs=1e-6)
    variance = 1 - 0.49
    assert nats[1] == pytest.approx(-0.5 * np.log(2 * np.pi * variance) - 0.5 * (0.0 - means[1]) ** 2 / variance)


def test_policies_on_a_gaussian() -> None:
    """Column 0 tells most about the target (2), whatever the answers are; missing cells are never acquired."""
    predictor = Library(gaussian_model(MEAN, COVARIANCE), 2)
    values = np.random.default_rng(1).multivariate_normal(MEAN, COVARIANCE, size=50)
    there = np.ones(values.shape, dtype=bool)
    there[:10, 0] = False
    for policy in (by_reward(predictor, "information", 8), by_reward(predictor, "variance", 8), in_order([0, 1])):
        predictions, truths, order = acquire(predictor, policy, values, there)
        assert order[10:].tolist() == [[0, 1]] * 40
        assert order[:10].tolist() == [[1, -1]] * 10
        assert len(predictions) == len(truths) == 3
        assert -truths[2].mean() < -truths[0].mean()
    assert predictor.fixed_order([0, 1], 16) == [0, 1]
    drawn = acquire(predictor, at_random(0), values, there)[2]
    assert set(drawn[10:, 0].tolist()) == {0, 1}
    best = acquire(predictor, oracle(predictor, lambda mean, truth: (mean - truth) ** 2), values, there)[0]
    greedy = acquire(predictor, by_reward(predictor, "information", 8), values, there)[0]
    errors = [np.mean((means[1] - values[:, 2]) ** 2) for means in (best, greedy)]
    assert errors[0] < errors[1]


def test_a_policy_never_sees_what_is_hidden() -> None:
    seen: list[Array] = []

    class Watching(Predictor):
        def predicted(self, values: Array, known: Mask) -> tuple[Array, Array]:
            return np.zeros(len(values)), np.zeros(len(values))

        def samples(self, values: Array, known: Mask, count: int, seed: int) -> Array:
            seen.append(np.where(known, 0.0, values))
            return np.zeros((count, *values.shape))

    acquire(Watching(1), by_reward(Watching(1), "histogram", 4), np.full((3, 4), 7.0), np.ones((3, 4), dtype=bool))
    assert len(seen) == 3
    assert not any(part.any() for part in seen)


def test_losses_by_cost() -> None:
    losses = np.array([[4.0, 8.0], [2.0, 6.0], [1.0, 5.0]])  # after 0, 1, 2 acquisitions, of two rows
    spent = np.array([[2.0, 3.0], [1.0, 40.0]])
    found = by_cost(losses, spent)
    assert found[:4].tolist() == [6.0, 5.0, 4.0, 3.5]
    assert found[30] == 3.5
