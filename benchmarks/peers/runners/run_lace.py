"""pylace 0.10.1 (CrossCat, in Rust): 8 chains of 500 sweeps, then draws given the known cells of each row.

The numbers of chains and sweeps are our choice, not tuned and not checked for convergence; the transitions are the
default ones. A row's holes are drawn jointly, in one call a row.
A table without an index gets one, since the engine wants rows with names.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars
from lace import Engine

from exchange import DRAWS, SEED, task_from_arguments

CHAINS = 8
SWEEPS = 500


def main() -> None:
    task, _ = task_from_arguments()
    # Names of our own: the engine refuses some that tables have, and reads whole numbers as counts.
    names = {name: f"c{column}" for column, name in enumerate(task.kinds)}
    seen = {name: set(task.train[name].dropna()) for name in task.categorical}
    train = polars.DataFrame(
        {"ID": [f"r{row}" for row in range(len(task.train))]}
        | {
            names[name]: polars.Series(
                [None if pd.isna(cell) else cell for cell in task.train[name]],
                dtype=polars.String if name in task.levels else polars.Float64,
            )
            for name in task.kinds
        }
    )

    def fit() -> Engine:
        engine = Engine.from_df(train, n_states=CHAINS, rng_seed=SEED)
        engine.update(SWEEPS, quiet=True)
        return engine

    engine = task.timed("fit", fit)

    def fill() -> list[pd.DataFrame]:
        draws = [task.test.copy() for _ in range(DRAWS)]
        for row in range(len(task.test)):
            cells = task.test.iloc[row]
            holes = [name for name in task.kinds if pd.isna(cells[name])]
            if not holes:
                continue
            # A level that training has not is no evidence for an engine that does not know it.
            known = {
                names[name]: cells[name]
                for name in task.kinds
                if name not in holes and (name not in seen or cells[name] in seen[name])
            }
            found = engine.simulate([names[name] for name in holes], given=known or None, n=DRAWS)
            for column, name in enumerate(holes):
                place = task.test.columns.get_loc(name)
                for draw, value in zip(draws, found.to_series(column).to_list(), strict=True):
                    draw.iat[row, place] = value
        return draws

    filled = task.timed("fill", fill)
    task.finish([np.asarray(task.coded(frame)) for frame in filled])


if __name__ == "__main__":
    main()
