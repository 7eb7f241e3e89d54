"""Episodes of policies in the kitchen, with common random numbers: one seed is one start and one noise for all of them.

Two policies meet the same kitchen under the same seed, so their difference is taken seed by seed: its error is smaller
than that of either mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kitchen import TASKS, Kitchen, Vector

Vectors = NDArray[np.float64]


class Script(Protocol):
    """Acts in one kitchen that it may look into, as the demonstrator does."""

    def start(self, seed: int) -> None:
        """Begin an episode. All randomness comes from this seed."""

    def act(self, state: Vector) -> Vector | None:
        """The nine numbers of the next action, or None to end the episode."""


class KitchenPolicy(Protocol):
    """Acts on what is seen, in many kitchens at once."""

    def act(self, states: Vectors, seeds: Sequence[int], step: int) -> Vectors:
        """The next actions ``[episodes, 9]``. All randomness comes from the seeds of the episodes and the step."""


@dataclass
class Episode:
    """What was seen and done: one state more than actions."""

    seed: int
    states: list[Vector] = field(default_factory=list)
    actions: list[Vector] = field(default_factory=list)
    completed: dict[str, int] = field(default_factory=dict)  # task -> the step at which it was


def play(
    kitchen: Kitchen,
    policy: Script,
    seed: int,
    *,
    start_noise: float = 0.0,
) -> Episode:
    """One episode of a script."""
    episode = Episode(seed)
    episode.states.append(kitchen.reset(seed, start_noise=start_noise))
    policy.start(seed)
    while not kitchen.finished and (action := policy.act(episode.states[-1])) is not None:
        _go_on(episode, kitchen, action)
    return episode


def play_together(
    kitchens: Sequence[Kitchen],
    policy: KitchenPolicy,
    seeds: Sequence[int],
    *,
    start_noise: float = 0.0,
    look: Callable[[Kitchen], None] | None = None,
) -> list[Episode]:
    """An episode of a policy for every seed, step by step in as many kitchens as there are.

    A network needs little more time for twenty states than for one. ``look`` is called for every kitchen after every
    step, for a film.
    """
    found: list[Episode] = []
    for first in range(0, len(seeds), len(kitchens)):
        own = list(seeds[first : first + len(kitchens)])
        playing = [Episode(seed) for seed in own]
        for episode, kitchen in zip(playing, kitchens, strict=False):
            episode.states.append(kitchen.reset(episode.seed, start_noise=start_noise))
        step = 0
        while not kitchens[0].finished:
            actions = policy.act(np.stack([episode.states[-1] for episode in playing]), own, step)
            for episode, kitchen, action in zip(playing, kitchens, actions, strict=False):
                _go_on(episode, kitchen, action)
                if look is not None:
                    look(kitchen)
            step += 1
        found += playing
    return found


def _go_on(episode: Episode, kitchen: Kitchen, action: Vector) -> None:
    episode.states.append(kitchen.step(action))
    episode.actions.append(np.clip(action, -1.0, 1.0))
    for task in kitchen.completed:
        episode.completed.setdefault(task, len(episode.actions))


def mean_and_error(values: NDArray[Any]) -> tuple[float, float]:
    """Mean and its standard error; the error of a single value is infinite."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")
    return float(np.mean(values)), error


def by_task(episodes: Sequence[Episode]) -> dict[str, float]:
    """The share of episodes in which each task was completed."""
    return {task: float(np.mean([task in episode.completed for episode in episodes])) for task in TASKS}
