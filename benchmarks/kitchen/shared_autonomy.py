"""Shared autonomy: an operator gives some of the nine numbers of an action, a partner adds the others.

The operator is a cloned policy, as in the paper. Which numbers it gives is fixed, or drawn for every episode from its
seed. Its commands can be disturbed by normal noise, the same for every partner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from episodes import KitchenPolicy, Vectors
from kitchen import ACTIONS

Choice = Callable[[int], NDArray[np.intp]]
"""Which numbers are given in the episode of a seed."""


class Partner(Protocol):
    """Adds to an action what is not given."""

    def complete(self, states: Vectors, given: Vectors, seeds: Sequence[int], step: int) -> Vectors:
        """The whole actions ``[episodes, 9]``; NaN in ``given`` is not given."""


def always(*indices: int) -> Choice:
    """The same numbers in every episode."""
    return lambda seed: np.array(indices)


def drawn(count: int) -> Choice:
    """So many numbers, others in every episode; more of them are the same and some more."""
    return lambda seed: np.random.default_rng([seed, 4]).permutation(ACTIONS)[:count]


@dataclass(frozen=True)
class Shared:
    """What the operator gives, completed by the partner."""

    operator: KitchenPolicy
    partner: Partner
    choice: Choice
    noise: float = 0.0  # standard deviation of what disturbs each command

    def act(self, states: Vectors, seeds: Sequence[int], step: int) -> Vectors:
        """The whole actions."""
        return self.partner.complete(states, self.given(states, seeds, step), seeds, step)

    def given(self, states: Vectors, seeds: Sequence[int], step: int) -> Vectors:
        """What the operator gives; NaN elsewhere."""
        wanted = self.operator.act(states, seeds, step)
        commands = np.full(wanted.shape, np.nan)
        for row, seed in enumerate(seeds):
            indices = self.choice(seed)
            disturbed = np.random.default_rng([seed, step, 6]).normal(0.0, self.noise, ACTIONS)
            commands[row, indices] = np.clip(wanted[row] + disturbed, -1.0, 1.0)[indices]
        return commands
