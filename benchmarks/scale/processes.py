"""Steps a second of a text's fit in two processes of one thread each, over those in one.

    python benchmarks/scale/processes.py --json benchmarks/results/processes.json    (five minutes, two cores)

The batch is the same for both. They take turns in one run, and the quickest turn of each counts; while one process
trains alone the other waits. On a machine of two cores that does something else as well, two processes have less than
their share: say so beside the figure. The processor seconds of a step, those of the first process, do not depend on
what else runs: the ratio of those is what two idle cores could come to at most.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from anyorder.data.text import Alphabet, Windows
from anyorder.modalities.texts.core import WindowRows, codes_of, text_masking, text_model
from anyorder.modalities.texts.options import TextOptions
from anyorder.protocols import protocols
from anyorder.support.processes import ALONE, Processes, joined
from anyorder.training.loop import Trainer
from anyorder.training.objectives import objective_for

from common import Json, Record, Smoke, print_rows

TIMES = ("training", "support/processes.py", "networks")
WANTED = 1.6
WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog"]


def trainer(preset: str, length: int, processes: Processes) -> Trainer:
    """A new one; its text, weights and steps are the same whenever it is made."""
    text = " ".join(np.random.default_rng(0).choice(WORDS, 20_000))
    options, alphabet = TextOptions.read({"preset": preset}), Alphabet.of(text, "characters")
    core = text_model(alphabet, length, options.described_network(), protocols.build(options.protocol), seed=0)
    rows = WindowRows(Windows(codes_of(alphabet, text), length))
    objective = objective_for(core, text_masking(alphabet, core.network))
    held_out = rows.take(torch.arange(8))
    return Trainer(core, objective, rows, held_out, options.training, seed=0, processes=processes)


def turn(one: Trainer, steps: int) -> tuple[float, float]:
    """Steps a second of so many, by the clock and by the processor."""
    clocks = (time.perf_counter, time.process_time)
    began = [clock() for clock in clocks]
    for _ in range(steps):
        one._step()
    by_clock, by_processor = (steps / (clock() - since) for clock, since in zip(clocks, began, strict=True))
    return by_clock, by_processor


def main(
    preset: str = "medium",
    length: int = 250,
    steps: Annotated[int, typer.Option(help="of each turn")] = 8,
    turns: int = 5,
    port: Annotated[int, typer.Option(hidden=True, help="of the process that this one helps")] = 0,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Print the steps a second of one process and of two, and their ratio."""
    if smoke:
        preset, length, steps, turns = "tiny", 32, 2, 1
    torch.set_num_threads(1)
    if not port:
        record = Record(json, smoke=smoke)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            there = free.getsockname()[1]
        said = ["--preset", preset, "--length", str(length), "--steps", str(steps), "--turns", str(turns)]
        other = subprocess.Popen([sys.executable, __file__, *said, "--port", str(there)])
    names = {"RANK": "1" if port else "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    os.environ.update({**names, "MASTER_PORT": str(port or there), "GLOO_SOCKET_IFNAME": "lo"})
    processes = joined()
    alone, together = (trainer(preset, length, kind) for kind in (ALONE, processes))
    together._join()
    speeds: dict[str, list[tuple[float, float]]] = {"one": [], "two": []}
    for number in range(turns + 1):
        found = {"one": turn(alone, steps) if processes.leads else (0.0, 0.0)}
        processes.agreed(stop=False, seconds=0.0)  # the other one waits here
        found["two"] = turn(together, steps)
        if number:  # the first turn also does what is done only once
            for name, speed in found.items():
                speeds[name].append(speed)
    if port:
        return
    other.wait()
    best = {name: [max(own) for own in zip(*found, strict=True)] for name, found in speeds.items()}
    rows = [
        {
            "processes": name,
            "steps a second": float(f"{by_clock:.3g}"),
            "processor seconds a step": float(f"{1 / by_processor:.3g}"),
        }
        for name, (by_clock, by_processor) in best.items()
    ]
    ratio, most = (two / one for two, one in zip(best["two"], best["one"], strict=True))
    print_rows(rows)
    print(f"by the processor: {most:.2f}")
    print(f"two processes over one: {ratio:.2f}; at least {WANTED} wanted on two cores that do nothing else")
    options = TextOptions.read({"preset": preset}).training
    about = (
        f"Training a text's preset {preset}, batches of {options.batch} windows of {length} characters: the quickest "
        f"of {turns} turns of {steps} steps, one process and two by turns, one thread each."
    )
    found = {"title": "Two processes against one", "about": about, "seed": 0, "rows": rows}
    record.write(found | {"ratio": round(ratio, 3), "by_processor": round(most, 3)})


if __name__ == "__main__":
    typer.run(main)
