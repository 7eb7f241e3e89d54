"""What the kitchen gives without any-order models: doing nothing, behavioural cloning, and the demonstrator itself.

    python benchmarks/kitchen/baselines.py [--demonstrations FOLDER] [--episodes 50] [--trainings 3]    (15 minutes)

Tasks completed in an episode of 280 steps. All rows meet the same kitchens: one seed is one start and one noise.
Demonstrations are those of benchmarks/kitchen/demonstrate.py, or a file of Minari or D4RL.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from demonstrate import default_folder, demonstrations, whole, write

from anyorder.data.demonstrations import load

from cloning import Cloned, Schedule
from common import Json, Record, Smoke, print_rows
from demonstrator import Demonstrator
from episodes import KitchenPolicy, mean_and_error, tasks_completed
from kitchen import ACTIONS, TASKS, Kitchen, Vector, require

TIMES = ("data",)


class Still:
    """Sends the action 0: the arm sinks under its weight."""

    def start(self, seed: int) -> None:
        """Nothing to begin."""

    def act(self, state: Vector) -> Vector:
        """Nothing to do."""
        return np.zeros(ACTIONS)


def main(
    demos: Annotated[Path | None, typer.Option("--demonstrations", help="the cache's by default")] = None,
    episodes: Annotated[int, typer.Option(help="of each policy, under the seeds 0, 1, ...")] = 50,
    trainings: Annotated[int, typer.Option(help="of behavioural cloning, under as many seeds")] = 3,
    epochs: int = Schedule.epochs,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Clone, play and print tasks completed in an episode."""
    require(smoke=smoke)
    torch.set_num_threads(1)
    record = Record(json, "kitchen_baselines.json", smoke=smoke)
    with Kitchen() as kitchen:
        if smoke:
            episodes, trainings, epochs = 1, 1, 1
            demos = record.beside(Path("demonstrations"))
            write(demos, [pair for pair in demonstrations(kitchen, 2, 0) if whole(*pair)])
        frame = load(demos or default_folder(0))
        clones = [Cloned.learn(frame, Schedule(epochs=epochs), seed=seed) for seed in range(trainings)]
        policies: dict[str, KitchenPolicy] = {"nothing": Still(), "demonstrator": Demonstrator(kitchen, TASKS)}
        policies |= {f"cloning {seed}": clone for seed, clone in enumerate(clones)}
        counts = tasks_completed(policies, range(episodes), kitchen)
    cloned = np.stack([counts[f"cloning {seed}"] for seed in range(trainings)])
    rows = [
        row("doing nothing", counts["nothing"][None]),
        row("behavioural cloning", cloned),
        row("the demonstrator, all four in order, without noise", counts["demonstrator"][None]),
    ]
    record.write(
        {
            "title": "The kitchen without any-order models",
            "about": f"Tasks completed in an episode of FrankaKitchen-v1 (of 4), mean ± standard error over {episodes} "
            f"episodes with common random numbers; behavioural cloning (squared error, {Schedule.depth} layers of "
            f"{Schedule.width}) over {trainings} trainings as well, on {frame['episode'].nunique()} scripted "
            f"demonstrations ({len(frame):,} steps). The error is that of the mean over episodes; 'trainings' is the "
            "standard deviation between the means of trainings.",
            "seed": "0, 1, ... for trainings and for episodes",
            "rows": rows,
            "details": {
                "tasks completed": {name: found.tolist() for name, found in counts.items()},
                "held-out squared error": [clone.held_out for clone in clones],
            },
        }
    )
    print_rows(rows)


def row(name: str, counts: NDArray[np.int64]) -> dict[str, Any]:
    """One line of the table, from counts ``[trainings, episodes]``."""
    mean, error = mean_and_error(counts.mean(axis=0))
    means = counts.mean(axis=1)
    return {
        "policy": name,
        "tasks completed": f"{mean:.2f}" + (f" ± {error:.2f}" if np.isfinite(error) else ""),
        "trainings": f"{means.std(ddof=1):.2f}" if len(means) > 1 else "",
        **{f"{tasks} tasks": f"{(counts == tasks).mean():.0%}" for tasks in range(len(TASKS) + 1)},
    }


if __name__ == "__main__":
    typer.run(main)
