"""MAC's Table 6: an operator gives four of nine numbers of a robot's action, a policy adds the others.

    python benchmarks/kitchen/table6.py [--demonstrations FOLDER] [--trainings 3] [--episodes 50] [--workers 2]
    (two hours on one core; --resume goes on)

FrankaKitchen-v1 with the four tasks of *mixed*, scripted demonstrations (demonstrate.py). The operator is a cloned
policy. Beside it: a cloned policy of another training, which does not hear what is given (the paper's row BC); the
any-order policy of ARDM, which learns from random orders; and MAC's, which learns from what its canonical order
induces. All see the same columns of the state, and meet the same kitchens: one seed is one start, one noise of what is
seen and one choice of numbers, so differences are taken episode by episode. Three choices of the operator's numbers,
then how tasks are lost as its commands are disturbed, and what comes of giving 0 to 9 numbers. Beside that, without the
simulator, how far what is added lies from new demonstrations, when a part of what was done is heard and when the
operator is (hearing.py).

An any-order policy does the mean of each action given the state and what is given. Means ask for no order, so there
MAC's order and random ones differ in what was trained alone; with ``--draws`` it does the most probable of some joint
draws along its order. How long to train, and means in place of draws, were decided on other episodes
(``--first-seed 1000``).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import typer
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from anyorder.data.demonstrations import load

import cloning
import full_autonomy
import hearing
import parts
from cloning import Cloned
from common import Json, Record, Smoke, print_rows
from demonstrate import default_folder, demonstrations, whole, write
from demonstrator import HUMAN
from episodes import KitchenPolicy, Vectors, play_together
from full_autonomy import ORDERS, AnyOrder
from kitchen import ACTIONS, STEPS, TASKS, Kitchen, require
from shared_autonomy import Choice, Partner, Shared, always, drawn

TIMES = ("tasks/policies", "networks", "heads", "training", "masking", "protocols", "data")
OPERATOR, INDEPENDENT, STILL = "operator", "independent cloning", "doing nothing"
MAC, ARDM = ORDERS
PARTNERS = (INDEPENDENT, ARDM, MAC)
CHOICES: dict[str, Choice] = {
    "first four joints": always(0, 1, 2, 3),
    "four drawn for each episode": drawn(4),
    "gripper and two joints": always(0, 1, 7, 8),
}
COUNTS = tuple(range(ACTIONS + 1))
NOISES = (0.1, 0.2, 0.4)
HELD_OUT, HELD_OUT_SEED = 40, 1  # new demonstrations, and the seed that they are made from
OTHER = 100  # the independent clone has the seed of the operator and so much more
HERE = Path(__file__).parent
LEARNING = tuple(HERE / f"{name}.py" for name in ("cloning", "full_autonomy"))
CODE = (
    *LEARNING,
    *(HERE / f"{name}.py" for name in ("demonstrator", "episodes", "hearing", "kitchen", "shared_autonomy", "table6")),
)
TOGETHER = 25  # kitchens of one process
PAPER = "BC 1.81 ± 0.08, MAC 2.00 ± 0.05, full autonomy 2.15 ± 0.06"


class Cell(NamedTuple):
    """Who completes how much of the operator's action: one cell of the tables."""

    partner: str
    choice: str
    noise: float = 0.0

    @property
    def key(self) -> str:
        return f"{self.partner}; {self.choice}; noise {self.noise:g}"


def given(count: int) -> str:
    """The name of the choice of so many numbers, drawn for each episode."""
    return "four drawn for each episode" if count == 4 else f"{count} drawn for each episode"


ALONE, ALL = given(0), given(ACTIONS)
TABLE = [
    Cell(STILL, ALONE),
    Cell(OPERATOR, ALL),
    *(Cell(partner, ALONE) for partner in PARTNERS),
    *(Cell(partner, choice) for choice in CHOICES for partner in PARTNERS),
]
CURVES = [
    *(Cell(partner, given(4), noise) for noise in NOISES for partner in PARTNERS),
    *(Cell(partner, given(count)) for count in COUNTS[1:-1] if count != 4 for partner in PARTNERS),
]


def choice_of(name: str) -> Choice:
    return CHOICES[name] if name in CHOICES else drawn(int(name.split()[0]))


# ---------------------------------------------------------------------------------------------------- training


