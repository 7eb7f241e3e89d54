"""How far answers depend on the order of asking, on the four tables that come with scikit-learn.

    python benchmarks/coherence.py --json benchmarks/results/coherence.json    (about three minutes on one core)

Default settings on one half of the rows, ``model.coherence`` on the other half: the standard deviation over eight
orders of log p of a row, the gap between the two ways to a conditional (MAC section 5.2), and what the mixture of K
fixed orders gains over the model's own order.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import pandas as pd
import torch
import typer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

import anyorder as ao

import smoke_data
from common import Json, Record, Smoke, listed, print_rows

TIMES = ("variables", "heads", "networks", "model", "training", "modalities/tables", "tasks/coherence.py")
TABLES = {"breast cancer": load_breast_cancer, "diabetes": load_diabetes, "iris": load_iris, "wine": load_wine}


def table(name: str) -> pd.DataFrame:
    """All columns with the target, in their raw units."""
    raw = {"scaled": False} if name == "diabetes" else {}
    return TABLES[name](as_frame=True, **raw).frame


def run(name: str, frame: pd.DataFrame, minutes: float, seed: int) -> dict[str, Any]:
    """Fit to a random half, measure on the other half."""
    frame = frame.sample(frac=1.0, random_state=seed).reset_index(drop=True)
    half = len(frame) // 2
    # A column may have its only fractions in the half that is held out; what it is would be guessed wrong.
    seen, unseen = ((part % 1 != 0).any() for part in (frame.iloc[:half], frame.iloc[half:]))
    kinds = dict.fromkeys(frame.columns[unseen & ~seen], "continuous")
    began = time.perf_counter()
    model = ao.fit(frame.iloc[:half], minutes=minutes, seed=seed, kinds=kinds)
    seconds = time.perf_counter() - began
    found = model.coherence(frame.iloc[half:], seed=seed)
    gains = {f"gain of {count} orders": show(*gain) for count, gain in found.gain.items() if count > 1}
    return {
        "table": name,
        "training rows": half,
        "held-out rows": found.rows,
        "columns": frame.shape[1],
        "spread": round(found.spread, 2),
        "spread of pairs": round(found.left, 2),
        "gap": show(found.gap, found.gap_error),
        "gap, root mean square": round(found.gap_size, 2),
        **gains,
        "seconds of fitting": round(seconds),
    }


def show(mean: float, error: float) -> str:
    return f"{mean:+.2f} ± {error:.2f}"


def main(
    minutes: Annotated[float, typer.Option(help="training budget per table")] = 0.5,
    tables: Annotated[str, typer.Option(help="comma-separated; all by default")] = "",
    seed: int = 0,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Fit each table, measure, print."""
    torch.set_num_threads(1)
    record, names = Record(json, smoke=smoke), listed(tables, list(TABLES))
    frames = {"generated": smoke_data.numbers()} if smoke else {name: table(name) for name in names}
    minutes = smoke_data.MINUTES if smoke else minutes
    rows = [run(name, frame, minutes, seed) for name, frame in frames.items()]
    print_rows(rows)
    record.write(
        {
            "title": "Coherence: how far answers depend on the order",
            "about": f"Nats per held-out row; default settings, {minutes:g} minutes of training on one thread, one "
            "training a table. Spread: the standard deviation over eight orders of log p of a row, averaged over rows; "
            "of pairs: over averages of an order and its opposite, which is what is answered. "
            "Gap: log of the ratio of two marginals less log p along the direct chain. Gain: mean log-probability of "
            "the mixture of K fixed orders less that of the model's own order. ± is a standard error over rows.",
            "seed": seed,
            "rows": rows,
        }
    )


if __name__ == "__main__":
    typer.run(main)
