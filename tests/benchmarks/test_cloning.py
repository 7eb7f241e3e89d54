"""Behavioural cloning against a policy that is known."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "kitchen"))
from cloning import Cloned, Schedule

NOISE = 0.1
WEIGHTS = np.array([[0.3, -0.2], [0.1, 0.4], [0.0, 0.0]])


def demonstrations(episodes: int = 40, steps: int = 50) -> pd.DataFrame:
    """action = tanh(state W) + noise; the last column of the state is a constant with a little noise."""
    rng = np.random.default_rng(0)
    states = rng.standard_normal((episodes * steps, 3))
    states[:, 2] = 2.0 + 1e-4 * states[:, 2]
    actions = np.tanh(states @ WEIGHTS) + NOISE * rng.standard_normal((len(states), 2))
    frame = pd.DataFrame(
        np.concatenate([states, actions], axis=1),
        columns=[*("state_0", "state_1", "state_2"), *("action_0", "action_1")],
    )
    return frame.assign(episode=np.repeat(np.arange(episodes), steps), step=np.tile(np.arange(steps), episodes))


def test_cloning_learns_the_mean_and_leaves_the_noise(tmp_path: Path) -> None:
    policy = Cloned.learn(demonstrations(), Schedule(width=32, depth=2, epochs=20, batch=64), seed=0)
    assert policy.held_out == pytest.approx(NOISE**2, rel=0.2)
    grid = np.array([[0.5, -0.5, 2.0], [-1.0, 1.0, 2.0], [0.0, 0.0, 2.0]])
    np.testing.assert_allclose(policy.mean(grid), np.tanh(grid @ WEIGHTS), atol=0.05)
    # It reads its own columns of the state, hears nothing of what is given, and is the same once saved and loaded.
    given = np.array([[np.nan, 0.5]] * 3)
    np.testing.assert_array_equal(policy.complete(grid, given, range(3), 0)[:, 1], given[:, 1])
    np.testing.assert_array_equal(policy.complete(grid, given, range(3), 0)[:, 0], policy.mean(grid)[:, 0])
    policy.save(tmp_path / "clone.safetensors")
    again = Cloned.load(tmp_path / "clone.safetensors")
    np.testing.assert_array_equal(again.act(grid, range(3), 0), policy.mean(grid))
    # A column that never moved in the demonstrations is not blown up when it does.
    np.testing.assert_allclose(policy.mean(grid + np.array([0, 0, 0.001])), policy.mean(grid), atol=0.03)


def test_a_seed_is_one_policy() -> None:
    frame, schedule = demonstrations(5), Schedule(width=8, depth=1, epochs=1)
    one, again, other = (Cloned.learn(frame, schedule, seed=seed) for seed in (0, 0, 1))
    states = frame.filter(like="state_").to_numpy()
    np.testing.assert_array_equal(one.mean(states), again.mean(states))
    assert (one.mean(states) != other.mean(states)).any()
