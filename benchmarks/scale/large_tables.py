"""Tables larger than memory: rows a second and peak memory of fit, score and fill, by the number of rows.

    python benchmarks/scale/large_tables.py --json benchmarks/results/large_tables.json    (hours)

The table is that of million_rows.py: twelve mixed columns with a tenth of their cells missing, in Parquet parts of
250,000 rows. Every step runs in a process of its own, so that its peak of resident memory is its own; imports are part
of it.
"""

from __future__ import annotations

import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

import anyorder as ao

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from million_rows import MISSING, generate

import smoke_data
from common import Json, Record, Smoke, print_rows

TIMES = ("variables", "heads", "networks", "model", "training", "tasks", "modalities/tables", "data/parts.py")
PART = 250_000
SIZES = (1_000_000, 5_000_000, 20_000_000)


def write_parts(folder: Path, rows: int, part: int, seed: int) -> float:
    """The table in parts; its size in gigabytes."""
    folder.mkdir(parents=True)
    for number, start in enumerate(range(0, rows, part)):
        frame = generate(min(part, rows - start), seed + number)
        frame.to_parquet(folder / f"part-{number:04}.parquet", index=False)
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e9


def step(what: str, place: Path, minutes: float, seed: int, threads: int, pipe: Any) -> None:
    """One step of the work, in a process of its own: its seconds and its peak of resident memory in GiB."""
    torch.set_num_threads(threads)
    model_file = place / "model.anyorder"
    model = None if what == "fit" else ao.load(model_file)
    began = time.perf_counter()
    if model is None:
        fitted = ao.fit(place / "table", minutes=minutes, seed=seed, progress=sys.stderr.isatty())
        found = {name: fitted.card["data"].get(name) for name in ("schema_rows", "training_rows")}
        fitted.save(model_file)
    elif what == "score":
        scores = model.score_files(place / "table")
        found = {"mean": round(scores.mean, 3)}
    else:
        found = {"parts": model.fill_files(place / "table", place / "filled").parts}
    seconds = time.perf_counter() - began
    pipe.send((seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2, found))


def measured(what: str, place: Path, minutes: float, seed: int, threads: int, alone: bool) -> tuple[float, float, Any]:
    """What :func:`step` finds."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    if not alone:
        step(what, place, minutes, seed, threads, theirs)
        return ours.recv()
    process = context.Process(target=step, args=(what, place, minutes, seed, threads, theirs))
    process.start()
    theirs.close()
    found: tuple[float, float, Any] = ours.recv()
    process.join()
    return found


def main(
    sizes: Annotated[str, typer.Option(help="comma-separated numbers of rows")] = "",
    work: Annotated[Path | None, typer.Option(help="where the tables are kept while they are needed")] = None,
    minutes: Annotated[float, typer.Option(help="the budget of every fit")] = 2.0,
    threads: Annotated[int, typer.Option(envvar="ANYORDER_BENCH_THREADS", help="threads of every step")] = 1,
    seed: int = 0,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Generate, fit, score and fill for every size."""
    record, part = Record(json, smoke=smoke), PART
    counts = [int(size) for size in sizes.split(",")] if sizes else list(SIZES)
    if smoke:
        counts, part, minutes = [400], 150, smoke_data.MINUTES
    rows: list[dict[str, Any]] = []
    for count in counts:
        place = Path(tempfile.mkdtemp(prefix="anyorder-large-", dir=work))
        try:
            size = write_parts(place / "table", count, part, seed)
            for what in ("fit", "score", "fill"):
                seconds, peak, found = measured(what, place, minutes, seed, threads, alone=not smoke)
                rows.append(
                    {
                        "rows": count,
                        "step": what,
                        "seconds": round(seconds, 1),
                        "rows a second": round(count / seconds),
                        "peak_gib": round(peak, 2),
                        "file_gb": round(size, 2),
                        **found,
                    }
                )
                print_rows(rows[-1:])
        finally:
            shutil.rmtree(place)
    print_rows(rows)
    record.write(
        {
            "title": "Tables larger than memory: rows a second and peak memory",
            "about": (
                f"Twelve mixed columns, {MISSING:.0%} of the cells missing, in Parquet parts of {part:,} rows. Fit in "
                f"{minutes:g} minutes, then score and fill every row, each step in a process of its own."
            ),
            "seed": seed,
            "rows": rows,
        }
    )


if __name__ == "__main__":
    typer.run(main)
