"""Make scripted demonstrations of the kitchen in Minari's form, and count how often the demonstrator succeeds.

    python benchmarks/kitchen/demonstrate.py [--episodes 300] [--seed 0] [--out FOLDER]    (six minutes)

As in D4RL's *mixed*, a demonstration has some of the four tasks, mostly one after the other as one walks along the
kitchen (microwave, kettle, bottom burner, light switch), sometimes in another order, and rarely all four. They differ
in speed, in where the arm starts and in way-points, and their actions are noisy (``HUMAN`` in demonstrator.py). Only
episodes in which everything asked was completed are kept. What is written is ``data/main_data.hdf5`` in the folder,
which ``anyorder.data.demonstrations.load`` reads. The folder is one of the cache, not of the project, by default.

Then the demonstrator is asked for all four tasks in order, in the same manner, under seeds of its own.
"""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from anyorder.data.origin import cache_folder
from anyorder.support.atomic import atomic_path

from common import Json, Record, Smoke, print_rows
from demonstrator import HUMAN, Demonstrator
from episodes import Episode, by_task, mean_and_error, play
from kitchen import STEPS, TASKS, Kitchen, require

TIMES = ("data",)
FIRST = 10_000
"""Seeds of demonstrations begin here; those below are for evaluation."""
COUNTS = {2: 0.3, 3: 0.55, 4: 0.15}  # how many tasks a demonstration has, and how often
SHUFFLED = 0.25  # share of demonstrations whose order is drawn
FOLDER = "kitchen-scripted-{seed}"


def drawn_order(rng: np.random.Generator) -> tuple[str, ...]:
    """The tasks of one demonstration."""
    count = rng.choice(list(COUNTS), p=list(COUNTS.values()))
    chosen = np.sort(rng.choice(len(TASKS), count, replace=False))
    if rng.random() < SHUFFLED:
        chosen = rng.permutation(chosen)
    return tuple(TASKS[index] for index in chosen)


def demonstrations(kitchen: Kitchen, wanted: int, seed: int) -> list[tuple[tuple[str, ...], Episode]]:
    """So many episodes with all that was asked, and those between them in which something failed."""
    found: list[tuple[tuple[str, ...], Episode]] = []
    kept = 0
    while kept < wanted:
        own = FIRST * (seed + 1) + len(found)
        order = drawn_order(np.random.default_rng([own, 3]))
        found.append(
            (order, episode := play(kitchen, Demonstrator(kitchen, order, HUMAN), own, start_noise=HUMAN.start_noise))
        )
        kept += whole(order, episode)
        if len(found) >= FIRST:
            raise RuntimeError(f"only {kept} of {len(found)} demonstrations succeeded")
    return found


def whole(order: Sequence[str], episode: Episode) -> bool:
    """Whether all that was asked was completed."""
    return set(order) <= set(episode.completed)


def write(folder: Path, kept: Sequence[tuple[tuple[str, ...], Episode]]) -> Path:
    """The episodes as Minari lays them out: states and actions, rewards (tasks completed in a step) and ends."""
    import h5py

    path = folder / "data" / "main_data.hdf5"
    path.parent.mkdir(parents=True, exist_ok=True)
    # The part is locked already, by whoever writes it whole.
    with atomic_path(path) as beside, h5py.File(beside, "w", locking=False) as file:
        for number, (order, episode) in enumerate(kept):
            steps = len(episode.actions)
            group = file.create_group(f"episode_{number}")
            group.attrs.update({"id": number, "seed": episode.seed, "total_steps": steps, "tasks": ", ".join(order)})
            group["observations/observation"] = np.array(episode.states)
            group["actions"] = np.array(episode.actions)
            group["rewards"] = np.bincount([step - 1 for step in episode.completed.values()], minlength=steps) * 1.0
            group["terminations"] = np.zeros(steps, dtype=bool)
            group["truncations"] = np.arange(steps) == steps - 1  # it ends because the demonstrator is done
    metadata = {
        "dataset_id": f"anyorder/{folder.name}",
        "data_format": "hdf5",
        "total_episodes": len(kept),
        "total_steps": sum(len(episode.actions) for _, episode in kept),
        "algorithm_name": "scripted: way-points and damped least squares",
    }
    with atomic_path(path.parent / "metadata.json") as beside:
        beside.write_text(json_format.dumps(metadata, indent=2) + "\n", encoding="utf-8")
    return path


def default_folder(seed: int) -> Path:
    """Where demonstrations of this seed are kept on this machine."""
    return cache_folder() / FOLDER.format(seed=seed)


def main(
    episodes: Annotated[int, typer.Option(help="so many in which all that was asked is completed")] = 300,
    check: Annotated[int, typer.Option(help="episodes with all four tasks in order")] = 50,
    seed: int = 0,
    out: Annotated[Path | None, typer.Option(help="the folder to write; one of the cache by default")] = None,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Demonstrate, write, and print how often each task succeeds."""
    require(smoke=smoke)
    record = Record(json, "kitchen_demonstrations.json", smoke=smoke)
    if smoke:
        episodes, check = 2, 1
    with Kitchen() as kitchen:
        made = demonstrations(kitchen, episodes, seed)
        kept = [(order, episode) for order, episode in made if whole(order, episode)]
        path = write(out or record.beside(default_folder(seed)), kept)
        print(f"{len(kept)} episodes, {sum(len(episode.actions) for _, episode in kept):,} steps in {path}")
        asked = [
            play(kitchen, Demonstrator(kitchen, TASKS, HUMAN), own, start_noise=HUMAN.start_noise)
            for own in range(check)
        ]
    found = payload(made, kept, asked, seed)
    record.write(found)
    print_rows(found["rows"])
    print(f"all four in order: {found['all four in order']}")


def payload(
    made: Sequence[tuple[tuple[str, ...], Episode]],
    kept: Sequence[tuple[tuple[str, ...], Episode]],
    asked: Sequence[Episode],
    seed: int,
) -> dict[str, Any]:
    """The table of success rates."""
    shares = by_task(asked)
    rows = []
    for task in TASKS:
        tried = [episode for order, episode in made if task in order]
        rows.append(
            {
                "task": task,
                "asked in demonstrations": len(tried),
                "completed": f"{np.mean([task in episode.completed for episode in tried]):.1%}" if tried else "",
                "completed, all four in order": f"{shares[task]:.1%}",
            }
        )
    mean, error = mean_and_error(np.array([len(episode.completed) for episode in asked]))
    lengths = [len(episode.actions) for _, episode in kept]
    return {
        "title": "Scripted demonstrations of the kitchen",
        "about": f"FrankaKitchen-v1, at most {STEPS} steps. Demonstrations by a script (way-points and damped least "
        "squares), not by people: some of four tasks in one episode, with varied orders, starts, speeds and noise in "
        "the actions. Only episodes in which all that was asked was completed are kept. Last column and last line: "
        f"{len(asked)} other episodes in which all four tasks were asked for, in order.",
        "seed": seed,
        "rows": rows,
        "episodes": f"{len(kept)} kept of {len(made)}",
        "steps": f"{sum(lengths):,}; {np.mean(lengths):.0f} in an episode",
        "all four in order": f"{mean:.2f}" + (f" ± {error:.2f}" if len(asked) > 1 else "") + " of 4 tasks",
    }


if __name__ == "__main__":
    typer.run(main)