def trained(models: Path, demos: Path, who: str, training: int, options: dict[str, Any]) -> None:
    """Train a policy unless its file is there."""
    torch.set_num_threads(1)
    path = file_of(models, who, training)
    if path.exists():
        return
    frame = full_autonomy.moving(load(demos))
    if who in ORDERS:
        full_autonomy.learn(frame, who, full_autonomy.Schedule(**options["any_order"]), seed=training).save(path)
        return
    seed = training + (OTHER if who == INDEPENDENT else 0)
    Cloned.learn(frame, cloning.Schedule(**options["cloning"]), seed=seed).save(path)


def file_of(models: Path, who: str, training: int) -> Path:
    ending = "anyorder" if who in ORDERS else "safetensors"
    return models / f"{who.split()[0].lower()}_{training}.{ending}"


# ---------------------------------------------------------------------------------------------------- episodes


class Still:
    """Sends the action 0: the arm sinks under its weight."""

    def act(self, states: Vectors, seeds: Sequence[int], step: int) -> Vectors:
        """Nothing to do."""
        return np.zeros((len(states), ACTIONS))


@cache
def kitchens(count: int, steps: int) -> list[Kitchen]:
    return [Kitchen(steps=steps) for _ in range(count)]


@cache
def learned(models: Path, who: str, training: int, draws: int) -> Any:
    path = file_of(models, who, training)
    return AnyOrder(path, draws=draws) if who in ORDERS else Cloned.load(path)


def policy_of(cell: Cell, models: Path, training: int, draws: int) -> KitchenPolicy:
    """What acts in a cell."""
    if cell.partner == STILL:
        return Still()
    operator: KitchenPolicy = learned(models, OPERATOR, training, draws)
    if cell.partner == OPERATOR:
        return operator
    partner: Partner = learned(models, cell.partner, training, draws)
    return Shared(operator, partner, choice_of(cell.choice), cell.noise)


def completed(cell: Cell, models: Path, training: int, seeds: Sequence[int], options: dict[str, Any]) -> list[int]:
    """Tasks completed in the episode of each seed."""
    torch.set_num_threads(1)
    policy = policy_of(cell, models, training, options["draws"])
    there = kitchens(min(TOGETHER, len(seeds)), options["length"])
    return [len(one.completed) for one in play_together(there, policy, seeds, start_noise=options["start_noise"])]


def errors(new: Path, partner: str, models: Path, training: int, draws: int) -> dict[str, dict[str, list[float]]]:
    """How far what a partner adds lies from each new demonstration, by the choice of numbers and what it hears."""
    torch.set_num_threads(1)
    frame = load(new)
    own, operator = learned(models, partner, training, draws), learned(models, OPERATOR, training, draws)
    return {
        choice: {heard: hearing.errors(frame, own, operator, CHOICES[choice], heard) for heard in hearing.HEARD}
        for choice in CHOICES
    }


# ---------------------------------------------------------------------------------------------------- tables


def counts_of(found: dict[str, Any], cell: Cell, episodes: int | None = None) -> NDArray[np.float64]:
    """Tasks completed ``[trainings, episodes]``, of the first episodes or of all."""
    own = found["completed"][cell.key]
    return np.array([own[training][:episodes] for training in sorted(own)], dtype=np.float64)


def mean_and_error(counts: NDArray[np.float64]) -> tuple[float, float]:
    """The mean of ``[trainings, episodes]`` and its standard error: that over episodes and that over trainings."""
    trainings, episodes = counts.shape
    over_episodes = counts.mean(axis=0).std(ddof=1) / math.sqrt(episodes) if episodes > 1 else 0.0
    over_trainings = counts.mean(axis=1).std(ddof=1) / math.sqrt(trainings) if trainings > 1 else 0.0
    return float(counts.mean()), math.hypot(over_episodes, over_trainings)


def shown(counts: NDArray[np.float64], *, sign: str = "") -> str:
    mean, error = mean_and_error(counts)
    return f"{mean:{sign}.2f} ± {error:.2f}"


def share(errors: Sequence[Sequence[float]]) -> str:
    """The mean of ``[trainings, episodes]`` as a percentage, and its standard error."""
    mean, error = mean_and_error(np.array(errors, dtype=np.float64))
    return f"{100 * mean:.1f} ± {100 * error:.1f} %"


def differences(found: dict[str, Any], one: str, other: str, choices: Sequence[str]) -> NDArray[np.float64]:
    """Tasks that the first partner completes more than the second, episode by episode, as the mean over choices."""
    pairs = [counts_of(found, Cell(one, choice)) - counts_of(found, Cell(other, choice)) for choice in choices]
    return np.asarray(np.mean(pairs, axis=0))


