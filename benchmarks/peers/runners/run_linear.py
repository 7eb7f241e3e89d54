"""Linear and logistic regressions in a chain: the plainest method that looks at the other cells.

Every column has a regression on all others: ridge with normal residuals for a number, logistic regression for levels.
Holes are first filled by cells of the same column; then, five times over, every regression is fitted to the rows whose
cell is known and the holes are drawn from it. The last regressions draw the holes of the test rows, in five sweeps for
each of the 20 draws.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from exchange import DRAWS, SEED, Task, task_from_arguments

ROUNDS = 5
STEPS = 100


@dataclass
class Regression:
    """The law of one column given the others."""

    model: Any
    deviation: float = 0.0
    """Of the residuals; 0 for levels."""

    def draw(self, inputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if not hasattr(self.model, "predict"):  # a column of one value
            return np.full(len(inputs), self.model)
        if hasattr(self.model, "predict_proba"):
            reached = np.cumsum(self.model.predict_proba(inputs), axis=1)
            place = (rng.random((len(inputs), 1)) > reached).sum(axis=1)
            return self.model.classes_[np.minimum(place, reached.shape[1] - 1)].astype(float)
        return self.model.predict(inputs) + self.deviation * rng.standard_normal(len(inputs))


class Chain:
    """Regressions for all columns of a task, and how rows become their inputs."""

    def __init__(self, task: Task, train: np.ndarray) -> None:
        self.levels = [len(task.levels.get(name, ())) for name in task.kinds]
        self.centre = np.nanmean(train, axis=0)
        spread = np.nanstd(train, axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)

    def inputs(self, rows: np.ndarray, without: int) -> np.ndarray:
        parts = []
        for column, levels in enumerate(self.levels):
            if column == without:
                continue
            cells = rows[:, [column]]
            parts.append(cells == np.arange(levels) if levels else (cells - self.centre[column]) / self.spread[column])
        return np.hstack(parts).astype(float)

    def fit(self, rows: np.ndarray, known: np.ndarray, column: int) -> Regression:
        inputs, cells = self.inputs(rows, column)[known], rows[known, column]
        if len(np.unique(cells)) == 1:
            return Regression(cells[0])
        if self.levels[column]:
            return Regression(LogisticRegression(max_iter=STEPS).fit(inputs, cells.astype(int)))
        model = Ridge(alpha=1.0).fit(inputs, cells)
        spare = max(len(cells) - inputs.shape[1] - 1, len(cells) // 2)
        return Regression(model, float(np.sqrt(((cells - model.predict(inputs)) ** 2).sum() / spare)))


def started(rows: np.ndarray, known: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """The rows with every hole filled by a training cell of its column."""
    filled = rows.copy()
    for column, cells in enumerate(known):
        holes = np.isnan(rows[:, column])
        filled[holes, column] = rng.choice(cells, holes.sum())
    return filled


def main() -> None:
    warnings.filterwarnings("ignore")
    task, _ = task_from_arguments()
    train, test = task.coded(task.train), task.coded(task.test)
    rng = np.random.default_rng(SEED)
    known = [column[~np.isnan(column)] for column in train.T]
    chain = Chain(task, train)
    columns = range(train.shape[1])

    def fit() -> list[Regression]:
        rows = started(train, known, rng)
        for _ in range(ROUNDS):
            fitted = []
            for column in columns:
                holes = np.isnan(train[:, column])
                fitted.append(chain.fit(rows, ~holes, column))
                if holes.any():
                    rows[holes, column] = fitted[-1].draw(chain.inputs(rows, column)[holes], rng)
        return fitted

    regressions = task.timed("fit", fit)

    def fill() -> list[np.ndarray]:
        copies = np.tile(test, (DRAWS, 1))
        rows = started(copies, known, rng)
        for _ in range(ROUNDS):
            for column in columns:
                holes = np.isnan(copies[:, column])
                if holes.any():
                    rows[holes, column] = regressions[column].draw(chain.inputs(rows[holes], column), rng)
        return list(rows.reshape(DRAWS, *test.shape))

    task.finish(task.timed("fill", fill))


if __name__ == "__main__":
    main()
