"""How long a question takes: alone on the machine, beside a busy loop, and with an older checkout of the code.

    python benchmarks/latency.py [--against CHECKOUT] --json benchmarks/results/latency.json    (three minutes)

Median milliseconds over and over for a second each, in a process of its own with the environment's number of threads
left open. A cold question is a whole command line, ``anyorder ask``, in a new process, of a library that was compiled
when it was installed (so the first run is not counted). ``--against`` is the folder of
another checkout: each fits a model of its own in the same time, as its users would have it, and the ratio is the time
of the other over ours. Limits are those of the project: for a question alone, and beside a loop where one is given.
"""

from __future__ import annotations

import json as json_format
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from common import ROOT, Json, Record, Smoke, busy, print_rows

TIMES = ("networks", "heads", "distributions", "questions", "model", "support", "cli")
HERE = Path(__file__).resolve().parent
COLD = "anyorder ask, a new process"
QUESTION = "proline | alcohol=13, hue=1"
LIMITS = {  # milliseconds: alone, and beside a loop
    "quantiles of one number": (3, 10),
    "quantiles of a whole number": (3, 10),
    "all 14 marginals": (25, None),
    "P(a range | values)": (50, None),
    "P(a class | a range)": (50, None),
    "sample(1000)": (150, None),
    COLD: (2500, None),
}


def environment(code: Path) -> dict[str, str]:
    """That of a user who has set no number of threads and lets Python keep what it compiles, with this checkout."""
    hidden = {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONDONTWRITEBYTECODE"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(code / "src"), str(HERE)])}


def called(code: Path, function: str, *arguments: object) -> str:
    """What a function of :mod:`latency_questions` prints under this code."""
    said = f"import latency_questions as q; q.{function}({', '.join(repr(str(one)) for one in arguments)})"
    command = [sys.executable, "-c", said]
    return subprocess.run(command, env=environment(code), capture_output=True, text=True, check=True).stdout


def cold(code: Path, model: Path, runs: int) -> float:
    """Median milliseconds of a whole command line; of a single one, the first, without ``runs``."""
    times = []
    for _ in range(runs + 1):
        began = time.perf_counter()
        command = [sys.executable, "-m", "anyorder", "ask", str(model), QUESTION]
        subprocess.run(command, env=environment(code), capture_output=True, check=True)
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times[1:] or times)


def measured(code: Path, model: Path, seconds: float, runs: int) -> dict[str, float]:
    """Milliseconds of every question under this code."""
    found: dict[str, float] = json_format.loads(called(code, "run", model, seconds).splitlines()[-1])
    return {**found, COLD: cold(code, model, runs)}


def main(
    against: Annotated[Path | None, typer.Option(help="another checkout of the project")] = None,
    minutes: float = 0.5,
    seconds: float = 1.0,
    runs: int = 5,
    loops: Annotated[int, typer.Option(help="busy loops beside the questions")] = 1,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Ask alone and beside busy loops, and print the medians and the ratios."""
    record = Record(json, smoke=smoke)
    engine, places = "auto", {"alone": 0, "beside a loop": loops}
    if smoke:  # one network, every question once
        minutes, seconds, runs, engine = 0.01, 0.0, 0, "neural"
        places = {"alone": 0}
    codes = {"": ROOT, **({} if against is None else {"before: ": against.resolve()})}
    with tempfile.TemporaryDirectory() as folder:
        models = {label: Path(folder) / f"wine{number}.anyorder" for number, label in enumerate(codes)}
        for label, code in codes.items():
            called(code, "fit", models[label], minutes, engine)
        found: dict[str, dict[str, float]] = {}
        for place, count in places.items():
            with busy(count):
                for label, code in codes.items():
                    found[f"{label}{place}"] = measured(code, models[label], seconds, runs)
    rows: list[dict[str, Any]] = []
    for name in next(iter(found.values())):
        row: dict[str, Any] = {"question": name}
        for place, limit in zip(("alone", "beside a loop"), LIMITS.get(name, (None, None)), strict=True):
            if place not in places:
                continue
            row[f"{place} (ms)"] = round(found[place][name], 2)
            row[f"limit {place}"] = "" if limit is None else limit
            if against is not None:
                before = found[f"before: {place}"][name]
                row[f"before {place} (ms)"] = round(before, 2)
                row[f"ratio {place}"] = round(before / found[place][name], 1)
        rows.append(row)
    print_rows(rows, 200)
    record.write(
        {
            "title": "How long a question takes",
            "about": f"Wines of scikit-learn (178 rows, 14 columns), a model of {minutes} minutes; median milliseconds "
            f"alone and beside {loops} busy loop(s); before: an older checkout with a model of its own.",
            "seed": 0,
            "rows": rows,
        }
    )


if __name__ == "__main__":
    typer.run(main)
