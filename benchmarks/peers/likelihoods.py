"""Log-likelihood of held-out rows of numbers: anyorder beside a sum-product network, CrossCat and two closed forms.

    python benchmarks/peers/likelihoods.py --json benchmarks/results/likelihoods.json [--jobs 2]    (an hour or two)

The number columns of eight tables without holes, standardised by their training rows, 0.05 deviations of noise added
once so that repeated values do not make densities infinite; 80 % of the rows to learn from. Mean nats of a
test row, and the difference of each method to the best peer with its paired error over test rows of all seeds. The
plain baselines are a full-covariance Gaussian and a Gaussian copula with kernel margins; spflow 1.1.0 (LearnSPN) and
pylace 0.10.1 (CrossCat) run in environments of their own. Parts are kept in ``--work`` and made again only when the
code that makes them has changed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import parts
import smoke_data
import table_sets
from closed_forms import Gaussian, KernelCopula
from common import Json, Record, Smoke, commit, listed, print_rows
from methods import ENVIRONMENTS, python_of
from own_columns import VARIANTS

TIMES = ("variables", "heads", "networks", "model", "training", "modalities/tables")
HERE = Path(__file__).resolve().parent
TABLES = ("concrete", "energy", "yacht", "wine", "diabetes", "breast_cancer", "miniboone", "power")
WIDEST = 20
NOISE = 0.05
CLOSED = {"Gaussian": Gaussian, "copula": KernelCopula}
RUNNERS = {"spflow": ("spflow", "run_spn.py"), "pylace": ("lace", "run_lace_likelihood.py")}
PEERS = (*CLOSED, *RUNNERS)
METHODS = (*PEERS, *VARIANTS)
USUAL = (*PEERS, "anyorder", "anyorder 15 s")
SECONDS = {"Gaussian": 1, "copula": 3, "spflow": 60, "pylace": 60, "anyorder 15 s": 25}
"""About what a part takes on one thread, for the plan."""
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA", "RAYON")}

Array = NDArray[np.float64]


def split(name: str, seed: int) -> tuple[Array, Array]:
    """Standardised training and test rows with their noise."""
    if name == "generated":
        values = smoke_data.numbers(80, 3).to_numpy()
    else:
        table = table_sets.load(name, widest=WIDEST)
        values = table.frame[[column for column, kind in table.kinds.items() if kind == "numeric"]].to_numpy()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(values))
    cut = round(0.8 * len(values))
    mean, deviation = values[order[:cut]].mean(axis=0), values[order[:cut]].std(axis=0)
    values = (values - mean) / np.where(deviation > 0, deviation, 1.0) + NOISE * rng.standard_normal(values.shape)
    return values[order[:cut]], values[order[cut:]]


def make_part(name: str, seed: int, method: str, work: Path, minutes: float | None, code: str) -> str:
    """Log-likelihoods of all test rows by one method, written as a part."""
    began = time.perf_counter()
    train, test = split(name, seed)
    if method in CLOSED:
        nothing = np.zeros(test.shape, dtype=bool)
        nats = CLOSED[method](train).log_prob(test, nothing, ~nothing)
    elif method in RUNNERS:
        nats = elsewhere(method, train, test, work)
    else:
        nats = ours(method, train, test, minutes)
    said = {"code": code, **commit(), "nats": np.asarray(nats).round(5).tolist()}
    said["seconds"] = round(time.perf_counter() - began, 1)
    parts.write(part_path(work, name, seed, method, minutes), said)
    return f"{method} on {name}, seed {seed}: {np.mean(nats):.3f} nats, {said['seconds']} s"


def ours(method: str, train: Array, test: Array, minutes: float | None) -> Array:
    import anyorder as ao

    names = [f"c{column}" for column in range(train.shape[1])]
    variant = VARIANTS[method]
    budget = variant.minutes if minutes is None else minutes
    kinds = dict.fromkeys(names, "continuous")
    model = ao.fit(pd.DataFrame(train, columns=names), minutes=budget, engine=variant.engine, kinds=kinds, seed=0)
    return np.asarray(model.log_prob(pd.DataFrame(test, columns=names)))


def elsewhere(method: str, train: Array, test: Array, work: Path) -> Array:
    """A peer in its own environment."""
    environment, runner = RUNNERS[method]
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder) / "question.npz", Path(folder) / "answer.npz"
        np.savez(question, train=train, test=test)
        command = [python_of(environment, work), HERE / "runners" / runner, question, answer]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | ONE_THREAD)
        if done.returncode:
            raise RuntimeError(f"{method} failed: {done.stderr.strip().splitlines()[-1:]}")
        with np.load(answer) as file:
            return np.asarray(file["nats"], dtype=float)


def part_path(work: Path, name: str, seed: int, method: str, minutes: float | None) -> Path:
    budget = f"-{minutes:g}" if minutes is not None and method in VARIANTS else ""
    return work / "likelihoods" / f"{name}-{seed}-{method.replace(' ', '-')}{budget}.json"


def code_of(method: str) -> str:
    """The version of the code that decides a part."""
    files, said = [HERE / "likelihoods.py", HERE.parent / "table_sets.py"], [method]
    if method in RUNNERS:
        environment, runner = RUNNERS[method]
        files.append(HERE / "runners" / runner)
        said.append(repr(ENVIRONMENTS[environment]))
    elif method in CLOSED:
        files.append(HERE.parent / "closed_forms.py")
    return parts.digest(*said, files=tuple(files), library=method in VARIANTS)


def line(name: str, found: dict[str, Array], columns: int) -> dict[str, Any]:
    """Mean nats of every method, and of ours the difference to the best peer with its paired error."""
    row: dict[str, Any] = {"table": name, "label": table_sets.label(name), "columns": columns}
    row |= {method: round(float(nats.mean()), 3) for method, nats in found.items()}
    peers = {method: nats.mean() for method, nats in found.items() if method in PEERS}
    if not peers:
        return row
    best = max(peers, key=lambda method: peers[method])
    row["best_peer"] = best
    for method in (one for one in found if one in VARIANTS):
        more = found[method] - found[best]
        error = more.std(ddof=1) / np.sqrt(len(more))
        row[f"{method} minus best"] = f"{more.mean():+.3f} ± {error:.3f}"
    return row


def main(
    work: Annotated[Path, typer.Option(help="where environments and parts are kept")] = Path("build/peers"),
    tables: Annotated[str, typer.Option(help="comma-separated tables; all that are at hand by default")] = "",
    methods: Annotated[str, typer.Option(help="comma-separated methods; all but the engines apart by default")] = "",
    seeds: Annotated[int, typer.Option(min=1, help="how many splits")] = 2,
    minutes: Annotated[float | None, typer.Option(help="another budget for all rows of anyorder")] = None,
    jobs: Annotated[int, typer.Option(help="parts at a time, one thread each")] = 1,
    plan: Annotated[bool, typer.Option(help="only say what is to be done and how long it may take")] = False,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Make the parts that are missing, print and write the means and their differences."""
    record = Record(json, smoke=smoke)
    chosen = listed(methods, METHODS) if methods else list(USUAL)
    names = ["generated"] if smoke else listed(tables, table_sets.at_hand(TABLES))
    if smoke:
        chosen, seeds, minutes, work = ["Gaussian", "copula", "anyorder"], 1, smoke_data.MINUTES, record.beside(work)
    work = work.resolve()
    every = [(name, seed, method) for seed in range(seeds) for name in names for method in chosen]
    missing = [one for one in every if parts.done(part_path(work, *one, minutes), code_of(one[2])) is None]
    expected = sum(SECONDS.get(one[2], 60 * (minutes or 2)) for one in missing) / jobs
    print(
        f"{len(every) - len(missing)} of {len(every)} parts are there; the others may take {expected / 3600:.1f} hours"
    )
    if plan:
        return
    for method in chosen:
        if method in RUNNERS:
            python_of(RUNNERS[method][0], work)  # before parts run side by side
    os.environ.update(ONE_THREAD)  # of the processes that are started, and read by them first of all
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        tasks = {pool.submit(make_part, *one, work, minutes, code_of(one[2])): one for one in missing}
        for number, task in enumerate(as_completed(tasks), 1):
            failure = task.exception()
            said = task.result() if failure is None else f"{tasks[task]}: {failure!r}"
            print(f"{number}/{len(missing)} {said}", flush=True)
    rows, used = [], []
    for name in names:
        found: dict[str, Array] = {}
        for method in chosen:
            done = [parts.done(part_path(work, name, seed, method, minutes), code_of(method)) for seed in range(seeds)]
            there = [one for one in done if one is not None]
            used += there
            if len(there) == seeds:
                found[method] = np.concatenate([one["nats"] for one in there])
        rows.append(line(name, found, split(name, 0)[0].shape[1]))
    print_rows(rows, width=200)
    record.write(
        {
            "title": "Log-likelihood of held-out rows of numbers",
            "about": "Mean nats of a test row (more is better); number columns only, standardised, with 0.05 "
            f"deviations of noise; {seeds} splits. Errors are paired over test rows. Tables labelled `tuning` were "
            "looked at while the library was made, those labelled `unseen` were not. A full-covariance Gaussian, a "
            "Gaussian copula with kernel margins, LearnSPN with normal leaves (spflow 1.1.0) and CrossCat (pylace "
            "0.10.1, 8 chains of 500 sweeps).",
            "seed": list(range(seeds)),
            "rows": rows,
            "details": {"commits": parts.of_one_version(used)},
        }
    )


if __name__ == "__main__":
    typer.run(main)
