"""anyorder with one of its engines: fitted once, then 20 joint draws a row. A budget in minutes, or its default.

Besides the draws, which are scored as everybody's, the exact log-loss of the hidden levels is noted: the model's own
probability of the true level given the known cells of the row, with no draws between. It has a column of its own. And
the RMSE of the point fill, beside which that of the mean of the draws should not be much larger.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

import anyorder as ao

from exchange import DRAWS, SEED, THREADS, Task, read_table, task_from_arguments


def exact_log_loss(task: Task, model: ao.TableModel) -> tuple[float, int] | None:
    """Mean of -log p(true level | known cells) over hidden cells whose level training has seen, and their number."""
    truth = read_table(task.folder / "truth.csv", task.kinds)
    with np.load(task.folder / "hidden.npz") as masks:
        hidden = masks["test"]
    nats = []
    for column, name in enumerate(task.kinds):
        rows = np.flatnonzero(hidden[:, column] & truth[name].isin(task.train[name].dropna().unique()).to_numpy())
        if name not in task.levels or not len(rows):
            continue
        asked = task.test.iloc[rows].copy()
        known = asked.notna()
        asked[name] = truth[name].iloc[rows]
        nats.append(np.asarray(model.log_prob(asked, given=known, unseen="missing")))
    return (float(-np.concatenate(nats).mean()), sum(map(len, nats))) if nats else None


def point_rmse(task: Task, point: pd.DataFrame) -> float | None:
    """Root mean square error of one fill of the hidden numbers, in training standard deviations."""
    truth, train, filled = (
        task.coded(part) for part in (read_table(task.folder / "truth.csv", task.kinds), task.train, point)
    )
    with np.load(task.folder / "hidden.npz") as masks:
        hidden = masks["test"]
    unit = np.nanstd(train, axis=0)
    errors = (filled - truth) / np.where(unit > 0, unit, 1.0)
    numbers = np.array([name not in task.levels for name in task.kinds])
    squares = errors[:, numbers][hidden[:, numbers]] ** 2
    return float(np.sqrt(squares.mean())) if len(squares) else None


def main() -> None:
    task, (engine, minutes) = task_from_arguments()
    torch.set_num_threads(THREADS)
    model = task.timed(
        "fit",
        lambda: ao.fit(
            task.train,
            engine=engine,
            minutes=None if minutes == "default" else float(minutes),
            kinds=dict.fromkeys(task.levels, "categorical"),
            seed=SEED,
            config={"training": {"threads": THREADS}},
        ),
    )

    def fill() -> list[pd.DataFrame]:
        return model.fill(task.test, draws=DRAWS, seed=SEED, unseen="missing")

    filled = task.timed("fill", fill)
    exact = exact_log_loss(task, model)
    if exact is not None:
        task.notes["exact_log_loss"], task.notes["exact_cells"] = exact
    point = point_rmse(task, model.fill(task.test, seed=SEED, unseen="missing"))
    if point is not None:
        task.notes["point_rmse"] = point
    task.finish([task.coded(frame) for frame in filled])


if __name__ == "__main__":
    main()
