"""Is a learned canonical order worth it?

    python benchmarks/learned_order.py [--minutes 0.6] [--tuning 0.2] [--json FILE]    (about five minutes)

For each table: fit with default settings, search the order on held-out rows, then fine-tune twice for the same time, on
the table's own order and on the learned one. Scores are mean log p of random marginal queries about test rows (M_card,
the same ones for all), in nats, with standard errors of the paired differences; the baseline is the table's own order,
fine-tuned for as long. The generated table lists effects before their causes, where the order should matter most.
"""

from __future__ import annotations

import math
import time
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer

import anyorder as ao
from anyorder.model import AnyOrderModel
from anyorder.model.likelihood import log_probs
from anyorder.protocols import Canonical
from anyorder.query import Query
from anyorder.tasks.order_search import fine_tune, learn_order
from anyorder.training.options import Options

import smoke_data
from common import Json, Record, Smoke
from small_sets import load, marginal_queries

TIMES = ("heads", "networks", "model", "training", "tasks/order_search.py", "modalities/tables")
TABLES = ("effects first", "concrete", "wine")
HELD_OUT = 0.2  # of the training rows: for the search, and to judge the fine-tuning by
REPEATS = 4  # queries for each test row


def effects_first(rows: int, seed: int) -> pd.DataFrame:
    """Three effects, each a bent function of two of the five causes that stand behind them, and a little noise."""
    rng = np.random.default_rng(seed)
    causes = rng.normal(size=(rows, 5))
    bent = [np.sin(2 * causes[:, i] * causes[:, i + 1]) + 0.1 * rng.normal(size=rows) for i in range(3)]
    names = ["effect0", "effect1", "effect2", *(f"cause{i}" for i in range(5))]
    return pd.DataFrame(np.column_stack([*bent, causes]), columns=names)


def tables(name: str) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    if name == "effects first":
        return effects_first(1500, 0), effects_first(500, 1)
    found = load(name)
    return None if found is None else (found.train, found.test)


def scores(model: AnyOrderModel, test: pd.DataFrame, order: tuple[int, ...]) -> np.ndarray:
    """log p of each query about the test rows along ``order``, in the units of the data."""
    values, _ = model.encoding.encode(test)
    asked = torch.as_tensor(marginal_queries(len(test), values.shape[1], REPEATS))
    before, model.protocol = model.protocol, Canonical(order=order)
    found = log_probs(model, torch.as_tensor(np.repeat(values, REPEATS, axis=0)), Query.marginal(asked))[0]
    model.protocol = before
    return found


def paired(difference: np.ndarray) -> tuple[float, float]:
    """The mean over queries and its standard error over rows."""
    by_row = difference.reshape(-1, REPEATS).mean(axis=1)
    return float(by_row.mean()), float(by_row.std(ddof=1) / math.sqrt(len(by_row)))


def run(
    name: str, train: pd.DataFrame, test: pd.DataFrame, minutes: float, tuning: float, rounds: int
) -> dict[str, Any]:
    cut = round((1 - HELD_OUT) * len(train))
    fitted, held_out = train.iloc[:cut], train.iloc[cut:]
    core = ao.fit(fitted, minutes=minutes, seed=0, device="cpu").core
    own = tuple(range(core.variables))
    began = time.perf_counter()
    found = learn_order(core, held_out, seed=0, rounds=rounds)
    seconds = time.perf_counter() - began
    options = Options(minutes=tuning, learning_rate=3e-4)
    control = fine_tune(core, fitted, held_out, own, options)
    tuned = fine_tune(core, fitted, held_out, found.order, options)
    base = scores(core, test, own)
    parts = {
        "learned order": scores(core, test, found.order),
        "fine-tuned, own order": scores(control, test, own),
        "fine-tuned, learned order": scores(tuned, test, found.order),
    }
    parts["learned - own, both fine-tuned"] = base + parts["fine-tuned, learned order"] - parts["fine-tuned, own order"]
    return {
        "table": name,
        "train": len(fitted),
        "test": len(test),
        "own order": show(paired(base)),
        **{part: show(paired(numbers - base), sign="+") for part, numbers in parts.items()},
        "held-out gain of the search": show((found.gain, found.standard_error), sign="+"),
        "moves kept": found.accepted,
        "search seconds": round(seconds, 1),
        "order": " ".join(found.names),
    }


def show(pair: tuple[float, float], sign: str = "") -> str:
    return f"{pair[0]:{sign}.3f} ± {pair[1]:.3f}"


def main(
    minutes: Annotated[float, typer.Option(help="of the fit of each table")] = 0.6,
    tuning: Annotated[float, typer.Option(help="minutes of each fine-tuning")] = 0.2,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Search and fine-tune table by table."""
    torch.set_num_threads(1)
    record, rows, rounds = Record(json, "learned_order.json", smoke=smoke), [], 200
    if smoke:
        minutes = tuning = smoke_data.MINUTES
        rounds = 3
    for name in TABLES[:1] if smoke else TABLES:
        parts = (effects_first(80, 0), effects_first(20, 1)) if smoke else tables(name)
        if parts is None:
            print(f"{name}: not at hand (set ANYORDER_DATA)")
            continue
        rows.append(run(name, *parts, minutes, tuning, rounds))
        for part, found in rows[-1].items():
            print(f"{part:32} {found}")
    payload = {
        "title": "A learned canonical order",
        "about": "Mean test log p of random marginal queries in nats along the table's own order, and gains over it "
        "(paired, plus or minus a standard error over test rows): of the searched order alone, and of fine-tuning for "
        "the same time on either order. The generated table lists effects before their causes.",
        "seed": 0,
        "rows": rows,
    }
    record.write(payload)


if __name__ == "__main__":
    typer.run(main)
