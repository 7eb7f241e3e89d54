"""Episodes of policies in the kitchen, with common random numbers: one seed is one start and one noise for all of them.

Two policies meet the same kitchen under the same seed, so their difference is taken seed by seed: its error is smaller
than that of either mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kitchen import TASKS, Kitchen, Vector


class KitchenPolicy(Protocol):
    """Whatever acts in the kitchen."""

    def start(self, seed: int) -> None:
        """Begin an episode. All randomness of the policy comes from this seed."""

    def act(self, state: Vector) -> Vector | None:
        """The nine numbers of the next action, or None to end the episode."""


@dataclass
class Episode:
    """What was seen and done: one state more than actions."""

    seed: int
    states: list[Vector] = field(default_factory=list)
    actions: list[Vector] = field(default_factory=list)
    completed: dict[str, int] = field(default_factory=dict)  # task -> the step at which it was


def play(
    kitchen: Kitchen,
    policy: KitchenPolicy,
    seed: int,
    *,
    start_noise: float = 0.0,
    look: Callable[[Kitchen], None] | None = None,
) -> Episode:
    """One episode; ``look`` is called after every step, for a film."""
    episode = Episode(seed)
    episode.states.append(kitchen.reset(seed, start_noise=start_noise))
    policy.start(seed)
    while not kitchen.finished and (action := policy.act(episode.states[-1])) is not None:
        episode.states.append(kitchen.step(action))
        episode.actions.append(np.clip(action, -1.0, 1.0))
        for task in kitchen.completed:
            episode.completed.setdefault(task, len(episode.actions))
        if look is not None:
            look(kitchen)
    return episode


def tasks_completed(
    policies: Mapping[str, KitchenPolicy], seeds: Sequence[int], kitchen: Kitchen, *, start_noise: float = 0.0
) -> dict[str, NDArray[np.int64]]:
    """How many of the four tasks each policy completes, seed by seed."""
    return {
        name: np.array([len(play(kitchen, policy, seed, start_noise=start_noise).completed) for seed in seeds])
        for name, policy in policies.items()
    }


def mean_and_error(values: NDArray[Any]) -> tuple[float, float]:
    """Mean and its standard error; the error of a single value is infinite."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")
    return float(np.mean(values)), error


def by_task(episodes: Sequence[Episode]) -> dict[str, float]:
    """The share of episodes in which each task was completed."""
    return {task: float(np.mean([task in episode.completed for episode in episodes])) for task in TASKS}
