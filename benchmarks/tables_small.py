"""Conditional log-likelihood on six small tables, and random order (ARDM) against MAC's protocol.

    python benchmarks/tables_small.py [--minutes 2] [--sets wine,concrete] [--json benchmarks/results/tables_small.json]

First table: mean test log p(rest | evidence), evidence cardinality uniform on 0..N-1, of the default settings beside a
full-covariance Gaussian's exact conditional and a Gaussian copula with kernel margins. Second table: the same network
and encoding trained for the same time as ARDM (random order) and as MAC (canonical order, cardinality
reweighting), on marginal queries (M_card) and on conditional ones.
"""

from __future__ import annotations

import time
from json import loads
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from rich.console import Console
from rich.table import Table

import anyorder as ao

from closed_forms import Gaussian, KernelCopula
from common import machine, write_results
from small_sets import EMBEDDED, SHARED, SmallSet, conditional_queries, load, marginal_queries

REPEATS = 20  # random queries per test row
CONDITIONAL = {"name": "conditional", "evidence": {"name": "cardinality", "least": 0, "spare": 1}}
ORDERS: dict[str, dict[str, Any]] = {
    "ARDM": {
        "protocol": {"name": "random"},
        "masking": {"name": "univariate"},
        "objective": {"name": "parallel", "reweight": False},
    },
    "MAC": {
        "protocol": {"name": "canonical"},
        "masking": {"name": "cardinality"},
        "objective": {"name": "parallel", "reweight": True},
    },
    "MAC, evidence too": {
        "protocol": {"name": "canonical"},
        "masking": {
            "name": "mixture",
            "maskings": [{"name": "cardinality"}, CONDITIONAL],
            "weights": [0.5, 0.5],
        },
        "objective": {"name": "parallel", "reweight": True},
    },
}


def score(model: ao.TableModel, rows: pd.DataFrame, known: Any, asked: Any) -> tuple[float, float]:
    """Mean log p(asked | known) and its standard error over test rows (queries about one row are not independent)."""
    hidden = rows.mask(~(known | asked))
    given = pd.DataFrame(known, columns=rows.columns)
    return summary(model.log_prob(hidden, given=given).to_numpy())


def summary(nats: Any) -> tuple[float, float]:
    per_row = nats.reshape(-1, REPEATS).mean(axis=1)
    return float(per_row.mean()), float(per_row.std(ddof=1) / np.sqrt(len(per_row)))


def run(data: SmallSet, minutes: float, order_minutes: float, seed: int) -> dict[str, Any]:
    rows = data.test.loc[data.test.index.repeat(REPEATS)].reset_index(drop=True)
    known = conditional_queries(len(data.test), rows.shape[1], REPEATS)
    marginal = marginal_queries(len(data.test), rows.shape[1], REPEATS)
    nothing = np.zeros_like(marginal)
    train, test = data.train.to_numpy(), rows.to_numpy()
    result: dict[str, Any] = {"train": len(train), "test": len(data.test), "columns": rows.shape[1]}
    for name, rival in (("gaussian", Gaussian(train)), ("copula", KernelCopula(train))):
        result[name] = summary(rival.log_prob(test, known, ~known))
    began = time.monotonic()
    kinds = dict.fromkeys(data.train.columns, "continuous")
    model = ao.fit(data.train, minutes=minutes, seed=seed, kinds=kinds)
    result["seconds"] = time.monotonic() - began
    result["anyorder"] = score(model, rows, known, ~known)
    result["chosen"] = model.card["chosen"]
    result["weights"] = model.card["scores"].get("weights", {})
    result["orders"] = {}
    for name, options in ORDERS.items() if order_minutes > 0 else ():
        config = {**options, "encoding": model.card["chosen"]}
        other = ao.fit(data.train, minutes=order_minutes, seed=seed, kinds=kinds, engine="neural", config=config)
        result["orders"][name] = {
            "marginal": score(other, rows, nothing, marginal),
            "conditional": score(other, rows, known, ~known),
        }
    return result


