"""What two busy processes beside it cost a fit and a question, on the usual number of threads and on two.

    python benchmarks/beside_others.py --json benchmarks/results/beside_others.json    (eight minutes, two cores)

Steps a second of a table's, a text's and a picture's fit, and seconds of questions to the fitted models: alone on the
machine, and beside two processes that do nothing but count. Runs alone and beside take turns, and the best of each
counts. The alternative is two threads for the same work, which is what torch takes by itself on a machine of two cores.
The ratio is what is left: steps beside over steps alone, seconds alone over seconds beside. With two cores and three
processes that all want one, two thirds are fair.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer

import anyorder as ao
from anyorder.support.threads import torch_threads, usual_threads
from fill_speed import mixed_table

from common import Json, Record, Smoke, best_of, busy, print_rows

TIMES = ("support/threads.py", "training", "model", "networks", "modalities")
BUSY = 2
LEAST = 1 / 3
"""Of the steps alone; of the speed of a question alone."""


def table_of(*, smoke: bool) -> pd.DataFrame:
    """Fifteen columns, numbers and levels."""
    return mixed_table(200 if smoke else 2000)


def fits(seconds: float, *, smoke: bool) -> dict[str, Callable[[int], Any]]:
    """Fits by name, each of a number of threads."""
    rng = np.random.default_rng(0)
    size = "tiny" if smoke else "small"
    table = table_of(smoke=smoke)
    words = rng.choice(["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog"], 300 if smoke else 20_000)
    pictures = (rng.random((60, 14, 14)) < 0.4).astype(np.uint8)

    def training(threads: int) -> dict[str, Any]:
        budget = {"minutes": None, "steps": 2} if smoke else {"minutes": seconds / 60}
        return {"training": {"threads": threads, "validation_queries": 16, **budget}}

    return {
        "table": lambda threads: ao.fit(
            table, engine="neural", config={**training(threads), "encoding": "normal_scores"}
        ),
        "text": lambda threads: ao.fit_text(
            " ".join(words), length=32 if smoke else 250, preset=size, config=training(threads)
        ),
        "picture": lambda threads: ao.fit_images(pictures, preset=size, config=training(threads)),
    }


def questions(models: dict[str, Any], *, smoke: bool) -> dict[str, Callable[[], Any]]:
    """Questions by name, small and large."""
    count = 20 if smoke else 500
    table = table_of(smoke=smoke).head(count)
    picture = np.zeros((1, 14, 14), dtype=np.uint8)
    half = np.ones((14, 14), dtype=bool)
    half[7:] = False
    known = {"number0": 0.5, "level0": "level 1"}
    return {
        "table: quantiles": lambda: models["table"].given(known)["number1"].quantile([0.05, 0.5, 0.95]),
        "table: 100 rows drawn": lambda: models["table"].given(known).sample(100, seed=0),
        f"table: {count} rows scored": lambda: models["table"].log_prob(table),
        "text: one drawn": lambda: models["text"].sample(1, seed=0),
        "text: a line scored": lambda: models["text"].log_prob(["the quick brown fox jumps over"]),
        "picture: lower half filled": lambda: models["picture"].fill(picture, half, seed=0),
        "picture: one scored": lambda: models["picture"].log_prob(picture),
    }


def in_turn(work: Callable[[], float], runs: int) -> tuple[float, float]:
    """The most of some runs alone, and of some beside the others, by turns."""
    alone, beside = [], []
    for _ in range(runs):
        alone.append(work())
        with busy(BUSY):
            beside.append(work())
    return max(alone), max(beside)


def main(
    seconds: Annotated[float, typer.Option(help="of each fit")] = 10.0,
    runs: Annotated[int, typer.Option(help="of every kind, by turns")] = 2,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Print what is left of each fit and each question beside two busy processes."""
    record = Record(json, smoke=smoke)
    if smoke:
        runs = 1
    usual, rows, models = usual_threads(), [], {}
    counts = (
        [usual] if smoke else [usual, 2]
    )  # two threads on a busy machine may take a minute where one takes a second
    for name, fit in fits(seconds, smoke=smoke).items():
        models[name] = fit(usual)  # also what is done only once, such as imports

        def speed(threads: int, fit: Callable[[int], Any] = fit) -> float:
            facts = fit(threads).card["training"]
            return float(facts["steps"]) / float(facts["seconds"])

        rows += [
            row(f"fit: {name}", threads, *in_turn(lambda: speed(threads), runs), "steps a second")  # noqa: B023 (called at once)
            for threads in counts
        ]
    torch.set_num_threads(2)
    for name, ask in questions(models, smoke=smoke).items():
        ask()
        for threads in counts:

            def asked(ask: Callable[[], Any] = ask, threads: int = threads) -> float:
                # The usual number is what a question takes by itself, without a block around it.
                with nullcontext() if threads == usual else torch_threads(threads):
                    return 1 / best_of(1 if smoke else 5, ask)

            rows.append(row(name, threads, *in_turn(asked, runs), "questions a second"))
    print_rows(rows)
    least = {count: min(found["left"] for found in rows if found["threads"] == count) for count in counts}
    for count, left in least.items():
        print(f"least that is left on {count} thread(s): {left:.2f}; at least {LEAST:.2f} wanted")
    about = (
        f"Fits of {seconds:g} seconds and questions to the fitted models, alone and beside {BUSY} busy processes, by "
        f"turns, the best of {runs} each. Left: the speed beside the others over the speed alone. Usual is "
        f"{usual} thread; the alternative is two."
    )
    found = {"title": "Beside two busy processes", "about": about, "seed": 0, "rows": rows}
    record.write(found | {"least": {f"{count} threads": round(left, 3) for count, left in least.items()}})


def row(work: str, threads: int, alone: float, beside: float, unit: str) -> dict[str, Any]:
    """One line of the result."""
    speeds = {"alone": float(f"{alone:.3g}"), "beside": float(f"{beside:.3g}")}
    return {"work": work, "threads": threads, **speeds, "unit": unit, "left": round(beside / alone, 3)}


if __name__ == "__main__":
    typer.run(main)