def played(found: dict[str, Any]) -> set[str]:
    """The cells whose trainings have all been played: those of an unfinished one cannot be paired with others."""
    trainings = max((len(own) for own in found["completed"].values()), default=0)
    return {key for key, own in found["completed"].items() if len(own) == trainings or key.startswith(STILL)}


def tables(found: dict[str, Any], curve_episodes: int) -> dict[str, Any]:
    """The lines of the tables, as far as their cells are there; all of a curve is about the same episodes."""
    there = played(found)
    lines: list[dict[str, str]] = []
    for name, cell in (
        (STILL, Cell(STILL, ALONE)),
        ("cloning alone (the operator)", Cell(OPERATOR, ALL)),
        (f"any-order alone, {ARDM}", Cell(ARDM, ALONE)),
        (f"any-order alone, {MAC} (full autonomy)", Cell(MAC, ALONE)),
    ):
        if cell.key in there:
            lines.append({"policy": name, "alone": shown(counts_of(found, cell))})
    for partner in PARTNERS:
        cells = [Cell(partner, choice) for choice in CHOICES]
        if all(cell.key in there for cell in cells):
            line = {"policy": f"operator and {partner}"}
            line |= {cell.choice: shown(counts_of(found, cell)) for cell in cells}
            lines.append(line | {"mean of the three": shown(np.mean([counts_of(found, cell) for cell in cells], 0))})
    compared = []
    for one, other in ((MAC, INDEPENDENT), (ARDM, INDEPENDENT), (MAC, ARDM)):
        if all(Cell(partner, choice).key in there for partner in (one, other) for choice in CHOICES):
            line = {"more tasks than": f"{one} minus {other}"}
            line |= {choice: shown(differences(found, one, other, [choice]), sign="+") for choice in CHOICES}
            apart = differences(found, one, other, list(CHOICES))
            line["mean of the three"] = shown(apart, sign="+")
            line["of each training"] = ", ".join(f"{own:+.2f}" for own in apart.mean(axis=1))
            compared.append(line)
    disturbed = [
        {"noise of commands": f"{noise:g}"}
        | {
            partner: shown(counts_of(found, Cell(partner, given(4), noise), curve_episodes))
            for partner in PARTNERS
            if Cell(partner, given(4), noise).key in there
        }
        for noise in (0.0, *NOISES)
    ]
    by_count = [
        {"numbers given": str(count)}
        | {
            partner: shown(counts_of(found, cell, curve_episodes))
            for partner, cell in given_cells(count)
            if cell.key in there
        }
        for count in COUNTS
    ]
    heard_lines = [
        {"added by": partner, "hears": heard}
        | {
            choice: share([own[choice][heard] for _, own in sorted(found["errors"][partner].items())])
            for choice in CHOICES
        }
        for partner in PARTNERS
        for heard in hearing.HEARD
        if partner in found["errors"] and (heard == hearing.NOTHING or partner != INDEPENDENT)
    ]
    return {
        "rows": lines,
        "paired differences": compared,
        "squared error of what is added, new demonstrations": heard_lines,
        "disturbed commands, four drawn for each episode": disturbed,
        "numbers given, drawn for each episode": by_count,
    }


def given_cells(count: int) -> Iterator[tuple[str, Cell]]:
    """The cell of each partner where so many numbers are given: all nine are the operator alone."""
    for partner in PARTNERS:
        yield partner, Cell(OPERATOR, ALL) if count == ACTIONS else Cell(partner, given(count))


