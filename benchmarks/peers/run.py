"""anyorder beside the imputers people use, on hidden cells of fourteen tables.

    python benchmarks/peers/run.py --json benchmarks/results/peers.json [--jobs 2] [--plan]    (hours)

Builds one virtual environment per peer (the project itself depends on none of them), hides cells, lets every method
fill the same tables with 20 draws, scores the draws. ``--plan`` says what is to be done and how long it may take;
``--sets``, ``--label``, ``--methods``, ``--mechanisms`` and ``--seeds`` choose less. What is done is not done again
unless the code that did it has changed (the runner, its environment, and for anyorder the library), so a run can be
stopped and go on, and all rows are of one version of the code. A method that fails or takes too long becomes a row that
says so. The plain baselines are mean or mode, the hot deck, and a chain of linear and logistic regressions.
"""

from __future__ import annotations

import json as json_format
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import exchange
import parts
import sets as tables
import smoke_data
import table_sets
from common import Json, Record, Smoke, commit, listed
from methods import ENVIRONMENTS, METHODS, OURS, OWN, USUAL, file_name, python_of
from report import Scored, payload, summary
from score import Cells, cell_scores, means

TIMES = ("variables", "heads", "networks", "model", "training", "tasks/imputation.py", "modalities/tables")
HERE = Path(__file__).resolve().parent
MADE_BY = (HERE / "sets.py", HERE / "exchange.py", HERE.parent / "table_sets.py")
"""What decides a table with holes."""


@dataclass(frozen=True)
class Job:
    """One method on one table with holes."""

    name: str
    mechanism: str
    seed: int
    method: str
    minutes: float | None = None
    """Another budget for a row of anyorder."""

    @property
    def task(self) -> str:
        return f"{self.name}-{self.mechanism}-{self.seed}"

    def answer(self, work: Path) -> Path:
        budget = "" if self.minutes is None or self.method not in OURS else f"-{self.minutes:g}"
        return work / "answers" / self.task / (file_name(self.method) + budget)

    @property
    def code(self) -> str:
        """The version of the code that decides the answer."""
        chosen = METHODS[self.method]
        own = chosen.environment == OWN
        said = (self.method, repr(chosen.arguments), "" if own else repr(ENVIRONMENTS[chosen.environment]))
        return parts.digest(*said, files=(*MADE_BY, HERE / "runners" / chosen.runner), library=own)


def generated() -> tables.Table:
    """A small table for a smoke run."""
    frame = smoke_data.numbers(60, 3)
    frame["level"] = np.array(["low", "high"], dtype=object)[(frame["x0"] > 0).astype(int)]
    kinds = dict.fromkeys(frame.columns, "numeric") | {"level": "categorical"}
    return tables.Table(tables.GENERATED, frame, kinds, {"level": ["high", "low"]}, np.arange(45), np.arange(45, 60))


def make_task(job: Job, work: Path) -> Path:
    """The folder of one table with holes, written once; and again if what decides it has changed."""
    folder = work / "tables" / job.task
    code = parts.digest(job.task, files=MADE_BY)
    if parts.done(folder / "made.json", code) is None:
        table = generated() if job.name == tables.GENERATED else tables.load(job.name, job.seed)
        hidden = tables.hide(table.frame, job.mechanism, seed=job.seed + 1)
        columns = {"kinds": table.kinds, "levels": table.levels}
        exchange.write_task(folder, table.frame, hidden, table.train, table.test, columns)
        parts.write(folder / "made.json", {"code": code, "rows": len(table.frame), "columns": table.frame.shape[1]})
    return folder


