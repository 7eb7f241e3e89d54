"""How much memory it takes to read a table: read_table beside pandas, as multiples of the file.

    python benchmarks/read_memory.py --json benchmarks/results/read_memory.json    (two minutes)

Each reader works in a process of its own, on the same file; what counts is how far its peak lies above what it held
before. pandas is asked for the same cells: ``pandas.read_csv`` with its defaults, which reads numbers as numbers and
texts as texts.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from anyorder.data.files import read_table

from common import Json, Record, Smoke, print_rows

TIMES = ("data",)
PART = 50_000  # rows that are made and written at a time


def write_rows(path: Path, megabytes: float, seed: int) -> int:
    """A CSV of about that size with fractions, whole numbers, levels, dates, texts, booleans and holes."""
    generator = np.random.default_rng(seed)
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        while file.tell() < megabytes * 1e6:
            count = PART if megabytes > 10 else 500
            frame = pd.DataFrame(
                {
                    "fraction": generator.normal(size=count),
                    "price": np.round(generator.lognormal(3, 1, count), 2),
                    "whole": generator.integers(-1000, 1000, count),
                    "id": np.arange(rows, rows + count),
                    "level": generator.choice(["red", "green", "blue", "yellow"], count),
                    "city": generator.choice([f"city {number}" for number in range(500)], count),
                    "date": pd.Timestamp("2020-01-01") + pd.to_timedelta(generator.integers(0, 2000, count), unit="D"),
                    "remark": [f"remark {number} of this row" for number in generator.integers(0, 10**9, count)],
                    "flag": generator.random(count) < 0.3,
                    "holes": np.where(generator.random(count) < 0.2, np.nan, generator.normal(size=count)),
                }
            )
            frame.to_csv(file, index=False, header=not rows)
            rows += count
    return rows


def peak(reader: Callable[[Path], pd.DataFrame], path: Path, pipe: Any) -> None:
    """Send the megabytes by which the reader's peak lies above what the process held, and the seconds it took."""
    reader(path.with_name("warm_up.csv"))  # imports and buffers that every later call shares
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _high_water()
    began = time.perf_counter()
    table = reader(path)
    seconds = time.perf_counter() - began
    pipe.send((_high_water() - before, seconds, len(table)))


def _high_water() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 / 1e6 for line in status.splitlines() if line.startswith("VmHWM:"))


def measured(reader: Callable[[Path], pd.DataFrame], path: Path) -> tuple[float, float, int]:
    """What :func:`peak` finds in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=peak, args=(reader, path, theirs))
    process.start()
    theirs.close()
    found: tuple[float, float, int] = ours.recv()
    process.join()
    return found


READERS: dict[str, Callable[[Path], pd.DataFrame]] = {"read_table": read_table, "pandas.read_csv": pd.read_csv}


def main(megabytes: float = 150.0, seed: int = 0, json: Json = None, smoke: Smoke = False) -> None:
    """Write a table, read it by both and print the ratios."""
    record = Record(json, smoke=smoke)
    megabytes = 0.2 if smoke else megabytes
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        rows = write_rows(path, megabytes, seed)
        write_rows(path.with_name("warm_up.csv"), 0.05, seed)
        size = path.stat().st_size / 1e6
        results = []
        for name, reader in READERS.items():
            above, seconds, count = measured(reader, path)
            assert count == rows
            results.append(
                {
                    "reader": name,
                    "file (MB)": round(size, 1),
                    "rows": rows,
                    "peak (MB)": round(above, 1),
                    "times the file": round(above / size, 2),
                    "seconds": round(seconds, 1),
                }
            )
    print_rows(results)
    payload = {
        "title": "Memory to read a table",
        "about": "A generated CSV of ten mixed columns, read once in a fresh process by each reader; the peak of "
        "resident memory above what the process held before.",
        "seed": seed,
        "rows": results,
    }
    record.write(payload)


if __name__ == "__main__":
    typer.run(main)
