"""A case with a known answer: one column says which of many others matters, and by itself tells nothing.

    python benchmarks/acquisition/selector.py [--minutes 1] [--json FILE]    (about three minutes)

The column ``which`` names one of six numbers, and the target is that number with a little noise. The best plan is to
ask for ``which`` and then for the number it names: after two questions the target is known up to the noise. Greedy
acquisition sees no gain in ``which`` and asks for a number, which is the right one once in six cases; a look two steps
ahead finds the plan. RMSE of the target after two questions, on generated test rows.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import anyorder as ao
from anyorder.tasks.acquisition.measurements import DRAWS

from common import Json, Record, Smoke, print_rows
from smoke_data import MINUTES

TIMES = ("networks", "model", "training", "questions", "tasks/acquisition")
CHOICES, NOISE = 6, 0.1


def table(rows: int, seed: int, choices: int = CHOICES) -> pd.DataFrame:
    """Rows of the selector, the numbers and the target."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, choices, rows)
    numbers = rng.normal(size=(rows, choices))
    target = numbers[np.arange(rows), which] + NOISE * rng.normal(size=rows)
    columns = {f"x{column}": numbers[:, column] for column in range(choices)}
    return pd.DataFrame({"which": [f"x{column}" for column in which], **columns, "target": target})


def main(
    minutes: Annotated[float, typer.Option(help="training budget")] = 1.0,
    rows: Annotated[int, typer.Option(help="test rows")] = 60,
    seed: int = 0,
    threads: Annotated[int, typer.Option(min=1)] = 2,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Fit, ask two questions of every test row under each policy, and print what is left to learn."""
    torch.set_num_threads(threads)
    record, trained_on = Record(json, "acquisition_selector.json", smoke=smoke), 4000
    choices, draws = CHOICES, DRAWS
    if smoke:
        minutes, rows, trained_on, choices, draws = MINUTES, 2, 100, 2, 16
    model = ao.fit(table(trained_on, seed, choices), minutes=minutes, engine="neural", seed=seed)
    test = table(rows, seed + 1, choices)
    lines: list[dict[str, Any]] = []
    for label, look_ahead in (("greedy", 1), ("two steps ahead", 2)):
        first = model.next_question({}, "target", look_ahead=look_ahead, least=0.0, draws=draws).candidates[0].name
        errors = []
        for _, row in test.iterrows():
            known = {first: row[first]}
            second = model.next_question(known, "target", least=0.0, draws=draws).candidates[0].name
            known[second] = row[second]
            errors.append(float(model.given(known)["target"].mean()) - row["target"])
        lines.append(_line(label, first, errors))
    plan = []
    for _, row in test.iterrows():
        both = {"which": row["which"], row["which"]: row[row["which"]]}
        plan.append(float(model.given(both)["target"].mean()) - row["target"])
    lines.append(_line("the known plan, same model", "which", plan))
    exact = (test["target"] - [row[row["which"]] for _, row in test.iterrows()]).tolist()
    lines.append(_line("the known plan, true law", "which", exact))
    print_rows(lines)
    payload = {
        "title": "A selector: greedy acquisition against a look two steps ahead",
        "about": f"One column names which of {choices} numbers the target copies (with noise of {NOISE}); the target's "
        f"deviation is 1. RMSE of the target after two questions on {rows} test rows, one model (engine neural, "
        f"{minutes:g} minutes of training on {trained_on:,} rows).",
        "seed": seed,
        "rows": lines,
    }
    record.write(payload)


def _line(label: str, first: str, errors: list[float]) -> dict[str, Any]:
    squares = np.square(errors)
    rmse = float(np.sqrt(squares.mean()))
    error = float(squares.std(ddof=1) / len(squares) ** 0.5 / (2 * rmse))
    return {"policy": label, "asks first": first, "RMSE after two": f"{rmse:.3f} ± {error:.3f}"}


if __name__ == "__main__":
    typer.run(main)
