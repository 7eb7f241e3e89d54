"""One column given all the others: anyorder beside logistic regression, forest, LightGBM and TabPFN v2.

    python benchmarks/peers/single_columns.py --json benchmarks/results/single_columns.json [--jobs 2]    (hours)

Every table of ``table_sets.py`` is cut into five folds; a method learns from four and answers for the fifth, evidence
as it is, with its holes. Classes are scored by log-loss, numbers by CRPS (the mean pinball loss over 100 levels,
doubled) in standard deviations of the training rows. anyorder is fitted once a fold and answers all columns; the
others are fitted for the column that is asked. Each row is tested once at most, so the difference of two methods has
the paired error std / sqrt(rows). The verdict of a column is whether anyorder is within one such error of the best of
the others.
Parts are kept in ``--work`` and made again only when the code that makes them has changed. ``--plan`` says how long it
will take.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import columns
import own_columns
import parts
import smoke_data
import table_sets
from common import Json, Record, Smoke, commit, listed, print_rows
from methods import python_of

TIMES = ("variables", "heads", "networks", "model", "training", "questions", "modalities/tables")
HERE = Path(__file__).resolve().parent
FOLDS = columns.FOLDS
OURS = tuple(own_columns.VARIANTS)
PEERS = tuple(dict.fromkeys([*columns.CLASSES, *columns.NUMBERS, "TabPFN v2"]))
METHODS = (*PEERS, *OURS)
USUAL = (*PEERS, "anyorder", "anyorder 15 s")
WEIGHTS = "tabpfn-v2-regressor-2noar4o2.ckpt"
SECONDS = {
    "logistic": 8,
    "linear": 0.1,
    "forest": 4,
    "LightGBM": 5,
    "LightGBM quantiles": 15,
    "TabPFN v2": 90,
    "anyorder 15 s": 30,
}
"""About what a fold takes on one thread, for the plan; anyorder with the default budget takes at most its 2 minutes."""


def generated() -> table_sets.TableSet:
    """A small table for a smoke run: three numbers and a class."""
    frame = smoke_data.numbers(100, 3)
    frame["level"] = pd.Series(np.where(frame["x0"] + frame["x1"] > 0, "yes", "no"), dtype="object")
    kinds = dict.fromkeys(frame.columns, "numeric") | {"level": "categorical"}
    return table_sets.TableSet("generated", frame, kinds, ("level", "x2"))


def loaded(name: str) -> table_sets.TableSet:
    return generated() if name == "generated" else table_sets.load(name)


def make_part(name: str, fold: int, method: str, work: Path, minutes: float | None, code: str) -> str:
    """Score one method on one fold of one table, all its targets, and write the part."""
    began = time.perf_counter()
    table = loaded(name)
    train, test = columns.fold_rows(len(table.frame), fold)
    learn, judge = table.frame.iloc[train], table.frame.iloc[test]
    said: dict[str, Any] = {"code": code, **commit(), "targets": {}}
    model = None
    if method in OURS:
        model = own_columns.fitted(learn, table, method, minutes)
        said["fit_seconds"] = time.perf_counter() - began
    for target in table.targets:
        kept, asked = learn[learn[target].notna()], judge[judge[target].notna()]
        question = columns.Question(target, table.kinds, table.levels.get(target, []), kept, asked)
        ways = columns.CLASSES if question.levels else columns.NUMBERS
        if model is not None:
            answer = own_columns.answers(model, question)
        elif method in ways:
            answer = ways[method](question)
        elif method == "TabPFN v2" and not question.levels:
            answer = tabpfn(question, work)
        else:
            continue  # a method of the other kind of column
        found = columns.losses(question, answer)
        said["targets"][target] = {"rows": asked.index.tolist(), "losses": found.round(6).tolist()}
    said["seconds"] = round(time.perf_counter() - began, 1)
    parts.write(part_path(work, name, fold, method, minutes), said)
    return f"{method} on {name}, fold {fold}: {said['seconds']} s"


def tabpfn(question: columns.Question, work: Path) -> columns.Array:
    """Quantiles of TabPFN v2, in its own environment."""
    folder = work / "tabpfn" / f"{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(
        folder / "question.npz",
        train=question.coded(question.train),
        truth=question.truth,
        test=question.coded(question.test),
        levels=columns.LEVELS,
        categorical=np.array(question.coded_levels, dtype=int),
    )
    command = [python_of("tabpfn", work), HERE / "runners" / "run_tabpfn.py", folder / "question.npz"]
    command += [folder / "answer.npz", weights(work)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | ONE_THREAD)
    if done.returncode:
        raise RuntimeError(f"TabPFN failed: {done.stderr.strip().splitlines()[-1:]}")
    with np.load(folder / "answer.npz") as file:
        return np.asarray(file["quantiles"], dtype=float)


def weights(work: Path) -> Path:
    """The weights of TabPFN v2's regressor, out of a source archive of the package index."""
    path = work / WEIGHTS
    if not path.exists():
        folder = work / "downloads"
        command = [python_of("tabpfn", work), "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*command, "--dest", folder, "tabpfn-time-series==0.1.3"], check=True)
        (archive,) = folder.glob("tabpfn*time*series-0.1.3.tar.gz")
        with tarfile.open(archive) as inside:
            (member,) = [one for one in inside.getmembers() if one.name.endswith(WEIGHTS)]
            content = inside.extractfile(member)
            assert content is not None
            beside = path.with_suffix(".part")
            beside.write_bytes(content.read())
        beside.rename(path)
    return path


ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}


