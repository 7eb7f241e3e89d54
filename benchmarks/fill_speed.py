"""How long 20 draws for every hole of a table of 10,000 rows and 15 columns take, beside two peers.

    python benchmarks/fill_speed.py [--work build/peers] --json benchmarks/results/fill_speed.json    (an hour)

A generated mixed table (ten numbers, five columns of levels), a fifth of its cells missing completely at random. A
method is timed from the table with holes to 20 filled tables, fitting included: miceforest and IterativeImputer fit
anew for each table, anyorder fits once. ``--draws`` gives the peers fewer draws; their seconds are then scaled in
proportion, which is right because every draw of theirs is a chain of its own, and the result says so. The plain
baseline is the mean or most frequent level. What is done is not done again unless asked for; every row says at which
commit it was made.
"""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

import smoke_data
from common import Json, Record, Smoke, listed

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

import exchange
from methods import METHODS, OWN, file_name
from run import run_method

TIMES = ("variables", "heads", "networks", "model", "training", "tasks/imputation.py", "modalities/tables")
ROWS = 10_000
MISSING = 0.2
COMPARED = ("mean/mode", "miceforest", "random forest", "anyorder neural", "anyorder trees", "anyorder auto")
ITS_OWN_CHAIN = ("miceforest", "random forest")
"""Methods whose every draw is fitted by itself, so that seconds grow in proportion to the draws."""


def mixed_table(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """Ten numbers that depend on four hidden ones, bent in different ways, and five columns of 2 to 6 levels."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((rows, 4))
    linear = hidden @ rng.standard_normal((4, 10)) + 0.3 * rng.standard_normal((rows, 10))
    bends = (lambda x: x, np.exp, np.sin, lambda x: x**2, np.round)
    columns: dict[str, Any] = {f"number{i}": bends[i % 5](linear[:, i] / 2) for i in range(10)}
    for i, levels in enumerate((2, 3, 4, 5, 6)):
        scores = hidden @ rng.standard_normal((4, levels)) + rng.gumbel(size=(rows, levels))
        columns[f"level{i}"] = np.array([f"level {k}" for k in range(levels)], dtype=object)[scores.argmax(axis=1)]
    return pd.DataFrame(columns)


def make_task(work: Path, count: int = ROWS) -> Path:
    """The table with holes; it is filled itself, so training and test rows are the same."""
    folder = work / "tables" / "speed"
    if not (folder / "columns.json").exists():
        frame = mixed_table(count)
        hidden = np.random.default_rng(1).random(frame.shape) < MISSING
        levels = {name: sorted(frame[name].unique()) for name in frame.columns if name.startswith("level")}
        kinds = {name: "categorical" if name in levels else "numeric" for name in frame.columns}
        rows = np.arange(len(frame))
        exchange.write_task(folder, frame, hidden, rows, rows, {"kinds": kinds, "levels": levels})
    return folder


def measured(method: str, answer: Path) -> dict[str, Any]:
    """Seconds of one finished method, scaled to 20 draws where it made fewer."""
    about = json_format.loads(answer.with_suffix(".json").read_text(encoding="utf-8"))
    row: dict[str, Any] = {"method": method}
    if "error" in about:
        return row | {"error": about["error"]}
    draws = about["draws"]
    scale = exchange.DRAWS / draws if method in ITS_OWN_CHAIN else 1.0
    for unit in ("seconds", "processor"):
        row |= {f"{phase}_{unit}": round(scale * spent, 1) for phase, spent in about[unit].items()}
        row[f"all_{unit}"] = round(scale * sum(about[unit].values()), 1)
    return row | {"draws_made": draws, "threads": about["threads"], "commit": about.get("commit")}


def main(
    work: Annotated[Path, typer.Option(help="where tables, environments and draws are kept")] = Path("build/peers"),
    peers: Annotated[str, typer.Option(help="comma-separated methods; all by default")] = "",
    minutes: Annotated[float, typer.Option(help="training budget of anyorder")] = 2.0,
    threads: Annotated[int, typer.Option(envvar="ANYORDER_BENCH_THREADS", help="threads of every method")] = 2,
    draws: Annotated[int, typer.Option(help="draws of miceforest and IterativeImputer, scaled to 20")] = 2,
    again: Annotated[bool, typer.Option(help="run also what is done")] = False,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Time every method and print how many times longer the others take."""
    record, chosen, count = Record(json, smoke=smoke), listed(peers, COMPARED), ROWS
    if smoke:
        # Methods that need no environment of their own.
        work, minutes, chosen, count = record.beside(work), smoke_data.MINUTES, ["mean/mode", "anyorder neural"], 60
    work = work.resolve()
    task, limits = make_task(work, count), {"minutes": minutes, "threads": threads, "timeout": 7200, "own": smoke}
    for method in chosen:
        answer = work / "answers" / "speed" / file_name(method)
        if again or not answer.with_suffix(".json").exists():
            print(f"{method} ...", flush=True)
            fewer = draws if smoke or method in ITS_OWN_CHAIN else exchange.DRAWS
            run_method(method, task, answer, work, limits | {"draws": fewer})
    paths = {method: work / "answers" / "speed" / file_name(method) for method in COMPARED}
    rows = [measured(method, path) for method, path in paths.items() if path.with_suffix(".json").exists()]
    print(pd.DataFrame(rows).to_string(index=False))
    ratios = []
    for ours in (row for row in rows if METHODS[row["method"]].environment == OWN and "error" not in row):
        for other in (row for row in rows if METHODS[row["method"]].environment != OWN and "error" not in row):
            ratio = {"anyorder": ours["method"], "peer": other["method"]}
            ratio["times_faster"] = round(other["all_seconds"] / ours["all_seconds"], 1)
            ratio["times_less_processor"] = round(other["all_processor"] / ours["all_processor"], 1)
            ratio["times_faster_once_fitted"] = round(other["all_seconds"] / max(ours["fill_seconds"], 0.1), 1)
            ratios.append(ratio)
            print("{anyorder} is {times_faster} times as fast as {peer}, fitting included".format(**ratio))
    about = (
        f"{count:,} rows x 15 columns, {MISSING:.0%} of the cells missing, 20 draws for each. From the table with "
        "holes to 20 filled ones, fitting included. miceforest and IterativeImputer (random forest) fit anew for every "
        "draw; where they made fewer than 20 (draws made), their seconds are scaled in proportion."
    )
    found = {"title": f"Filling {count:,} rows with 20 draws", "about": about, "seed": 0}
    record.write(found | {"rows": rows, "ratios": ratios})


if __name__ == "__main__":
    typer.run(main)
