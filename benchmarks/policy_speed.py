"""How long a policy takes to act: is a loop of 30 actions a second possible?

    python benchmarks/policy_speed.py --json benchmarks/results/policy_speed.json    (ten minutes)

Generated demonstrations of a state of 59 numbers and 9 actions (:mod:`context`), a short fit with mixtures of 20
Gaussians. Timed is ``policy.act`` for one state, four actions given and five asked: by a sample, by the mean, and by
the most probable of 16 draws, each alone, on one thread, after warm-up. Beside it stand the generic way to the same
draw, ``model.given({**state, **given}).sample(1)``, and one call for 256 states. Rows: 20,000 make one network, 3,000 a
blend of four (folds); the default engine, ``auto``, adds trees to either. Medians, of the wall and of the processor's
time.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import numpy as np
import torch
import typer

import anyorder as ao

from common import Json, Record, Smoke, print_rows
from context import ACTIONS, demonstrations

TIMES = ("tasks/policies", "model", "networks", "heads", "variables", "questions")
STATE = 59
GIVEN = 4
BATCH = 256
COMPONENTS = 20
SIZES = ((20_000, "neural"), (20_000, "auto"), (3_000, "neural"), (3_000, "auto"))


def median(call: Callable[[int], Any], repeats: int, warm: int) -> dict[str, float]:
    """Milliseconds of a call, the median of so many after some that do not count."""
    took = []
    for number in range(warm + repeats):
        wall, processor = time.perf_counter(), time.process_time()
        call(number)
        took.append((time.perf_counter() - wall, time.process_time() - processor))
    wall, processor = np.median(np.array(took[warm:]), axis=0) * 1e3
    return {"ms": round(float(wall), 3), "processor_ms": round(float(processor), 3)}


def measured(rows: int, engine: str, seconds: float, repeats: int) -> list[dict[str, Any]]:
    """All ways to act, of one model."""
    frame, names = demonstrations(rows, STATE)
    config = {"components": COMPONENTS}
    model = ao.fit(frame, context=names, engine=engine, minutes=seconds / 60, config=config, seed=0)
    policy = ao.Policy(model)
    states = frame[names].to_numpy()
    commands = frame[policy.action[:GIVEN]].to_dict("records")
    cells = frame[names].head(repeats).to_dict("records")

    def row(seed: int) -> int:
        return seed % min(len(cells), len(states))

    def generic(seed: int) -> Any:
        return model.given({**cells[row(seed)], **commands[row(seed)]}).sample(1, seed=seed)

    def acted(how: str, seed: int) -> Any:
        return policy.act(states[row(seed)], commands[row(seed)], how=how, seed=seed)

    found: list[dict[str, Any]] = []
    for how in ("sample", "mean", "most probable"):
        act = median(partial(acted, how), repeats, 20)
        found.append({"way": how, "states": 1, **act})
    unrolled = median(generic, repeats // 4, 5)
    found.append({"way": "generic sample", "states": 1, **unrolled})
    many, given = states[:BATCH], frame[policy.action[:GIVEN]].iloc[:BATCH]
    together = median(lambda seed: policy.act(many, given, seed=seed), repeats // 20, 2)
    found.append({"way": "sample", "states": len(many), **together})
    for entry in found:
        entry["generic_over_this"] = round(unrolled["processor_ms"] / entry["processor_ms"] * entry["states"], 2)
    about = {"engine": engine, "rows": rows, "members": len(model.core.network.inside) or 1}
    return [about | entry for entry in found]


def main(
    seconds: Annotated[float, typer.Option(help="of each fit")] = 60.0,
    repeats: Annotated[int, typer.Option(help="calls of which the median is taken")] = 500,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Measure, and print."""
    record = Record(json, smoke=smoke)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # some of the states are rare
    if smoke:
        found = measured(200, "neural", 1.0, 20)
    else:
        found = [entry for rows, engine in SIZES for entry in measured(rows, engine, seconds, repeats)]
    print_rows(found)
    about = (
        f"policy.act with a state of {STATE} numbers, {GIVEN} of {ACTIONS} actions given: median milliseconds after "
        "warm-up, on one thread, of the wall and of the processor; generic over this: how many times as long "
        "model.given(...).sample(1) takes for as many states."
    )
    record.write({"title": "How fast a policy acts", "about": about, "seed": 0, "policies": found})


if __name__ == "__main__":
    typer.run(main)