def part_path(work: Path, name: str, fold: int, method: str, minutes: float | None) -> Path:
    budget = f"-{minutes:g}" if minutes is not None and method in OURS else ""
    return work / "single_columns" / f"{name}-{fold}-{method.replace(' ', '-')}{budget}.json"


def code_of(method: str) -> str:
    """The version of the code that decides a part."""
    files = [HERE / "columns.py", HERE.parent / "table_sets.py"]
    if method in OURS:
        files.append(HERE / "own_columns.py")
    elif method == "TabPFN v2":
        files.append(HERE / "runners" / "run_tabpfn.py")
    return parts.digest(method, files=tuple(files), library=method in OURS)


def gathered(
    names: list[str], methods: list[str], folds: int, work: Path, minutes: float | None
) -> list[dict[str, Any]]:
    """One row for each column: every method's mean, the best of the others, and how far anyorder is from it."""
    rows = []
    for name in names:
        table = loaded(name)
        for target in table.targets:
            found: dict[str, pd.Series] = {}
            for method in methods:
                done = [
                    parts.done(part_path(work, name, fold, method, minutes), code_of(method)) for fold in range(folds)
                ]
                mine = [one["targets"][target] for one in done if one is not None and target in one["targets"]]
                if mine and len(mine) == folds:
                    losses_of = [pd.Series(one["losses"], index=one["rows"]) for one in mine]
                    found[method] = pd.concat(losses_of)
            rows.append(verdict(table, target, found))
    return rows


def verdict(table: table_sets.TableSet, target: str, found: dict[str, pd.Series]) -> dict[str, Any]:
    """Means, the best peer, and of each row of ours the difference to it with its paired error."""
    kind = table.kinds[target]
    row: dict[str, Any] = {"table": table.name, "label": table.label, "column": target}
    row |= {"kind": "class" if kind == "categorical" else "number"}
    row["rows"] = len(next(iter(found.values()))) if found else 0
    row |= {method: round(float(values.mean()), 4) for method, values in found.items()}
    others = {method: values.mean() for method, values in found.items() if method in PEERS}
    if not others:
        return row
    best = min(others, key=lambda method: others[method])
    row["best_peer"] = best
    for method in (one for one in found if one in OURS):
        differences = (found[method] - found[best]).to_numpy()
        error = float(differences.std(ddof=1) / np.sqrt(len(differences)))
        row |= {f"{method} minus best": round(float(differences.mean()), 4), f"{method} error": round(error, 4)}
        row[f"{method} within one error"] = bool(differences.mean() <= error)
    return row


