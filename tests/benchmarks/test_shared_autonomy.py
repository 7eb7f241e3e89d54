"""Shared autonomy in the kitchen: what the operator gives stays, and only what is not given is added."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "kitchen"))
from episodes import Vectors
from full_autonomy import ACTION_NAMES, AnyOrder, Schedule, learn, moving
from kitchen import ACTIONS
from shared_autonomy import Shared, always, drawn

SEEDS = (3, 4)


class Constant:
    """Always sends the same number; as a partner it notes what it was given."""

    def __init__(self, number: float) -> None:
        self.number = number

    def act(self, states: Vectors, seeds: Sequence[int], step: int) -> Vectors:
        return np.full((len(states), ACTIONS), self.number)

    def complete(self, states: Vectors, given: Vectors, seeds: Sequence[int], step: int) -> Vectors:
        return np.where(np.isnan(given), self.number, given)


def test_an_action_has_what_is_given_and_beside_it_the_partners() -> None:
    actions = Shared(Constant(0.5), Constant(-0.25), always(0, 7)).act(np.zeros((2, 59)), SEEDS, 0)
    expected = np.full((2, ACTIONS), -0.25)
    expected[:, [0, 7]] = 0.5
    np.testing.assert_array_equal(actions, expected)


def test_numbers_drawn_depend_on_the_episode_alone_and_more_of_them_hold_the_fewer() -> None:
    chosen = [tuple(drawn(4)(seed)) for seed in range(200)]
    assert chosen == [tuple(drawn(4)(seed)) for seed in range(200)]
    assert all(set(drawn(3)(seed)) < set(own) for seed, own in enumerate(chosen))
    shares = np.bincount(np.concatenate(chosen), minlength=ACTIONS) / len(chosen)
    # Each of nine is among four with probability 4/9: five standard errors of a share of 200.
    np.testing.assert_allclose(shares, 4 / 9, atol=5 * np.sqrt(4 / 9 * 5 / 9 / 200))


def test_commands_are_disturbed_by_so_much_and_alike_for_all_partners() -> None:
    def given(step: int, partner: float) -> Vectors:
        return Shared(Constant(0.0), Constant(partner), always(1, 2), noise=0.1).given(np.zeros((2, 59)), SEEDS, step)

    np.testing.assert_array_equal(given(5, 0.0), given(5, 1.0))
    noise = np.array([given(step, 0.0)[:, [1, 2]] for step in range(300)])
    assert noise.std() == pytest.approx(0.1, rel=0.1)
    assert np.isnan(given(0, 0.0)[:, [0, 3, 8]]).all()


def test_an_any_order_policy_hears_what_is_given() -> None:
    """Every action is one of two, the same for all nine: whoever gives one of them decides the others."""
    rng = np.random.default_rng(0)
    side = rng.choice([-0.5, 0.5], 600)[:, None]
    frame = pd.DataFrame(side + 0.05 * rng.standard_normal((600, ACTIONS)), columns=ACTION_NAMES)
    frame["state_0"], frame["state_5"] = rng.standard_normal(600), 1e-4 * rng.standard_normal(600)
    assert list(moving(frame).filter(like="state_")) == ["state_0"]
    schedule = Schedule(width=32, blocks=1, components=3, steps=250, batch=128, rate=3e-3)
    policy = AnyOrder(learn(moving(frame), "MAC order", schedule, seed=0), draws=4)
    states = np.zeros((40, 59))
    given = np.full((40, ACTIONS), np.nan)
    given[:, 3] = np.repeat([-0.5, 0.5], 20)
    actions = policy.complete(states, given, range(40), 0)
    np.testing.assert_array_equal(actions[:, 3], given[:, 3])
    assert (np.sign(actions) == np.sign(given[:, [3]])).mean() > 0.95
    np.testing.assert_array_equal(actions, policy.complete(states, given, range(40), 0))
    alone = policy.act(states, range(40), 1)
    assert 5 < (alone[:, 0] > 0).sum() < 35
