"""An any-order policy: p(action | state) of demonstrations, one mixture of Gaussians for each action given any others.

    log p(action | state) = sum over t of log p(action_{u_t} | state, action_{u_<t})

along an order u. MAC's is canonical, and the known sets to learn from are those that this order induces, of questions
without and with a part of the action given, larger ones more often; ARDM's is random, and all sets of a size are alike.
Alone such a policy decides all nine numbers (the paper's row of full autonomy); beside a person it adds what is not
given, given it. What is done is the mean of each of the other actions, or the most probable of some joint draws. A
column of the state that hardly moves in the demonstrations is left out: it would be standardised like the others, and a
nudge of another knob would then be far from all that the network has seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import anyorder as ao

from episodes import Vectors
from kitchen import ACTIONS

ACTION_NAMES = [f"action_{index}" for index in range(ACTIONS)]
LEAST = 0.01  # rad or m, and per second: a column with a smaller standard deviation hardly moves
ORDERS: dict[str, dict[str, Any]] = {
    "MAC order": {
        "protocol": {"name": "canonical"},
        "masking": {
            "name": "mixture",
            "maskings": [
                {"name": "cardinality"},
                {"name": "conditional", "evidence": {"name": "cardinality", "least": 0, "spare": 1}},
            ],
            "weights": [0.5, 0.5],
        },
        "objective": {"name": "parallel", "reweight": True},
    },
    "random order (ARDM)": {
        "protocol": {"name": "random"},
        "masking": {"name": "univariate"},
        "objective": {"name": "parallel"},
    },
}


@dataclass(frozen=True)
class Schedule:
    """How a policy is trained; the defaults take about five minutes on one core."""

    width: int = 256
    blocks: int = 4
    components: int = 20  # Gaussians of each mixture, as in the paper
    steps: int = 6_000
    batch: int = 256
    rate: float = 1e-3


def moving(frame: pd.DataFrame) -> pd.DataFrame:
    """The demonstrations without the columns of the state that hardly move."""
    still = [name for name in frame.columns if name.startswith("state_") and frame[name].std() < LEAST]
    return frame.drop(columns=still)


def learn(frame: pd.DataFrame, order: str, schedule: Schedule, *, seed: int) -> ao.TableModel:
    """A model of the actions given the state, in the form that ``anyorder.data.demonstrations`` reads."""
    states = [name for name in frame.columns if name.startswith("state_")]
    config: dict[str, Any] = {
        "encoding": "standard",
        "components": schedule.components,
        "dependencies": False,
        "folds": 1,
        **ORDERS[order],
        "network": {"name": "residual_mlp", "width": schedule.width, "blocks": schedule.blocks, "dropout": 0.0},
        "training": {
            "steps": schedule.steps,
            "minutes": None,
            "batch": schedule.batch,
            "learning_rate": schedule.rate,
            # Neighbouring steps of an episode are nearly the same: held-out rows cannot say when to stop.
            "early_stopping": False,
            "cool_down": 0.5,
            "validate_every": max(schedule.steps // 10, 1),
            "threads": 1,
        },
    }
    return ao.fit(
        frame[[*states, *ACTION_NAMES]], context=states, engine="neural", seed=seed, config=config, progress=False
    )


class AnyOrder:
    """A learned policy in the kitchen, alone or beside somebody who gives a part of the action."""

    def __init__(self, model: ao.TableModel | str | Path, *, draws: int) -> None:
        """``draws``: of which the most probable is done; 0 for means."""
        self.policy = ao.Policy(ao.load(model) if isinstance(model, str | Path) else model, bounds=(-1, 1))
        self._how: dict[str, Any] = {"how": "most probable", "draws": draws} if draws else {"how": "mean"}
        self._seen = [int(name.removeprefix("state_")) for name in self.policy.state]

    def act(self, states: Vectors, seeds: Sequence[int], step: int) -> Vectors:
        """All nine numbers."""
        return self.complete(states, np.full((len(states), ACTIONS), np.nan), seeds, step)

    def complete(self, states: Vectors, given: Vectors, seeds: Sequence[int], step: int) -> Vectors:
        """What is given, and the rest given it; NaN is not given."""
        own = int(np.random.default_rng([*seeds, step]).integers(2**31))
        commands = pd.DataFrame(given, columns=ACTION_NAMES)
        with warnings.catch_warnings():  # states and commands far from all demonstrations: that is what is tried here
            warnings.simplefilter("ignore", UserWarning)
            actions = self.policy.act(states[:, self._seen], given=commands, seed=own, as_array=True, **self._how)
        return np.asarray(actions, dtype=np.float64)