def payload(rows: list[dict[str, Any]], folds: int, used: list[dict[str, Any]]) -> dict[str, Any]:
    """The result file: one table of verdicts a kind of column, a count of verdicts above them."""
    counts = []
    for method in OURS:
        key = f"{method} within one error"
        for label in ("tuning", "unseen"):
            said = [row[key] for row in rows if key in row and row["label"] == label]
            if said:
                counts.append({"method": method, "tables": label, "columns": len(said), "within_one_error": sum(said)})
    return {
        "title": "One column given all the others",
        "about": f"Log-loss of classes and CRPS of numbers (in training standard deviations) of {folds} of five folds; "
        "evidence as it is, with its holes. anyorder is one model a fold that answers all columns; the others are "
        "fitted for the one that is asked. Error: paired, over test rows. Tables labelled `tuning` were looked at "
        "while the library was made, those labelled `unseen` were not. Logistic and ridge regression with "
        "cross-validated strength; 500 trees (quantile forest for numbers); LightGBM with cross-validated rounds "
        "(numbers: out-of-fold residuals, or one booster for each of 19 quantiles); TabPFN v2's regressor for numbers.",
        "seed": 0,
        "rows": counts,
        "classes_log_loss": [_without(row) for row in rows if row["kind"] == "class"],
        "numbers_crps": [_without(row) for row in rows if row["kind"] == "number"],
        "details": {"commits": parts.of_one_version(used)},
    }


def _without(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "kind"}


def main(
    work: Annotated[Path, typer.Option(help="where environments, weights and parts are kept")] = Path("build/peers"),
    tables: Annotated[str, typer.Option(help="comma-separated tables; all that are at hand by default")] = "",
    label: Annotated[str, typer.Option(help="only tables with this label: tuning or unseen")] = "",
    methods: Annotated[str, typer.Option(help="comma-separated methods; all but the engines apart by default")] = "",
    folds: Annotated[int, typer.Option(min=1, max=FOLDS, help="how many of the five folds are run")] = FOLDS,
    minutes: Annotated[float | None, typer.Option(help="another budget for all rows of anyorder")] = None,
    jobs: Annotated[int, typer.Option(help="parts at a time, one thread each")] = 1,
    plan: Annotated[bool, typer.Option(help="only say what is to be done and how long it may take")] = False,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Make the parts that are missing, print and write the verdicts."""
    record = Record(json, smoke=smoke)
    chosen = listed(methods, METHODS) if methods else list(USUAL)
    names = ["generated"] if smoke else listed(tables, table_sets.at_hand())
    names = [name for name in names if not label or table_sets.label(name) == label]
    if smoke:
        chosen, folds, minutes, work = (
            ["logistic", "linear", "anyorder"],
            1,
            smoke_data.MINUTES,
            record.beside(work),
        )
    work = work.resolve()
    every = [(name, fold, method) for fold in range(folds) for name in names for method in chosen]
    missing = [part for part in every if parts.done(part_path(work, *part, minutes), code_of(part[2])) is None]
    expected = sum(SECONDS.get(part[2], 60 * (minutes or 2) + 20) for part in missing) / max(jobs, 1)
    print(
        f"{len(every) - len(missing)} of {len(every)} parts are there; the others may take {expected / 3600:.1f} hours"
    )
    if plan:
        return
    if "TabPFN v2" in chosen:
        weights(work)  # and its environment, before parts run side by side
    run_parts(missing, work, minutes, jobs)
    rows = gathered(names, chosen, folds, work, minutes)
    for kind in ("class", "number"):
        print_rows([_without(row) for row in rows if row["kind"] == kind], width=220)
    used = [said for part in every if (said := parts.done(part_path(work, *part, minutes), code_of(part[2])))]
    record.write(payload(rows, folds, used))


def run_parts(missing: list[tuple[str, int, str]], work: Path, minutes: float | None, jobs: int) -> None:
    """All parts, some at a time, each on one thread; a part that fails is named and the others go on."""
    os.environ.update(ONE_THREAD)  # of the processes that are started, and read by them first of all
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        tasks = {pool.submit(make_part, *part, work, minutes, code_of(part[2])): part for part in missing}
        for number, task in enumerate(as_completed(tasks), 1):
            failure = task.exception()
            print(
                f"{number}/{len(missing)} " + (task.result() if failure is None else f"{tasks[task]}: {failure!r}"),
                flush=True,
            )


if __name__ == "__main__":
    typer.run(main)
