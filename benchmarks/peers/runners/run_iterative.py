"""scikit-learn's IterativeImputer: BayesianRidge with posterior draws, or a random forest.

It knows numbers only, and one estimator for all columns, so levels must become numbers. ``ordinal``: positions, rounded
back. ``dropped``: one indicator a level but the first, the greatest wins; with *all* indicators a level's columns
determine each other, so the imputer repeats its first fill, the most frequent level, for ever.

Every draw is a fit with a seed of its own, as scikit-learn's guide says of multiple imputation. The random forest has
no posterior to draw from, so that its 20 seeds understate the uncertainty.
30 trees and 5 rounds (not 100 and 10) keep that affordable.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (importing it is what makes the imputer available)
from sklearn.impute import IterativeImputer
from sklearn.linear_model import BayesianRidge

from exchange import DRAWS, SEED, THREADS, Task, task_from_arguments

TREES = 30
ROUNDS = 5
# Each estimator has the coding that suited it better on hidden cells of the *training* rows of penguins.
ENCODING = {"ridge": "dropped", "forest": "ordinal"}


def imputer(which: str, seed: int, trees: int = TREES, rounds: int = ROUNDS) -> IterativeImputer:
    if which == "ridge":
        return IterativeImputer(BayesianRidge(), sample_posterior=True, random_state=seed)
    forest = RandomForestRegressor(n_estimators=trees, random_state=seed, n_jobs=THREADS)
    return IterativeImputer(forest, max_iter=rounds, random_state=seed)


def encode(task: Task, values: np.ndarray, encoding: str) -> np.ndarray:
    """Levels as positions, or as one indicator for every level but the first."""
    if encoding == "ordinal":
        return values
    parts = []
    for column, name in enumerate(task.kinds):
        cells = values[:, [column]]
        if name in task.levels:
            cells = np.where(np.isnan(cells), np.nan, cells == np.arange(1, len(task.levels[name])))
        parts.append(cells)
    return np.hstack(parts)


def decode(task: Task, values: np.ndarray, encoding: str) -> np.ndarray:
    columns, place = [], 0
    for name in task.kinds:
        levels = len(task.levels.get(name, ()))
        width = levels - 1 if levels and encoding == "dropped" else 1
        cells = values[:, place : place + width]
        place += width
        if levels and encoding == "dropped":
            columns.append(np.hstack([1 - cells.sum(axis=1, keepdims=True), cells]).argmax(axis=1).astype(float))
        else:
            columns.append(np.clip(np.rint(cells[:, 0]), 0, levels - 1) if levels else cells[:, 0])
    return np.column_stack(columns)


def main() -> None:
    task, (which, *more) = task_from_arguments()
    encoding = more[0] if more else ENCODING[which]
    warnings.filterwarnings("ignore", message=".*Early stopping criterion not reached.*")
    train, test = (encode(task, task.coded(part), encoding) for part in (task.train, task.test))
    # A column without a known training cell or with one value only must keep its place.
    models = [imputer(which, SEED + number).set_params(keep_empty_features=True) for number in range(DRAWS)]
    task.timed("fit", lambda: [model.fit(train) for model in models])
    filled = task.timed("fill", lambda: [model.transform(test) for model in models])
    task.notes["levels as"] = encoding
    task.finish([decode(task, draw, encoding) for draw in filled])


if __name__ == "__main__":
    main()
