"""How long the quantiles of one column take for every row of a table: all rows at once, and one by one.

    python benchmarks/batch_conditionals.py --json benchmarks/results/batch_conditionals.json    (two minutes)

Scikit-learn's wine, three cells in ten unknown, a model of each engine. The rows are asked by ``model.given(frame)``
and, the obvious alternative, by one ``model.given(...)`` a row; both in seconds of the processor. Of the single
questions only some are asked, and their time is scaled to all rows. The largest difference of the answers is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from sklearn.datasets import load_wine

import anyorder as ao

from common import Json, Record, Smoke, print_rows

TIMES = ("questions", "model", "networks", "heads", "variables")
LEVELS = [0.05, 0.5, 0.95]
ASKED = "alcohol"


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, and what came back; the best of three."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        found = work()
        best = min(best, time.process_time() - began)
    return best, found


def main(
    minutes: Annotated[float, typer.Option(help="training budget")] = 0.5,
    count: Annotated[int, typer.Option(help="rows that are asked for")] = 1000,
    single: Annotated[int, typer.Option(help="rows that are asked one by one")] = 50,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Print how many times quicker all rows at once are."""
    record = Record(json, smoke=smoke)
    wine = load_wine(as_frame=True).frame.astype({"target": str})
    budget: dict[str, Any] = {}
    if smoke:
        count, single = 20, 3
        budget = {"training": {"minutes": None, "steps": 2}, "trees": {"rounds": 2, "members": 1}, "folds": 1}
    rng = np.random.default_rng(0)
    frame = wine.drop(columns=ASKED).iloc[rng.integers(0, len(wine), count)].reset_index(drop=True)
    frame = frame.mask(rng.random(frame.shape) < 0.3)
    cases = [
        {name: cell for name, cell in row.items() if not pd.isna(cell)} for row in frame.head(single).to_dict("records")
    ]
    rows = []
    for engine in ("neural", "trees", "auto"):
        model = ao.fit(wine, engine=engine, minutes=None if smoke else minutes, config=budget, seed=0)
        together, found = timed(lambda: model.given(frame)[ASKED].quantile(LEVELS))  # noqa: B023 (called at once)
        alone, answers = timed(lambda: [model.given(case)[ASKED].quantile(LEVELS) for case in cases])  # noqa: B023 (called at once)
        apart = float(np.abs(found.head(single).to_numpy() - np.array(answers, dtype=float)).max())
        seconds = alone * count / single
        row: dict[str, Any] = {"engine": engine, "at_once": round(together, 4), "one_by_one": round(seconds, 3)}
        rows.append(row | {"times_quicker": round(seconds / together, 1), "largest_difference": float(f"{apart:.1e}")})
    print_rows(rows)
    about = (
        f"Three quantiles of one column for {count:,} rows of wine, three cells in ten unknown: seconds of the "
        f"processor, best of three. One by one: {single} rows, scaled."
    )
    record.write({"title": "Conditionals of many rows", "about": about, "seed": 0, "rows": rows})


if __name__ == "__main__":
    typer.run(main)
