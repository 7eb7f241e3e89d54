"""How many planted errors are found: twelve wrong cells in a table, which is then fitted with them and searched.

    python benchmarks/planted_errors.py --json benchmarks/results/planted_errors.json    (about five minutes)

Twelve cells of a clean table are spoiled: five numbers lie beyond the range of their column by 0.3 to 1.3 of its width
(a slipped digit or sign), five take the value of the row that is farthest from theirs in that column (a swap), and two
levels, of columns with three or more, are others. The model is fitted to the spoiled table, as a user would, and its
``anomalies`` are listed: a planted error is found if its row stands among the first 20. Beside it the obvious
alternatives on the same table: the largest standard scores of single columns, and the scores of the whole model, which
has seen the rows, in place of the parts that have not.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from sklearn.datasets import load_wine

import anyorder as ao
from anyorder.model.leave_out import folds
from anyorder.tasks.anomalies import cell_scores

import smoke_data
from common import Json, Record, Smoke, listed, print_rows

TIMES = ("variables", "heads", "networks", "model", "training", "modalities/tables", "tasks/anomalies.py")
PLANTED, LOOKED_AT = 12, 20
TABLES = ("penguins", "wine", "concrete", "pima")


def table(name: str) -> pd.DataFrame | None:
    """A table without holes; None where its file is not at hand."""
    if name == "wine":
        return load_wine(as_frame=True).frame.assign(target=lambda frame: frame["target"].astype(str))
    files = {"penguins": "palmer_penguins.csv.gz", "pima": "pima_diabetes.csv.gz", "concrete": "uci_concrete.csv.gz"}
    path = Path(os.environ.get("ANYORDER_DATA", "no-folder-of-data")) / files[name]
    if not path.exists():
        print(f"{name}: not at hand (set ANYORDER_DATA)")
        return None
    frame = pd.read_csv(path).dropna().reset_index(drop=True)
    return frame.assign(diabetes=frame["diabetes"].astype(str)) if name == "pima" else frame


def spoiled(frame: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, list[tuple[int, str]]]:
    """The table with twelve wrong cells in as many rows, and where they are."""
    rng = np.random.default_rng(seed)
    out = frame.copy()
    numeric = [name for name in frame.columns if frame[name].dtype.kind in "if" and frame[name].nunique() > 20]
    levels = [name for name in frame.columns if frame[name].dtype.kind not in "if" and frame[name].nunique() > 2]
    rows = rng.choice(len(frame), PLANTED, replace=False).tolist()
    planted = []
    for number, row in enumerate(rows):
        name = str(rng.choice(levels if number >= 10 and levels else numeric))
        column, value = frame[name], frame[name].iloc[row]
        if name in levels:
            others = [level for level in column.unique() if level != value]
            wrong: Any = others[int(rng.integers(len(others)))]
        elif number % 2:
            wrong = column.iloc[int((column - value).abs().argmax())]
        else:
            low, high = column.min(), column.max()
            beyond = (0.3 + rng.random()) * (high - low)
            wrong = high + beyond if rng.random() < 0.5 else low - beyond
            wrong = type(value)(round(float(wrong))) if pd.api.types.is_integer_dtype(column.dtype) else float(wrong)
        out.loc[row, name] = wrong
        planted.append((row, name))
    return out, planted


def found_in(ranked: list[tuple[int, str]], planted: list[tuple[int, str]]) -> tuple[int, int, int]:
    """Planted rows and cells among the first, and the rank of the last planted cell."""
    first = ranked[:LOOKED_AT]
    rows = {row for row, _ in first}
    ranks = [ranked.index(cell) + 1 if cell in ranked else len(ranked) for cell in planted]
    return sum(row in rows for row, _ in planted), sum(cell in first for cell in planted), max(ranks)


def standard_scores(frame: pd.DataFrame) -> list[tuple[int, str]]:
    """Cells by how many standard deviations they lie from their column's mean; levels by how rare they are."""
    scores: dict[tuple[int, str], float] = {}
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            each = ((column - column.mean()) / column.std()).abs()
        else:
            each = -np.log(column.map(column.value_counts(normalize=True)).astype(float))
        scores |= {(row, name): float(score) for row, score in enumerate(each)}
    return sorted(scores, key=lambda cell: -scores[cell])


def run(name: str, frame: pd.DataFrame, minutes: float, seed: int) -> list[dict[str, Any]]:
    """One table, spoiled and searched in three ways."""
    wrong, planted = spoiled(frame, seed)
    model = ao.fit(wrong, minutes=minutes, seed=seed)
    everything = wrong.notna().to_numpy().sum()
    unseen = [(one.row, one.column) for one in model.anomalies(wrong, top=int(everything))]
    nats, tail = cell_scores(model.core, wrong, whole=True)
    order = np.lexsort([-nats.to_numpy().ravel(), tail.to_numpy().ravel()])
    seen = [(int(at) // frame.shape[1], str(frame.columns[int(at) % frame.shape[1]])) for at in order]
    lines = []
    for way, ranked in (
        (f"parts that have not seen the row ({folds(model.core)} folds)", unseen),
        ("the whole model, which has", seen),
        ("standard scores", standard_scores(wrong)),
    ):
        rows, cells, last = found_in(ranked, planted)
        line = {"table": name, "seed": seed, "scored by": way, "rows found": rows, "cells found": cells}
        lines.append({**line, "of": len(planted), "rank of the last": last})
    return lines


def main(
    minutes: Annotated[float, typer.Option(help="training budget per table")] = 0.5,
    tables: Annotated[str, typer.Option(help="comma-separated; all by default")] = "",
    seeds: Annotated[int, typer.Option(help="how many sets of errors a table")] = 1,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Spoil, fit, search, print."""
    torch.set_num_threads(1)
    record, names = Record(json, smoke=smoke), listed(tables, list(TABLES))
    found = {"generated": smoke_data.numbers()} if smoke else {name: table(name) for name in names}
    frames = {name: frame for name, frame in found.items() if frame is not None}
    minutes = smoke_data.MINUTES if smoke else minutes
    rows = [line for name, frame in frames.items() for seed in range(seeds) for line in run(name, frame, minutes, seed)]
    print_rows(rows)
    record.write(
        {
            "title": "Planted errors",
            "about": f"{PLANTED} wrong cells in a table that is fitted with them ({minutes:g} minutes); found: among "
            f"the {LOOKED_AT} least probable cells.",
            "seed": 0,
            "rows": rows,
        }
    )


if __name__ == "__main__":
    typer.run(main)