def run_method(method: str, task: Path, answer: Path, work: Path, limits: dict[str, Any], code: str = "") -> None:
    """Start the method's runner in its environment; an error or a time-out is written in place of seconds."""
    chosen = METHODS[method]
    arguments = list(chosen.arguments)
    if chosen.environment == OWN and limits.get("minutes") is not None:
        arguments[1] = str(limits["minutes"])
    threads = {
        f"{library}_NUM_THREADS": str(limits["threads"]) for library in ("OMP", "MKL", "OPENBLAS", "NUMBA", "RAYON")
    }
    places = [
        str(HERE),
        *([os.environ["PYTHONPATH"]] if chosen.environment == OWN and "PYTHONPATH" in os.environ else []),
    ]
    environment = os.environ | threads | {"PYTHONPATH": os.pathsep.join(places)}
    environment |= {"PYTHONWARNINGS": "ignore", "TQDM_DISABLE": "1"}
    environment["PEER_DRAWS"] = str(limits.get("draws", exchange.DRAWS))
    answer.parent.mkdir(parents=True, exist_ok=True)
    about = answer.with_suffix(".json")
    about.unlink(missing_ok=True)
    error = None
    try:
        python = python_of(OWN if limits.get("own") else chosen.environment, work)
        command = [python, HERE / "runners" / chosen.runner, task, answer, *arguments]
        done = subprocess.run(
            command, env=environment, timeout=limits["timeout"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            error = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
            answer.with_suffix(".log").write_text(done.stderr, encoding="utf-8")
    except subprocess.TimeoutExpired:
        error = f"took longer than {limits['timeout']} s"
    except subprocess.CalledProcessError as failure:
        error = f"its environment could not be built: {failure}"
    said = json_format.loads(about.read_text(encoding="utf-8")) if error is None else {"error": error[:300]}
    parts.write(about, said | {"code": code} | commit())


def score_answer(job: Job, work: Path, about: dict[str, Any]) -> Scored:
    """The scores of one finished answer, or its error."""
    row: dict[str, Any] = {"set": job.name, "mechanism": job.mechanism, "seed": job.seed, "method": job.method}
    made = {"commit": about.get("commit"), "uncommitted_changes": about.get("uncommitted_changes")}
    if "error" in about:
        return Scored(row | {"error": about["error"]} | made, {})
    task, answer = work / "tables" / job.task, job.answer(work)
    seen = exchange.read_task(task, answer)
    truth = seen.coded(exchange.read_table(task / "truth.csv", seen.kinds))
    levels = {column: len(seen.levels[name]) for column, name in enumerate(seen.kinds) if name in seen.levels}
    with np.load(answer.with_suffix(".npz")) as file, np.load(task / "hidden.npz") as masks:
        rows = masks["rows"]
        try:
            cells = cell_scores(file["draws"], truth, masks["test"], seen.coded(seen.train), levels)
        except ValueError as error:
            return Scored(row | {"error": str(error)} | made, {})
    seconds = {f"{phase}_seconds": round(spent, 1) for phase, spent in about["seconds"].items()}
    seconds["all_seconds"] = round(sum(about["seconds"].values()), 1)
    # What the machine spent on it, all threads together: unlike the clock, no matter what else ran at the time.
    seconds |= {f"{phase}_processor": round(spent, 1) for phase, spent in about.get("processor", {}).items()}
    noted = {name: about["notes"][name] for name in ("exact_log_loss", "point_rmse") if name in about["notes"]}
    kept = {name: Cells(rows[cells[name].rows], cells[name].values) for name in ("crps", "log_loss") if name in cells}
    return Scored(row | means(cells) | noted | seconds | {"threads": about["threads"]} | made, kept)


def main(
    work: Annotated[Path, typer.Option(help="where tables, environments and draws are kept")] = Path("build/peers"),
    methods: Annotated[str, typer.Option(help="comma-separated methods, or all; the usual ones by default")] = "",
    sets: Annotated[str, typer.Option(help="comma-separated tables; all that are at hand by default")] = "",
    label: Annotated[str, typer.Option(help="only tables with this label: tuning or unseen")] = "",
    mechanisms: Annotated[str, typer.Option(help="mcar, mar, varied; all by default")] = "",
    seeds: Annotated[str, typer.Option(help="comma-separated splits and masks; 0 and 1 by default")] = "",
    minutes: Annotated[float | None, typer.Option(help="another training budget for all rows of anyorder")] = None,
    threads: Annotated[int, typer.Option(envvar="ANYORDER_BENCH_THREADS", help="threads of every method")] = 1,
    jobs: Annotated[int, typer.Option(help="methods at work at a time")] = 1,
    timeout: Annotated[int, typer.Option(help="seconds after which a method is stopped")] = 1800,
    again: Annotated[bool, typer.Option(help="run also what is done")] = False,
    failed: Annotated[bool, typer.Option(help="run again what failed or took too long")] = False,
    score_only: Annotated[bool, typer.Option(help="run nothing, only score what is done")] = False,
    plan: Annotated[bool, typer.Option(help="only say what is to be done and how long it may take")] = False,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Run what is missing, score everything that is there, print the summary."""
    record = Record(json, smoke=smoke)
    chosen = list(METHODS) if methods == "all" else listed(methods, tuple(METHODS)) if methods else list(USUAL)
    names = [tables.GENERATED] if smoke else listed(sets, table_sets.at_hand())
    names = [name for name in names if not label or table_sets.label(name) == label]
    ways = listed(mechanisms, tables.MECHANISMS)
    numbers = [int(seed) for seed in listed(seeds, [str(seed) for seed in range(20)])] if seeds else list(tables.SEEDS)
    limits = {"minutes": minutes, "threads": threads, "timeout": timeout, "own": smoke}
    if smoke:
        # Methods that need no environment of their own.
        chosen, ways, numbers = ["mean/mode", "hot deck", "linear chain", "anyorder 15 s"], ["mcar"], [0]
        limits |= {"minutes": smoke_data.MINUTES, "draws": 2}
        work = record.beside(work)
    work = work.resolve()
    # Whole tables first, one mask of all of them before the next: a run that is stopped has something to show.
    every = [
        Job(name, mechanism, seed, method, limits["minutes"])
        for seed in numbers
        for mechanism in ways
        for name in names
        for method in chosen
    ]
    missing = [job for job in every if again or not is_done(job, work, failed)]
    if not score_only:
        run_all(missing, len(every), work, limits, jobs, plan)
    if plan:
        return
    found = [
        score_answer(job, work, about)
        for job in every
        if (about := parts.done(job.answer(work).with_suffix(".json"), job.code)) is not None
    ]
    text = summary(found)
    print(text)
    (work / "summary.txt").write_text(text, encoding="utf-8")
    if found:
        record.write(payload(found))


def is_done(job: Job, work: Path, failed: bool = False) -> bool:
    """Whether the answer of this version of the code is there."""
    about = parts.done(job.answer(work).with_suffix(".json"), job.code)
    return about is not None and not (failed and "error" in about)


def run_all(missing: list[Job], every: int, work: Path, limits: dict[str, Any], jobs: int, plan: bool) -> None:
    """Say how long it may take, build the environments, run the jobs side by side."""
    expected = sum(expected_seconds(job, work, limits) for job in missing) / jobs
    print(
        f"{every - len(missing)} of {every} answers are there; the other {len(missing)} may take "
        f"{expected / 3600:.1f} hours, {jobs} at a time",
        flush=True,
    )
    if plan:
        return
    for environment in dict.fromkeys(METHODS[job.method].environment for job in missing):
        try:
            python_of(OWN if limits["own"] else environment, work)
        except subprocess.CalledProcessError as failure:
            print(f"the environment of {environment} could not be built: {failure}", flush=True)

    def one(job: Job) -> str:
        run_method(job.method, work / "tables" / job.task, job.answer(work), work, limits, job.code)
        about = json_format.loads(job.answer(work).with_suffix(".json").read_text(encoding="utf-8"))
        return (
            f"{job.method} on {job.task}: {about.get('error') or format(sum(about['seconds'].values()), '.1f') + ' s'}"
        )

    with ThreadPoolExecutor(jobs) as pool:
        for number, done in enumerate(as_completed([pool.submit(one, job) for job in missing]), 1):
            print(f"{number}/{len(missing)} {done.result()}", flush=True)


def expected_seconds(job: Job, work: Path, limits: dict[str, Any]) -> float:
    """By the size of the table for the peers; anyorder's own budget, and a quarter more to fill, for its rows."""
    chosen = METHODS[job.method]
    made = json_format.loads((make_task(job, work) / "made.json").read_text(encoding="utf-8"))
    if chosen.environment == OWN:
        return 75 * limits["minutes"] if limits["minutes"] is not None else chosen.seconds
    cells = made["rows"] * made["columns"]
    expected = chosen.seconds * cells / 10_000 + chosen.column_seconds * made["columns"]
    return min(max(expected, 3), limits["timeout"])


if __name__ == "__main__":
    typer.run(main)
