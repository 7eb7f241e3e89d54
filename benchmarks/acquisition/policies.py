"""Acquiring column after column for every row of a test set, under a policy, and what is known of the target then."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from predictors import Array, Library, Mask, Predictor

Policy = Callable[[Array, Mask, int], Array]
"""Values, what is known and the step -> a score for every column [rows, variables]; the greatest is acquired next."""


def by_reward(predictor: Predictor, reward: str, draws: int) -> Policy:
    """Greedy by the expected gain."""
    return lambda values, known, step: predictor.gains(reward, hidden(values, known), known, draws, seed=step)


def at_random(seed: int) -> Policy:
    """Any column that is unknown."""
    generator = np.random.default_rng(seed)
    return lambda values, known, step: generator.random(values.shape)


def in_order(order: list[int]) -> Policy:
    """The same order for every row."""
    score = {place: -float(rank) for rank, place in enumerate(order)}

    def policy(values: Array, known: Mask, step: int) -> Array:
        return np.array([[score.get(place, -np.inf) for place in range(values.shape[1])]] * len(values))

    return policy


def oracle(predictor: Library, loss: Callable[[Array, Array], Array]) -> Policy:
    """Greedy with the answers seen: tries every column's true value and takes the one after which the loss is least."""

    def policy(values: Array, known: Mask, step: int) -> Array:
        scores = np.full(values.shape, -np.inf)
        for place in range(values.shape[1]):
            if place != predictor.target:
                after = known.copy()
                after[:, place] = True
                predicted, _ = predictor.predicted(values, after)
                scores[:, place] = -loss(predicted, values[:, predictor.target])
        return scores

    return policy


def hidden(values: Array, known: Mask) -> Array:
    """What is unknown is not there to be looked at."""
    return np.where(known, values, 0.0)


def acquire(
    predictor: Predictor, policy: Policy, values: Array, there: Mask, most: int | None = None
) -> tuple[list[Array], list[Array], Array]:
    """Predictions and log p of the truth after 0, 1, ... acquisitions, and the order of columns [rows, steps].

    ``there`` says which cells exist: what is missing in the test table cannot be acquired. A row that has nothing left
    stays as it is (-1 in the order).
    """
    known = np.zeros(values.shape, dtype=bool)
    columns = int((there.sum(axis=1) - there[:, predictor.target]).max())
    predictions, truths, order = [], [], []
    rows = np.arange(len(values))
    for step in range(min(columns, most or columns) + 1):
        predicted, truth = predictor.predicted(values, known)
        predictions.append(predicted)
        truths.append(truth)
        if step == min(columns, most or columns):
            break
        scores = np.where(there & ~known, policy(values, known, step), -np.inf)
        scores[:, predictor.target] = -np.inf
        chosen = scores.argmax(axis=1)
        possible = np.isfinite(scores[rows, chosen])
        known[rows[possible], chosen[possible]] = True
        order.append(np.where(possible, chosen, -1))
    return predictions, truths, np.stack(order, axis=1)
