"""Does a fit keep its budget, how good is it after 15 seconds, and is the blend as good as its best member?

    python benchmarks/fit_budget.py --json benchmarks/results/fit_budget.json    (an hour)

Budgets: generated tables from 10 x 3 to 500 x 300 and 250,000 x 20 (every fourth column has levels, a tenth of the
cells missing), seconds from the frame to the model. A budget is kept if they are within 15 % and 3 s of it. Gains: real
tables, a fifth of the rows held out; log p of the unknown cells of held-out rows beside random known sets (as many
known as unknown on average), minus what the marginals give. Shown is the gain of the short budget as a share of that of
the long one, which is the alternative that a user has, ``auto`` against the engines alone at the same budget, and
against each member of the blend itself: the same parts, all the weight on them. Errors are the standard errors of the
difference over rows.
"""

from __future__ import annotations

import time
import warnings
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from numpy.typing import NDArray

import anyorder as ao
from anyorder.model import AnyOrderModel, layout_of
from anyorder.networks.dependent import DependentNetwork
from anyorder.training.rows import encoded_rows
from anyorder.training.trees.growing import random_subsets

import table_sets
from common import Json, Record, Smoke, listed, print_rows

TIMES = ("training", "networks", "heads", "variables", "modalities/tables")
SHAPES = ((10, 3, 12.0), (300, 10, 15.0), (500, 60, 12.0), (500, 300, 20.0), (500, 300, 60.0), (250_000, 20, 60.0))
FLOOR = -50.0


def generated(rows: int, columns: int, seed: int = 0) -> pd.DataFrame:
    """Columns that depend on eight hidden numbers, every fourth one with three levels, a tenth of the cells missing."""
    rng = np.random.default_rng(seed)
    linear = rng.standard_normal((rows, 8)) @ rng.standard_normal((8, columns)) + rng.standard_normal((rows, columns))
    frame = pd.DataFrame(linear, columns=[f"x{i}" for i in range(columns)])
    for i in range(0, columns, 4):
        frame[f"x{i}"] = np.array(["low", "middle", "high"], dtype=object)[(linear[:, i, None] > [-1.0, 1.0]).sum(1)]
    return frame.mask(rng.random(frame.shape) < 0.1)


def fitted(frame: pd.DataFrame, seconds: float, engine: str = "auto") -> tuple[ao.TableModel, dict[str, float]]:
    """A model and how long it took, on the wall and of the processor."""
    wall, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ao.fit(frame, minutes=seconds / 60, engine=engine, seed=0)  # type: ignore[arg-type]  # its name, as text
    return model, {"seconds": time.perf_counter() - wall, "processor": time.process_time() - processor}


def kept(rows: int, columns: int, budget: float) -> dict[str, Any]:
    """Whether the budget was kept on a table of this shape."""
    model, took = fitted(generated(rows, columns), budget)
    facts = {"table": f"{rows:,} x {columns}", "budget": budget, **{name: round(s, 1) for name, s in took.items()}}
    return facts | {
        "over": round(took["seconds"] / budget, 2),
        "kept": took["seconds"] <= 1.15 * budget + 3,
        "steps": model.card["training"]["steps"],
    }


def alone(core: AnyOrderModel) -> dict[str, AnyOrderModel]:
    """The members of a blend, each with all the weight; those that count for nothing are not in it any more."""
    network = core.network.network if isinstance(core.network, DependentNetwork) else core.network
    widths = [member.width for member in network.layout.members]
    found = {}
    for kind in dict.fromkeys(part.name for part in network.inside):
        own = [number for number, part in enumerate(network.inside) if part.name == kind]
        heads = [core.heads.of(variable).only(own, widths) for variable in range(core.variables)]
        view = core.network.only(own, layout_of(core.schema, heads))
        found[kind] = AnyOrderModel(core.encoding, view, heads, core.protocol).eval()
    return found if len(found) > 1 else {}


