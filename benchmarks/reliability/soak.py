"""A long life in short: a million small questions to one loaded model, with loads and saves between them.

    python benchmarks/reliability/soak.py [--count 1000000] [--minutes 20] [--seed 0] [--json FILE]

Memory must stay flat: a line is fitted through the process's resident megabytes after a warm-up of a fifth of the
questions, and its slope has a bound. Answers to a fixed set of questions must be at the end, and after every load,
what they were at the beginning, bit for bit; every saved file must have the bytes of the first. The run ends after so
many minutes with the questions it has asked by then, and says how many.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import anyorder as ao

from common import Json, Record, Smoke, print_rows
from isolation import resident
from questions import frame

TIMES = ("questions", "model", "variables", "distributions", "modalities/tables")
BOUND = 2.0  # megabytes per 100,000 questions
FEWEST = 20_000  # questions from which on a slope says something
WARM = 0.2  # the share of the questions before memory is watched
EVERY = 2_000  # questions between a save and a load


TABLE = frame()[["rooms", "river", "price"]]


def small_model() -> ao.TableModel:
    config = {
        "training": {"minutes": None, "steps": 50, "threads": 1, "validation_queries": 32},
        "network": {"name": "residual_mlp", "width": 16, "blocks": 1},
        "encoding": "standard",
    }
    return ao.fit(TABLE, engine="neural", kinds={"rooms": "integer"}, config=config)


Question = Callable[[ao.TableModel, Random], Any]


def row(random: Random, hidden: str) -> pd.DataFrame:
    return TABLE.iloc[[random.randrange(len(TABLE))]].assign(**{hidden: None})


# Each kind with how often it comes, in thousand.
KINDS: dict[str, tuple[int, Question]] = {
    "probabilities of levels": (400, lambda m, r: m.given(rooms=r.randint(1, 8))["river"].probs()),
    "conditional mean": (150, lambda m, r: m.given(rooms=r.randint(1, 8), river="yes")["price"].mean()),
    "quantile": (80, lambda m, r: m.given(rooms=r.randint(1, 8))["price"].quantile(r.random())),
    "typed probability": (150, lambda m, r: m.ask(f"P(river=yes | price={r.uniform(5, 40):.2f})")),
    "typed event": (60, lambda m, r: m.ask(f"P(price > {r.uniform(5, 40):.2f} | rooms={r.randint(1, 8)})")),
    "log_prob": (100, lambda m, r: m.given(rooms=r.randint(1, 8)).log_prob(river="no")),
    "a mistake": (20, lambda m, r: refused(m, r)),
    "log_prob of a row": (10, lambda m, r: m.log_prob(row(r, "price"))),
    "sample": (10, lambda m, r: m.given(rooms=r.randint(1, 8)).sample(1, seed=r.randrange(10**6))),
    "fill of a row": (5, lambda m, r: m.fill(row(r, "river"))),
    "range": (10, lambda m, r: m.given(price=f"{r.randint(5, 20)}..").using(draws=8)["river"].probs()),
    "next question": (5, lambda m, r: m.next_question({"rooms": r.randint(1, 8)}, about="price", draws=2)),
}


def refused(model: ao.TableModel, random: Random) -> str:
    """A question that cannot be answered is one too, and must leave nothing behind."""
    try:
        model.ask(f"price | roms={random.random()}")
    except ao.UserError as error:
        return str(error)
    raise AssertionError("an unknown column was not refused")


def probes(model: ao.TableModel) -> list[str]:
    """Answers to one fixed question of each kind, bit for bit."""
    return [bits(question(model, Random(7))) for _, question in KINDS.values()]


def bits(answer: Any) -> str:
    if isinstance(answer, pd.DataFrame):
        return repr([(name, [_bits_of_cell(cell) for cell in column]) for name, column in answer.items()])
    if isinstance(answer, pd.Series):
        return answer.to_numpy().tobytes().hex()
    return answer.hex() if isinstance(answer, float) else repr(answer)


def _bits_of_cell(cell: Any) -> str:
    return float(cell).hex() if isinstance(cell, float | np.floating) else repr(cell)


def main(
    count: int = 1_000_000,
    seed: int = 0,
    minutes: Annotated[float, typer.Option(help="the run ends after so long, with what it has asked by then")] = 20.0,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Ask, print how often each kind was asked and what became of memory, and exit with 1 if a promise is broken."""
    torch.set_num_threads(1)
    record = Record(json, smoke=smoke)
    count = 300 if smoke else count
    every = 100 if smoke else EVERY
    print(f"seed {seed}; again: --seed {seed} --count {count}")
    random = Random(seed)
    names, weights = list(KINDS), [weight for weight, _ in KINDS.values()]
    asked: Counter[str] = Counter()
    memory: list[tuple[int, float]] = []
    faults: list[str] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        first, again = Path(name) / "first.anyorder", Path(name) / "again.anyorder"
        small_model().save(first)
        model = ao.load(first)
        assert isinstance(model, ao.TableModel)
        written, expected = first.read_bytes(), probes(model)
        while asked.total() < count and time.monotonic() - began < 60 * minutes:
            for kind in random.choices(names, weights, k=min(every, count - asked.total())):
                KINDS[kind][1](model, random)
                asked[kind] += 1
            model.save(again)
            other = ao.load(again)
            if again.read_bytes() != written:
                faults.append(f"after {asked.total()} questions the model was saved as other bytes")
            if probes(other) != expected:
                faults.append(f"after {asked.total()} questions a loaded model answered otherwise")
            memory.append((asked.total(), resident()))
        if probes(model) != expected:
            faults.append("answers at the end are not those of the beginning")
    seconds = time.monotonic() - began
    slope, spread = trend(memory)
    enough = asked.total() >= FEWEST
    if enough and slope > BOUND:
        faults.append(f"memory grew by {slope:.2f} MB per 100,000 questions, more than {BOUND:g}")
    print_rows([{"kind": kind, "questions": asked[kind]} for kind in names])
    row = {
        "questions": asked.total(),
        "minutes": round(seconds / 60, 2),
        "ms a question": round(1e3 * seconds / max(asked.total(), 1), 3),
        "saves and loads": len(memory),
        "MB at first": round(memory[0][1], 1),
        "MB at last": round(memory[-1][1], 1),
        "MB per 100,000": round(slope, 3) if enough else None,
        "MB around the line": round(spread, 2) if enough else None,
        "same bits": not any("answer" in fault or "bytes" in fault for fault in faults),
    }
    print_rows([row])
    for fault in faults[:10]:
        print(f"FAULT: {fault}")
    payload = {
        "title": "A long life in short",
        "about": f"Small questions of {len(KINDS)} kinds to one loaded model of a table, a save and a load after every "
        f"{every}; memory may grow by {BOUND:g} MB per 100,000 questions after a warm-up of a fifth.",
        "seed": seed,
        "rows": [row],
        "details": {"asked": dict(asked), "memory": memory[:: max(1, len(memory) // 100)]},
    }
    record.write(payload)
    if faults:
        raise typer.Exit(1)


def trend(memory: list[tuple[int, float]]) -> tuple[float, float]:
    """Megabytes per 100,000 questions after the warm-up, and how far the samples lie from that line."""
    later = [pair for pair in memory if pair[0] >= WARM * memory[-1][0]]
    if len(later) < 3:
        return 0.0, 0.0
    at, held = (np.array(part, dtype=float) for part in zip(*later, strict=True))
    line = np.polyfit(at / 1e5, held, 1)
    return float(line[0]), float(np.std(held - np.polyval(line, at / 1e5)))


if __name__ == "__main__":
    typer.run(main)