def payload(found: dict[str, Any], options: dict[str, Any], described: str) -> dict[str, Any]:
    """The tables and how they were made."""
    any_order, clone = options["any_order"], options["cloning"]
    draws = options["draws"]
    done = f"the most probable of {draws} draws" if draws else "the mean of each action given the state and the command"
    return {
        "title": "MAC's Table 6: shared autonomy in the kitchen",
        "about": f"Tasks completed in an episode of FrankaKitchen-v1 (of {len(TASKS)}; {options['length']} steps), "
        f"{options['trainings']} trainings, {options['episodes']} episodes each (for the two curves the "
        f"first {options['curve_episodes']} of them) with common random numbers. ± is the standard error "
        f"over episodes and over trainings together; with {options['trainings']} trainings the latter is "
        f"rough, so the difference of each stands beside it. {described}: made by a script, not by people, "
        f"so figures do not compare with the paper's ({PAPER}; human demonstrations, width 2048, depth 8). "
        f"The operator is a cloned policy ({clone['depth']} layers of {clone['width']}, squared error). "
        f"Any-order: a residual MLP of {any_order['blocks']} blocks of width {any_order['width']}, "
        f"{any_order['components']} Gaussians an action and a mass where it is often at a bound, "
        f"{any_order['steps']:,} steps; it does {done}. Joints start {options['start_noise']:g} rad "
        "(standard deviation) away from the environment's start, as in the demonstrations. Schedules, and "
        "means in place of draws, were chosen on episodes of other seeds. Squared errors are shares of the variance of "
        f"each number, over the steps of {options['held_out']} demonstrations that nobody learned from; a clone hears "
        "nothing whatever is given.",
        "picture": "images/kitchen_table6.png",
        "seed": f"trainings 0 .. {options['trainings'] - 1}, episodes from {options['first_seed']}",
        **tables(found, options["curve_episodes"]),
        "details": {"options": options, "found": found},
    }


def plot(found: dict[str, Any], curve_episodes: int, path: Path) -> None:
    """Three panels: choices of numbers, disturbed commands, numbers given."""
    import matplotlib.pyplot as plt

    colours = {INDEPENDENT: "#8c8c8c", ARDM: "#8ec4e8", MAC: "#d9660b"}
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), constrained_layout=True, sharey=True)

    def line(
        axis: Any, partner: str, cells: Sequence[tuple[float, Cell]], first: int | None = None, **style: Any
    ) -> None:
        here = [(at, cell) for at, cell in cells if cell.key in played(found)]
        there = [(at, mean_and_error(counts_of(found, cell, first))) for at, cell in here]
        axis.errorbar(
            [at for at, _ in there],
            [mean for _, (mean, _) in there],
            yerr=[error for _, (_, error) in there],
            color=colours[partner],
            label=f"operator and {partner}",
            capsize=2,
            **style,
        )

    for number, partner in enumerate(PARTNERS):
        offset = 0.22 * (number - 1)
        cells = [(index + offset, Cell(partner, choice)) for index, choice in enumerate(CHOICES)]
        line(axes[0], partner, cells, fmt="o", ms=7)
        noisy = [(noise, Cell(partner, given(4), noise)) for noise in (0.0, *NOISES)]
        line(axes[1], partner, noisy, curve_episodes, fmt="o-")
        if partner in dict(given_cells(0)):
            counted = [(count, dict(given_cells(count))[partner]) for count in COUNTS]
            line(axes[2], partner, counted, curve_episodes, fmt="o-")
    if (alone := Cell(OPERATOR, ALL)).key in played(found):
        axes[0].axhline(
            mean_and_error(counts_of(found, alone))[0], color="#444444", lw=1, ls=":", label="the operator alone"
        )
    axes[0].set_xticks(range(len(CHOICES)), [name.replace(" for each episode", "") for name in CHOICES])
    axes[0].set(title="the operator gives four numbers", ylabel="tasks completed in an episode, of 4", ylim=(0, 4))
    axes[1].set(title="its commands are disturbed", xlabel="standard deviation of the noise")
    axes[2].set(title="it gives more or fewer, drawn for each episode", xlabel="numbers given, of 9")
    axes[0].legend(frameon=False, fontsize=9, loc="lower left")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def made(folder: Path, count: int, seed: int) -> Path:
    """A folder of so many demonstrations, made unless it is there."""
    if not (folder / "data").exists():
        with Kitchen() as kitchen:
            write(folder, [pair for pair in demonstrations(kitchen, count, seed) if whole(*pair)])
    return folder