@torch.no_grad()
def scores(core: AnyOrderModel, frame: pd.DataFrame, known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The mean log p of each row's unknown cells, in the units of the data; the last column is for the marginals."""
    rows = encoded_rows(core.encoding, frame)
    out = []
    for mask in (torch.as_tensor(known) & rows.observed, torch.zeros_like(rows.observed)):
        nats = core.log_prob_beside(rows.values, mask).double().clamp(min=FLOOR) + rows.log_det.double()
        asked = rows.observed & ~torch.as_tensor(known)
        out.append((nats * asked).nan_to_num().sum(1) / asked.sum(1).clamp(min=1))
    return torch.stack(out, dim=1).numpy()


def gains(name: str, frame: pd.DataFrame, budgets: list[float], repeats: int = 4) -> list[dict[str, Any]]:
    """What each engine and budget gains over the marginals on held-out rows."""
    order = np.random.default_rng(0).permutation(len(frame))
    test, train = frame.iloc[order[: len(frame) // 5]], frame.iloc[order[len(frame) // 5 :]]
    test = pd.concat([test] * repeats, ignore_index=True)
    known = random_subsets(len(test), test.shape[1], np.random.default_rng(1))
    found: dict[tuple[str, float], tuple[NDArray[np.float64], dict[str, float]]] = {}
    for engine, budget in [
        ("auto", max(budgets)),
        ("auto", min(budgets)),
        *((e, min(budgets)) for e in ("neural", "trees")),
    ]:
        model, took = fitted(train, budget, engine)
        found[engine, budget] = (scores(model.core, test, known), took)
        if engine == "auto" and budget == min(budgets):
            for member, core in alone(model.core).items():
                found[f"member {member}", budget] = (scores(core, test, known), took)
    marginal = found["auto", max(budgets)][0][:, 1]
    whole = (found["auto", max(budgets)][0][:, 0] - marginal).mean()
    short = found["auto", min(budgets)][0][:, 0]
    rows = []
    for (engine, budget), (nats, took) in found.items():
        apart = (short - nats[:, 0]).reshape(repeats, -1).mean(0)  # questions about one row hang together
        rows.append(
            {
                "table": name,
                "engine": engine,
                "budget": budget,
                "seconds": round(took["seconds"], 1),
                "processor": round(took["processor"], 1),
                "gain": round(float((nats[:, 0] - marginal).mean()), 4),
                "share": round(float((nats[:, 0] - marginal).mean() / whole), 4),
                "auto_minus": round(float(apart.mean()), 4),
                "error": round(float(apart.std(ddof=1) / len(apart) ** 0.5), 4),
            }
        )
    return rows


def main(
    tables: Annotated[str, typer.Option(help="comma-separated tables of table_sets.py")] = ",".join(table_sets.TUNING),
    seconds: Annotated[float, typer.Option(help="the short budget")] = 15.0,
    minutes: Annotated[float, typer.Option(help="the long budget")] = 2.0,
    shapes: Annotated[bool, typer.Option(help="whether budgets are kept is measured too")] = True,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Measure both, and print them."""
    record = Record(json, smoke=smoke)
    budgets, sizes = [seconds, 60 * minutes], SHAPES if shapes else ()
    frames = {} if smoke else {name: table_sets.load(name).frame for name in listed(tables, table_sets.NAMES) if tables}
    if smoke:
        budgets, sizes, frames = [1.0, 2.0], ((10, 3, 1.0),), {"generated": generated(80, 4)}
    budget_rows = []
    for rows, columns, budget in sizes:
        budget_rows.append(kept(rows, columns, budget))
        print(budget_rows[-1], flush=True)
    gain_rows = []
    for name, frame in frames.items():
        more = gains(name, frame, budgets)
        print_rows(more)
        gain_rows += more
    about = (
        "Budgets: generated tables; kept means within 15 % and 3 s. Gains: nats a cell over the marginals on a fifth "
        "of the rows; share: of the gain of the long budget; auto minus: what the blend has more than the engine at "
        "the same budget, or than one of its own members with all the weight, with its standard error over rows."
    )
    found = {"title": "Budgets of a fit, and what it gains in them", "about": about, "seed": 0}
    record.write(found | {"budgets": budget_rows, "gains": gain_rows})


if __name__ == "__main__":
    typer.run(main)
