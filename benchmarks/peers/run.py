"""anyorder beside the imputers people use, on hidden cells of six tables.

    python benchmarks/peers/run.py [--work build/peers] --json benchmarks/results/peers.json    (hours)

Builds one virtual environment per peer (the project itself depends on none of them), hides cells, lets every method
fill the same tables with 20 draws, scores the draws. What is done is not done again unless asked for, so a run can be
stopped and go on, and every row says at which commit it was made; a method that fails or takes too long becomes a row
that says so. The plain baselines are mean or mode, and the hot deck.
"""

from __future__ import annotations

import json as json_format
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import exchange
import sets as tables
import smoke_data
from common import Json, Record, Smoke, commit, listed
from methods import METHODS, OWN, file_name, python_of
from report import payload, summary
from score import score

TIMES = ("variables", "heads", "networks", "model", "training", "tasks/imputation.py", "modalities/tables")
HERE = Path(__file__).resolve().parent


def generated() -> tables.Table:
    """A small table for a smoke run."""
    frame = smoke_data.numbers(60, 3)
    return tables.Table(tables.GENERATED, frame, np.arange(45), np.arange(45, 60))


def make_task(name: str, mechanism: str, work: Path) -> Path:
    """The folder of one table with holes, written once."""
    folder = work / "tables" / f"{name}-{mechanism}"
    if not (folder / "columns.json").exists():
        table = generated() if name == tables.GENERATED else tables.load(name)
        hidden = tables.hide(table.frame, mechanism)
        columns = {"kinds": table.kinds, "levels": table.levels}
        exchange.write_task(folder, table.frame, hidden, table.train, table.test, columns)
    return folder


def run_method(method: str, task: Path, answer: Path, work: Path, limits: dict[str, Any]) -> None:
    """Start the method's runner in its environment; an error or a time-out is written in place of seconds."""
    chosen = METHODS[method]
    arguments = [*chosen.arguments, *([str(limits["minutes"])] if chosen.environment == OWN else [])]
    threads = {f"{library}_NUM_THREADS": str(limits["threads"]) for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
    environment = os.environ | threads | {"PYTHONPATH": str(HERE), "PYTHONWARNINGS": "ignore", "TQDM_DISABLE": "1"}
    environment["PEER_DRAWS"] = str(limits.get("draws", exchange.DRAWS))
    error = None
    try:
        python = python_of(OWN if limits.get("own") else chosen.environment, work)
        command = [python, HERE / "runners" / chosen.runner, task, answer, *arguments]
        done = subprocess.run(
            command, env=environment, timeout=limits["timeout"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            error = (done.stderr.strip().splitlines() or ["no message"])[-1]
            answer.parent.mkdir(parents=True, exist_ok=True)
            answer.with_suffix(".log").write_text(done.stderr, encoding="utf-8")
    except subprocess.TimeoutExpired:
        error = f"took longer than {limits['timeout']} s"
    except subprocess.CalledProcessError as failure:
        error = f"its environment could not be built: {failure}"
    about = answer.with_suffix(".json")
    answer.parent.mkdir(parents=True, exist_ok=True)
    said = json_format.loads(about.read_text(encoding="utf-8")) if error is None else {"error": error[:300]}
    about.write_text(json_format.dumps(said | commit()) + "\n", encoding="utf-8")


def score_answer(task: Path, answer: Path) -> dict[str, Any]:
    """The scores of one finished answer, or its error."""
    about = json_format.loads(answer.with_suffix(".json").read_text(encoding="utf-8"))
    made = {"commit": about.get("commit")}  # None: before commits were noted
    if "error" in about:
        return {"error": about["error"]} | made
    job = exchange.read_task(task, answer)
    truth = job.coded(exchange.read_table(task / "truth.csv", job.kinds))
    levels = {column: len(job.levels[name]) for column, name in enumerate(job.kinds) if name in job.levels}
    with np.load(answer.with_suffix(".npz")) as file, np.load(task / "hidden.npz") as masks:
        try:
            scores = score(file["draws"], truth, masks["test"], job.coded(job.train), levels)
        except ValueError as error:
            return {"error": str(error)} | made
    seconds = {f"{phase}_seconds": round(spent, 1) for phase, spent in about["seconds"].items()}
    seconds["all_seconds"] = round(sum(about["seconds"].values()), 1)
    # What the machine spent on it, all threads together: unlike the clock, no matter what else ran at the time.
    seconds |= {f"{phase}_processor": round(spent, 1) for phase, spent in about.get("processor", {}).items()}
    noted = {name: about["notes"][name] for name in ("exact_log_loss", "minutes") if name in about["notes"]}
    return scores | noted | seconds | {"threads": about["threads"]} | made


def main(
    work: Annotated[Path, typer.Option(help="where tables, environments and draws are kept")] = Path("build/peers"),
    peers: Annotated[str, typer.Option(help="comma-separated methods; all by default")] = "",
    sets: Annotated[str, typer.Option(help="comma-separated tables; all by default")] = "",
    mechanisms: Annotated[str, typer.Option(help="mcar, mar; both by default")] = "",
    minutes: Annotated[float, typer.Option(help="training budget of anyorder per table")] = 2.0,
    threads: Annotated[int, typer.Option(envvar="ANYORDER_BENCH_THREADS", help="threads of every method")] = 2,
    timeout: Annotated[int, typer.Option(help="seconds after which a method is stopped")] = 7200,
    again: Annotated[bool, typer.Option(help="run also what is done")] = False,
    score_only: Annotated[bool, typer.Option(help="run nothing, only score what is done")] = False,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Run what is missing, score everything that is there, print the summary."""
    record = Record(json, smoke=smoke)
    methods, names, ways = (
        listed(peers, tuple(METHODS)),
        listed(sets, tables.SETS),
        listed(mechanisms, tables.MECHANISMS),
    )
    if smoke:
        # Methods that need no environment of their own.
        methods, names, ways = ["mean/mode", "hot deck", "anyorder neural"], [tables.GENERATED], ["mcar"]
        minutes, work = smoke_data.MINUTES, record.beside(work)
    work = work.resolve()
    limits = {"minutes": minutes, "threads": threads, "timeout": timeout, "own": smoke}
    if smoke:
        limits["draws"] = 2
    for method in methods:
        for name in names:
            for mechanism in ways:
                task = make_task(name, mechanism, work)
                answer = work / "answers" / task.name / file_name(method)
                if not score_only and (again or not answer.with_suffix(".json").exists()):
                    print(f"{method} on {task.name} ...", flush=True)
                    run_method(method, task, answer, work, limits)
                    (work / "summary.txt").write_text(summary(rows(work)), encoding="utf-8")
    found = rows(work)
    print(summary(found))
    record.write(payload(found))


def rows(work: Path) -> list[dict[str, Any]]:
    """One row for every (table, mechanism, method) that is done."""
    found = []
    for name in (*tables.SETS, tables.GENERATED):
        for mechanism in tables.MECHANISMS:
            task = work / "tables" / f"{name}-{mechanism}"
            for method in METHODS:
                answer = work / "answers" / task.name / file_name(method)
                if answer.with_suffix(".json").exists():
                    row = {"set": name, "mechanism": mechanism, "method": method}
                    found.append(row | score_answer(task, answer))
    return found


if __name__ == "__main__":
    typer.run(main)