def main(
    demos: Annotated[Path | None, typer.Option("--demonstrations", help="the cache's by default")] = None,
    episodes: Annotated[int, typer.Option(help="of each training, in the table")] = 50,
    curve_episodes: Annotated[int, typer.Option(help="of each training, in the two curves")] = 15,
    trainings: Annotated[int, typer.Option(help="of every policy")] = 3,
    steps: Annotated[int, typer.Option(help="of an any-order policy's training")] = full_autonomy.Schedule.steps,
    width: int = full_autonomy.Schedule.width,
    blocks: int = full_autonomy.Schedule.blocks,
    epochs: Annotated[int, typer.Option(help="of cloning")] = cloning.Schedule.epochs,
    draws: Annotated[
        int, typer.Option(help="of which an any-order policy does the most probable; 0: it does means")
    ] = 0,
    start_noise: Annotated[float, typer.Option(help="rad by which joints start elsewhere")] = HUMAN.start_noise,
    first_seed: Annotated[int, typer.Option(help="of the episodes; others than 0 for choosing options")] = 0,
    curves: Annotated[bool, typer.Option(help="the two curves too")] = True,
    workers: int = 1,
    resume: Annotated[bool, typer.Option(help="do only what the JSON file lacks")] = False,
    models: Annotated[Path, typer.Option(help="where trained policies go")] = Path("build/kitchen"),
    json: Json = None,
    smoke: Smoke = False,
    picture: Path = Path("docs/images/kitchen_table6.png"),
) -> None:
    """Train, play, and print the tables."""
    require(smoke=smoke)
    record = Record(json, "kitchen_table6.json", smoke=smoke)
    if smoke:
        episodes, curve_episodes, trainings, steps, epochs, width, draws, workers = 2, 1, 1, 4, 1, 16, 2, 1
        demos = made(record.beside(Path("demonstrations")), 2, 0)
    demos = demos or default_folder(0)
    if not demos.exists():
        raise SystemExit(f"there are no demonstrations in {demos}: make them with benchmarks/kitchen/demonstrate.py")
    frame = load(demos)
    any_order = full_autonomy.Schedule(width=width, blocks=blocks, steps=steps)
    clone = cloning.Schedule(epochs=epochs)
    options: dict[str, Any] = {
        "demonstrations": [int(frame["episode"].nunique()), len(frame)],
        "data": parts.digest(str(pd.util.hash_pandas_object(frame).sum())),
        "trainings": trainings,
        "episodes": episodes,
        "curve_episodes": curve_episodes,
        "first_seed": first_seed,
        "start_noise": start_noise,
        "draws": draws,
        "length": 5 if smoke else STEPS,
        "held_out": 1 if smoke else HELD_OUT,
        "any_order": vars(any_order),
        "cloning": {"width": clone.width, "depth": clone.depth, "epochs": clone.epochs},
        # All cells are from one version of the code: a file of another one is not gone on with.
        "code": parts.digest(files=CODE, library=True),
    }
    # Trained policies depend on less of the code than the tables do, and take longest.
    learned_by = parts.digest(files=LEARNING, library=True)
    folder = record.beside(models) / parts.digest(
        *(str(options[name]) for name in ("any_order", "cloning", "data")), learned_by
    )
    folder.mkdir(parents=True, exist_ok=True)
    print(f"policies in {folder}", flush=True)
    found: dict[str, Any] = {"completed": {}, "errors": {}} | (record.earlier(options, "found") if resume else {})
    count, steps_there = options["demonstrations"]
    described = f"{count} scripted demonstrations ({steps_there:,} steps)"
    seeds = range(first_seed, first_seed + episodes)

    def save() -> None:
        record.write(payload(found, options, described))

    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        learning = {
            pool.submit(trained, folder, demos, who, training, options): f"{who}, training {training}"
            for training in range(trainings)
            for who in (MAC, ARDM, OPERATOR, INDEPENDENT)
        }
        for future in as_completed(learning):
            future.result()
            print(f"trained: {learning[future]}", flush=True)
        new = made(folder / "new", options["held_out"], HELD_OUT_SEED)
        for partner in PARTNERS:
            for training in range(trainings):
                if str(training) not in found["errors"].get(partner, {}):
                    own = pool.submit(errors, new, partner, folder, training, draws).result()
                    found["errors"].setdefault(partner, {})[str(training)] = own
        playing = {}
        for cell in [*TABLE, *(CURVES if curves else [])]:
            for training in range(1 if cell.partner == STILL else trainings):
                if str(training) not in found["completed"].get(cell.key, {}):
                    own = seeds if cell in TABLE else seeds[:curve_episodes]
                    playing[pool.submit(completed, cell, folder, training, own, options)] = cell, str(training)
        for future in as_completed(playing):
            cell, name = playing[future]
            found["completed"].setdefault(cell.key, {})[name] = future.result()
            print(f"{cell.key}, training {name}: {np.mean(future.result()):.2f} tasks", flush=True)
            save()
    plot(found, curve_episodes, record.beside(picture))
    for lines in tables(found, curve_episodes).values():
        print_rows(lines)


if __name__ == "__main__":
    typer.run(main)
