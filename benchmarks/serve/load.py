"""Many clients at once: how many questions the service answers in a second, and how long one waits.

    python benchmarks/serve/load.py --json benchmarks/results/serve_load.json    (six minutes)

200 clients, each with one connection, ask one question after the other for 60 seconds: most want all columns given
some (a click in the explorer), the others a probability, a mean, a median or five rows. Popular questions come more
often than others, by Zipf's law with the exponent 0.99 over 5,000 questions, as is usual for such tests (YCSB); and, in
a second part, no question comes twice. The same is asked of a service that answers one by one: ``--together 1
--remember 0``. Both are one process with one thread that answers. Figures are requests for each second of the clock,
and for each second that the service had the processor: the clock depends on who else is at work. Cold start: from the
command to the first answer.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import Json, Record, Smoke, print_rows
from served import Client, Server, questions, serving, wine_model

TIMES = ("serve", "questions")
KINDS = ("marginals",) * 15 + ("probability", "mean", "median", "probability", "sample")
ONE_BY_ONE = ("--together", "1", "--remember", "0")
LIMITS = {"ratio": 4.0, "cold": 6.0, "memory": 1.1}  # at least; seconds, and times of halfway, at most


@dataclass
class Tally:
    """What the clients saw."""

    times: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)


async def client(server: Server, asked: Any, ends: float, tally: Tally) -> None:
    """One question after the other until the end."""
    one = Client(server)
    try:
        while time.perf_counter() < ends:
            path, body = next(asked)
            began = time.perf_counter()
            try:
                status, answer = await one.ask(path, body, 600.0)
            except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
                tally.wrong.append(repr(error))
                return
            if status != 200:
                tally.wrong.append(answer.decode("utf-8")[:200])
                continue
            tally.times.append(time.perf_counter() - began)
    finally:
        one.close()


async def watch(server: Server, ends: float, tally: Tally) -> None:
    """The memory of the service, every second or so."""
    while time.perf_counter() < ends:
        tally.memory.append(server.megabytes)
        await asyncio.sleep(min(1.0, max(ends - time.perf_counter(), 0.01)))


async def load(server: Server, asked: Any, clients: int, seconds: float) -> Tally:
    """All clients at once."""
    tally, ends = Tally(), time.perf_counter() + seconds
    await asyncio.gather(watch(server, ends, tally), *(client(server, asked, ends, tally) for _ in range(clients)))
    return tally


def run(model: Path, asked: Any, clients: int, seconds: float, *arguments: str) -> dict[str, Any]:
    """The figures of one service under load; some questions are asked before, which do not count."""
    # No answer is given up: on a busy machine that would say nothing of the service.
    with serving(str(model), "--workers", "1", "--most-seconds", "600", *arguments) as server:
        asyncio.run(load(server, itertools.cycle(questions(40, 99, KINDS)), 1, min(seconds, 5)))
        began, used = time.perf_counter(), server.seconds
        tally = asyncio.run(load(server, asked, clients, seconds))
        took, used = time.perf_counter() - began, server.seconds - used
    count, half = len(tally.times), len(tally.memory) // 2
    return {
        "requests": count,
        "errors": len(tally.wrong),
        "first_error": tally.wrong[0] if tally.wrong else None,
        "per_second": count / took,
        "per_processor_second": count / used,
        "median_ms": 1000 * float(np.median(tally.times)),
        "p99_ms": 1000 * float(np.quantile(tally.times, 0.99)),
        "megabytes_before": tally.memory[0],
        "megabytes_halfway": tally.memory[half],
        "megabytes_after": tally.memory[-1],
    }


def cold(model: Path) -> dict[str, float]:
    """Seconds from the command to the first answer, by the clock and of the processor."""
    began = time.perf_counter()
    with serving(str(model)) as server:
        path, body = questions(1, 5, ["marginals"])[0]
        status, _ = asyncio.run(Client(server).ask(path, body))
        assert status == 200
        return {"seconds": time.perf_counter() - began, "processor_seconds": server.seconds}


def missed(found: dict[str, dict[str, Any]], ratios: dict[str, float], start: dict[str, float]) -> list[str]:
    """What is not as it should be. Of the ratio that of popular questions by the clock: what 200 clients see."""
    wrong = [f"{name}: {one['errors']} errors, {one['first_error']}" for name, one in found.items() if one["errors"]]
    for name, one in found.items():
        if one["megabytes_after"] > LIMITS["memory"] * one["megabytes_halfway"]:
            wrong.append(f"{name}: memory grew from {one['megabytes_halfway']:.0f} to {one['megabytes_after']:.0f} MB")
    if ratios["popular, per_second"] < LIMITS["ratio"]:
        wrong.append(f"answered together only {ratios['popular, per_second']:.2f} times as many")
    if start["seconds"] > LIMITS["cold"]:
        wrong.append(f"cold start {start['seconds']:.2f} s")
    return wrong


def main(
    clients: int = 200,
    seconds: float = 60.0,
    minutes: float = 0.5,
    distinct: Annotated[int, typer.Option(help="different questions of which some are popular")] = 5000,
    skew: float = 0.99,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Load the service, batching and one by one, and print both."""
    record = Record(json, smoke=smoke)
    if smoke:
        clients, seconds, minutes, distinct = 8, 1.0, 0.02, 50
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "wine.anyorder"
        wine_model(model, minutes)
        start = cold(model)
        asked = questions(distinct, 0, KINDS)
        shares = np.arange(1, distinct + 1) ** -skew
        found: dict[str, dict[str, Any]] = {}
        for what, arguments in (("one by one", ONE_BY_ONE), ("together", ())):
            # The same questions in the same order for both.
            drawn = np.random.default_rng(1).choice(distinct, size=200_000, p=shares / shares.sum())
            found[f"popular, {what}"] = run(model, (asked[at] for at in drawn), clients, seconds, *arguments)
            fresh = itertools.chain.from_iterable(questions(500, 10 + part, KINDS) for part in itertools.count())
            found[f"distinct, {what}"] = run(model, fresh, clients, seconds, *arguments)
    ratios = {
        f"{kind}, {unit}": found[f"{kind}, together"][unit] / found[f"{kind}, one by one"][unit]
        for kind in ("popular", "distinct")
        for unit in ("per_second", "per_processor_second")
    }
    print_rows(
        [{"": name, **{k: v for k, v in figures.items() if k != "first_error"}} for name, figures in found.items()]
    )
    print("times as many as one by one: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()))
    print(f"cold start {start['seconds']:.2f} s ({start['processor_seconds']:.2f} s of the processor)")
    setting = {"clients": clients, "seconds": seconds, "distinct": distinct, "skew": skew, "kinds": KINDS}
    record.write(
        {
            "title": "Many clients of one service",
            "about": f"{clients} clients for {seconds:g} seconds on 127.0.0.1, mixed questions about the wines, "
            "popular ones by Zipf's law or no question twice; answered together, and one by one.",
            "seed": 0,
            "rows": [{"questions": name, **figures} for name, figures in found.items()],
            "times as many as one by one": {name: round(ratio, 2) for name, ratio in ratios.items()},
            "cold start": start,
            "limits": LIMITS,
            "missed": (wrong := missed(found, ratios, start)),
            "details": {"setting": setting},
        }
    )
    for line in wrong:
        print(f"missed: {line}")
    if wrong and not smoke:
        raise SystemExit(1)


if __name__ == "__main__":
    typer.run(main)
