"""Film an episode: an operator gives four numbers of every action, the any-order policy adds the other five.

    python benchmarks/kitchen/show.py --models build/kitchen/DIGEST [--least 3]    (a minute, after table6.py)

The policies are those that table6.py left in its folder. Episodes are played from the seed ``--first-seed`` on until
one has ``--least`` tasks completed: the film shows what shared autonomy looks like, not how often it succeeds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import full_autonomy
from common import Json, Record, Smoke
from demonstrate import demonstrations, whole, write
from demonstrator import HUMAN
from episodes import Vectors, play_together
from film import Picture, write_film
from full_autonomy import AnyOrder
from kitchen import STEPS, Kitchen, require
from shared_autonomy import Shared
from table6 import CHOICES, MAC, OPERATOR, learned, trained

TIMES = ("tasks/policies",)
SIZE = (320, 240)


class Noted:
    """A shared policy that keeps what was given and what was done, for one kitchen."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.given: list[Vectors] = []
        self.done: list[Vectors] = []

    def act(self, states: Vectors, seeds: list[int], step: int) -> Vectors:
        """The whole action."""
        self.given.append(self.shared.given(states, seeds, step)[0])
        actions = self.shared.act(states, seeds, step)
        self.done.append(actions[0])
        return actions


def main(
    models: Annotated[Path | None, typer.Option(help="the folder that table6.py names when it begins")] = None,
    training: int = 0,
    choice: Annotated[str, typer.Option(help="which numbers the operator gives")] = next(iter(CHOICES)),
    least: Annotated[int, typer.Option(help="tasks that the episode must have")] = 3,
    first_seed: int = 0,
    draws: Annotated[int, typer.Option(help="of which the most probable is done; 0: means")] = 0,
    most: Annotated[int, typer.Option(help="episodes to try")] = 50,
    film: Path = Path("docs/images/kitchen.gif"),
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Play until an episode is worth a film, and write it."""
    require(smoke=smoke)
    record, steps = Record(json, smoke=smoke), STEPS
    if smoke:
        least, steps, models = 0, 4, record.beside(Path("models"))
        _train_a_little(models)
    if models is None:
        raise SystemExit("say where policies are, with --models: table6.py names the folder when it begins")
    operator, partner = (learned(models, who, training, draws) for who in (OPERATOR, MAC))
    assert isinstance(partner, AnyOrder)
    with Kitchen(steps=steps, size=SIZE) as kitchen:
        for seed in range(first_seed, first_seed + most):
            policy, pictures = Noted(Shared(operator, partner, CHOICES[choice])), list[Picture]()
            # Without pictures first: drawing takes longer than playing.
            (episode,) = play_together([kitchen], policy, [seed], start_noise=HUMAN.start_noise)
            if len(episode.completed) < least:
                continue
            policy = Noted(policy.shared)
            play_together(
                [kitchen],
                policy,
                [seed],
                start_noise=HUMAN.start_noise,
                look=lambda there, kept=pictures: kept.append(there.picture()),
            )
            given, done = np.array(policy.given), np.array(policy.done)
            size = write_film(record.beside(film), pictures, given, np.where(np.isnan(given), done, np.nan))
            print(f"episode {seed}: {', '.join(episode.completed) or 'no task'}; {size:,} bytes in {film.name}")
            return
    raise SystemExit(f"none of {most} episodes has {least} tasks: ask for fewer with --least")


def _train_a_little(models: Path) -> None:
    folder = models / "demonstrations"
    with Kitchen() as kitchen:
        write(folder, [pair for pair in demonstrations(kitchen, 2, 0) if whole(*pair)])
    options = {
        "any_order": vars(full_autonomy.Schedule(width=16, blocks=1, steps=4)),
        "cloning": {"width": 16, "depth": 1, "epochs": 1},
    }
    for who in (OPERATOR, MAC):
        trained(models, folder, who, 0, options)


if __name__ == "__main__":
    typer.run(main)