def main(
    minutes: Annotated[float, typer.Option(help="training budget per set")] = 1.75,
    order_minutes: Annotated[float, typer.Option(help="budget of each row of the second table; 0: none")] = 0.5,
    sets: Annotated[str, typer.Option(help="comma-separated; all by default")] = "",
    seed: int = 0,
    json: Annotated[Path | None, typer.Option(help="write the results here")] = None,
) -> None:
    """Run the comparison and print both tables."""
    torch.set_num_threads(2)
    names = [name.strip() for name in sets.split(",") if name.strip()] or [*EMBEDDED, *SHARED]
    console, results = Console(width=120), {}
    for name in names:
        data = load(name, seed)
        if data is None:
            console.print(f"{name}: not at hand; set ANYORDER_DATA to the folder that has it")
            continue
        results[name] = run(data, minutes, order_minutes, seed)
        console.print(f"{name}: {results[name]}")
    first = Table("set", "rows x columns", "Gaussian", "kernel copula", "anyorder", "encoding", "seconds")
    second = Table("set", *(f"{order} {kind}" for order in ORDERS for kind in ("marg.", "cond.")))
    for name, r in results.items():
        ahead = r["anyorder"][0] > max(r["gaussian"][0], r["copula"][0])
        ours = f"[bold]{show(r['anyorder'])}[/bold]" if ahead else show(r["anyorder"])
        shape = f"{r['train']} x {r['columns']}"
        first.add_row(name, shape, show(r["gaussian"]), show(r["copula"]), ours, r["chosen"], f"{r['seconds']:.0f}")
        cells = [f"{r['orders'][o][k][0]:.2f}" for o in r["orders"] for k in ("marginal", "conditional")]
        second.add_row(name, *cells)
    console.print(first, second)
    if json is not None:
        command = f"python benchmarks/tables_small.py --minutes {minutes} --order-minutes {order_minutes}"
        write_results(json, merged(json, payload(results, command, seed)))


def payload(results: dict[str, Any], command: str, seed: int) -> dict[str, Any]:
    """The two tables as the documentation shows them."""
    first, second = [], []
    for name, r in results.items():
        scores = {rival: show(r[rival]) for rival in ("gaussian", "copula", "anyorder")}
        shape = {"train": r["train"], "test": r["test"], "columns": r["columns"]}
        trees = sum(weight for member, weight in r["weights"].items() if member != "neural")
        facts = {"encoding": r["chosen"], "weight of trees": round(trees, 2), "seconds": round(r["seconds"])}
        first.append({"set": name, **shape, **scores, **facts})
        cells = {f"{o}, {k}": show(r["orders"][o][k]) for o in r["orders"] for k in ("marginal", "conditional")}
        if cells:
            second.append({"set": name, **cells})
    return {
        "title": "Small tables: log p(rest of a row | a random part of it)",
        "about": "Mean test log-likelihood in nats, plus or minus its standard error over test rows; evidence "
        "cardinality uniform on 0..N-1; standardised columns with 0.05 standard deviations of noise. Second table: the "
        "same network trained for the same time in random order (ARDM) and with MAC's protocol.",
        "command": command,
        "seed": seed,
        "machine": machine(),
        "rows": first,
        "orders_at_equal_training_time": second,
    }


def merged(path: Path, new: dict[str, Any]) -> dict[str, Any]:
    """With ``--sets``, only those rows of an earlier file are replaced."""
    if path.exists():
        old = loads(path.read_text(encoding="utf-8"))
        for table in ("rows", "orders_at_equal_training_time"):
            fresh = {row["set"]: row for row in new[table]}
            known = [row["set"] for row in old[table]]
            rows = [fresh.get(row["set"], row) for row in old[table]]
            new[table] = rows + [row for name, row in fresh.items() if name not in known]
    return new


def show(pair: tuple[float, float]) -> str:
    return f"{pair[0]:.2f} ± {pair[1]:.2f}"


if __name__ == "__main__":
    typer.run(main)
