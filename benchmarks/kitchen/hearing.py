"""What a partner hears: how far the numbers that it adds are from those of new demonstrations.

In the simulator a partner is judged by tasks, which also tells how well the pair recovers from its own mistakes. Here
it only has to guess the rest of an action that was done, given nothing of it, given a part of it as it was done, or
given the same part as the operator would have done it. A partner that hears gains from the second as much as there is
to hear; a cloned operator, which knows no more than the state, has nothing to tell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from episodes import KitchenPolicy
from full_autonomy import ACTION_NAMES
from kitchen import ACTIONS
from shared_autonomy import Choice, Partner

NOTHING, DONE, CLONED = "nothing", "what was done", "what the operator would do"
HEARD = (NOTHING, DONE, CLONED)


def errors(frame: pd.DataFrame, partner: Partner, operator: KitchenPolicy, choice: Choice, heard: str) -> list[float]:
    """The mean squared error of what is added in each episode, as a share of the variance of that number."""
    states = frame[[name for name in frame.columns if name.startswith("state_")]].to_numpy(dtype=np.float64)
    done = frame[ACTION_NAMES].to_numpy(dtype=np.float64)
    episodes = frame["episode"].to_numpy()
    given = chosen(choice, episodes.tolist())
    told = operator.act(states, [0], 0) if heard == CLONED else done
    commands = np.where(given & (heard != NOTHING), told, np.nan)
    added = partner.complete(states, commands, [0], 0)
    shares = ((added - done) / done.std(axis=0)) ** 2
    return [float(shares[own][~given[own]].mean()) for own in (episodes == one for one in np.unique(episodes))]


def chosen(choice: Choice, episodes: Sequence[int]) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Which numbers are given in each row: those of its episode."""
    marks = np.zeros((len(episodes), ACTIONS), dtype=bool)
    for row, episode in enumerate(episodes):
        marks[row, choice(int(episode))] = True
    return marks
