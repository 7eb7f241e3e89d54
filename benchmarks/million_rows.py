"""A million rows x 12 mixed columns with 10 % missing: fit, score and fill, rows a second and peak memory.

    python benchmarks/million_rows.py --json benchmarks/results/million_rows.json    (about ten minutes)

The obvious alternative for filling is a column's mean or most frequent level (scikit-learn's SimpleImputer); its time
in the same run is printed beside, so that the speed means something on any machine.
"""

from __future__ import annotations

import resource
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
import torch
import typer
from rich.console import Console
from rich.table import Table
from sklearn.impute import SimpleImputer

import anyorder as ao

import smoke_data
from common import Json, Record, Smoke

TIMES = ("variables", "heads", "networks", "model", "training", "tasks/imputation.py", "modalities/tables")
MISSING = 0.1


def generate(rows: int, seed: int) -> pd.DataFrame:
    """Twelve dependent columns: six numbers, three whole numbers, three categories; holes at random."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=rows), rng.normal(size=rows)
    group = rng.integers(0, 5, rows)
    frame = pd.DataFrame(
        {
            "height": 170 + 9 * a,
            "weight": 70 + 9 * a + 6 * b,
            "income": np.exp(10 + 0.4 * b + 0.1 * group),
            "score": np.tanh(a * b) + 0.1 * rng.normal(size=rows),
            "ratio": 1 / (1 + np.exp(-a - 0.5 * group)),
            "delay": rng.exponential(1 + group),
            "age": np.clip(40 + 12 * b + 3 * rng.normal(size=rows), 0, 100).round().astype(int),
            "visits": rng.poisson(1 + np.exp(0.5 * a)),
            "cents": (np.exp(5 + 0.5 * b) * 100).round().astype(int),
            "group": np.array(["north", "south", "east", "west", "none"])[group],
            "member": np.where(a + b + rng.normal(size=rows) > 0, "yes", "no"),
            "plan": np.array(["free", "basic", "pro"])[np.digitize(b + rng.normal(size=rows), [-0.5, 1.0])],
        }
    )
    for name in frame.columns:
        frame.loc[rng.random(rows) < MISSING, name] = None
    return frame


def main(
    rows: int = 1_000_000,
    minutes: float = 2.0,
    seed: int = 0,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Fit with a budget, then score and fill all of it."""
    torch.set_num_threads(2)
    record = Record(json, smoke=smoke)
    if smoke:
        rows, minutes = 300, smoke_data.MINUTES
    frame = generate(rows, seed)
    seconds: dict[str, float] = {}

    def timed(name: str, work: Any) -> Any:
        began = time.perf_counter()
        result = work()
        seconds[name] = time.perf_counter() - began
        return result

    model = timed("fit", lambda: ao.fit(frame, minutes=minutes, seed=seed, progress=sys.stderr.isatty()))
    scores = timed("score", lambda: model.log_prob(frame))
    filled = timed("fill", lambda: model.fill(frame))
    timed("fill by mean or mode", lambda: _simple(frame))
    assert not filled.isna().any().any()
    assert np.isfinite(scores).all()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    table = Table("step", "seconds", "rows a second")
    for name, spent in seconds.items():
        table.add_row(name, f"{spent:.1f}", f"{rows / spent:,.0f}")
    ratio = seconds["fill"] / seconds["fill by mean or mode"]
    Console(width=100).print(
        table,
        f"mean log-likelihood {scores.mean():.3f} nats a row; peak memory {peak:.2f} GiB; "
        f"filling takes {ratio:.1f} times as long as mean or mode",
    )
    payload = {
        "title": f"{rows:,} rows x {frame.shape[1]} mixed columns, {MISSING:.0%} missing",
        "about": f"Fit with a budget of {minutes} minutes, then score and fill every row.",
        "seed": seed,
        "rows": [
            {"step": name, "seconds": round(spent, 1), "rows a second": round(rows / spent)}
            for name, spent in seconds.items()
        ],
        "peak_memory_gib": round(peak, 2),
        "log_likelihood_nats_a_row": round(float(scores.mean()), 3),
        "fill_against_mean_or_mode": round(ratio, 1),
    }
    record.write(payload)


def _simple(frame: pd.DataFrame) -> None:
    numbers = frame.select_dtypes("number")
    SimpleImputer(strategy="mean").fit_transform(numbers)
    words = frame.drop(columns=numbers.columns).astype(object)
    SimpleImputer(strategy="most_frequent").fit_transform(words.where(words.notna(), np.nan))


if __name__ == "__main__":
    typer.run(main)
