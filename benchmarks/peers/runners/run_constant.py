"""Two methods that look at no other cell: mean or most frequent level, and the hot deck.

``mean``: every draw is the column's training mean (most frequent level): what SimpleImputer does. ``hotdeck``: every
draw is a random known training cell of the same column, so the margins are right and nothing else.
"""

from __future__ import annotations

import numpy as np

from exchange import DRAWS, SEED, task_from_arguments


def main() -> None:
    task, (which,) = task_from_arguments()
    train, test = task.coded(task.train), task.coded(task.test)
    known = task.timed("fit", lambda: [column[~np.isnan(column)] for column in train.T])
    rng = np.random.default_rng(SEED)

    def fill() -> np.ndarray:
        draws = np.repeat(test[None], DRAWS, axis=0)
        for column, name in enumerate(task.kinds):
            holes = np.isnan(test[:, column])
            if which == "hotdeck":
                draws[:, holes, column] = rng.choice(known[column], (DRAWS, holes.sum()))
            elif name in task.levels:
                draws[:, holes, column] = np.bincount(known[column].astype(int)).argmax()
            else:
                draws[:, holes, column] = known[column].mean()
        return draws

    task.finish(task.timed("fill", fill))


if __name__ == "__main__":
    main()
