"""MAC's Figure 3: seven distributions of training masks on one small architecture, at equal time and at equal steps.

    python benchmarks/text_masks.py [--minutes 1] [--seeds 3] [--workers 2] [--resume]    (half an hour)

text8 in windows of 50 characters, the preset `tiny`. Six rows train the same mask network (the bidirectional
transformer) and differ in the law of the known sets alone; the seventh trains the chain network of the same size on
whole chains. Every row is asked in the order that it was trained for: M_card-mask and w-RND in random orders, w-ablateA
in the order of each set's hash, w-MAC from left to right. Two more rows have MAC's other canonical order, strided
(0, 7, 14, ..., 1, 8, ...): far characters first.

While a row trains, its averaged weights are put aside at growing intervals; they are scored afterwards, so that takes
none of the time. The baseline is the uniform law of ARDM. Bits per character on validation windows: joint, and marginal
under M_card over the length (as MAC counts). One thread a run, ``--workers`` runs side by side.
"""

from __future__ import annotations

import itertools
import math
import statistics
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from anyorder.data.text import Alphabet, Corpus, Windows, text8
from anyorder.masking import Cardinality, Masking
from anyorder.modalities.texts.core import WindowRows, codes_of, text_model
from anyorder.modalities.texts.options import TextOptions
from anyorder.model import AnyOrderModel
from anyorder.protocols import protocols
from anyorder.query import Query
from anyorder.training.loop import Progress, Trainer
from anyorder.training.objectives import objective_for
from anyorder.training.options import Options

import smoke_data
from common import Json, Record, Smoke, listed

TIMES = ("masking", "networks", "training")
LENGTH = 50
STRIDE = 7
WINDOWS = 100  # judged by: a mask network takes 50 passes for each
MASK, CHAIN = "bidirectional_transformer", "causal_transformer"
WHOLE, CARDINALITY = Cardinality(least=LENGTH), Cardinality()
RANDOM, HASHED, MAC = {"name": "random"}, {"name": "hashed"}, {"name": "canonical"}
STRIDED = {"name": "canonical", "stride": STRIDE}
# network, protocol, questions, cardinality reweighting
LAWS: dict[str, tuple[str, dict[str, Any], Masking, bool]] = {
    "M_card-mask (ARDM)": (MASK, RANDOM, WHOLE, False),
    "w-ablateA": (MASK, HASHED, CARDINALITY, False),
    "w-RND": (MASK, RANDOM, CARDINALITY, False),
    "w-MAC": (MASK, MAC, CARDINALITY, False),
    "w-RND, reweighted": (MASK, RANDOM, CARDINALITY, True),
    "w-MAC, reweighted": (MASK, MAC, CARDINALITY, True),
    "w-MAC, whole chains": (CHAIN, MAC, CARDINALITY, False),
    "w-MAC strided, reweighted": (MASK, STRIDED, CARDINALITY, True),
    "w-MAC strided, whole chains": (CHAIN, STRIDED, CARDINALITY, False),
}


def train(
    law: str, corpus: Corpus, minutes: float, seed: int
) -> tuple[AnyOrderModel, list[tuple[int, float, dict[str, Any]]]]:
    """One run: the model, and (step, seconds, averaged weights) at growing intervals, the last at the end."""
    network, protocol, masking, reweight = LAWS[law]
    alphabet = Alphabet.of(corpus.training, "characters")
    sizes = TextOptions(preset="tiny", network={"name": network}).described_network()
    model = text_model(alphabet, LENGTH, sizes, protocols.build(protocol), seed=seed)
    options = Options(
        minutes=minutes,
        batch=16,
        learning_rate=3e-3,
        validate_every=25,
        validation_queries=16,
        patience=10**6,
        cool_down=0.25,
        threads=1,
    )
    objective = objective_for(model, masking, **({"reweight": True} if reweight else {}))
    judges = WindowRows(Windows(codes_of(alphabet, corpus.validation), LENGTH))
    rows = WindowRows(Windows(codes_of(alphabet, corpus.training), LENGTH))
    trainer = Trainer(model, objective, rows, judges.take(torch.arange(0, 16000, 1000)), options, seed=seed)
    kept: list[tuple[int, float, dict[str, Any]]] = []

    def put_aside(progress: Progress, _: float) -> None:
        if not kept or progress.seconds > 1.4 * kept[-1][1]:
            weights = {name: tensor.clone() for name, tensor in trainer.average.state_dict().items()}
            kept.append((progress.step, progress.seconds, weights))

    trainer.run(watch=put_aside)
    kept.append((trainer.progress.step, trainer.progress.seconds, trainer.average.state_dict()))
    return trainer.average, kept


@torch.no_grad()
def judge(model: AnyOrderModel, windows: torch.Tensor, query: Query) -> float:
    """Bits of all that is asked, over the length of the windows."""
    chain = model.chain(query, torch.Generator().manual_seed(0))
    nats = model.step_log_prob(windows, chain).double().sum(dim=1)
    return float(-nats.mean() / (LENGTH * math.log(2)))


def run(law: str, minutes: float, seed: int, smoke: bool) -> dict[str, Any]:
    """The learning curve of one law under one seed."""
    torch.set_num_threads(1)
    corpus = smoke_data.text() if smoke else text8()
    model, kept = train(law, corpus, minutes, seed)
    codes = codes_of(Alphabet.of(corpus.training, "characters"), corpus.validation)
    windows = Windows(codes, LENGTH).spread(2 if smoke else WINDOWS)
    joint = Query.marginal(torch.ones(windows.shape, dtype=torch.bool))
    marginal = CARDINALITY.draw(len(windows), LENGTH, torch.Generator().manual_seed(7))
    points = []
    for step, seconds, weights in kept:
        model.load_state_dict(weights)
        scores = {"joint": judge(model, windows, joint), "marginal": judge(model, windows, marginal)}
        points.append({"step": step, "seconds": round(seconds, 1), **scores})
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {"law": law, "seed": seed, "parameters": parameters, "points": points, "partial": corpus.partial}


def at(points: list[dict[str, Any]], axis: str, place: float, score: str) -> float:
    """A curve's value at a step or a second, between its points in proportion."""
    if place <= points[0][axis]:
        return float(points[0][score])
    for before, after in itertools.pairwise(points):
        if before[axis] <= place <= after[axis]:
            share = (place - before[axis]) / max(after[axis] - before[axis], 1e-9)
            return float(before[score] + share * (after[score] - before[score]))
    return float(points[-1][score])


def payload(found: list[dict[str, Any]], options: dict[str, Any]) -> dict[str, Any]:
    """One line a law: mean and standard deviation over seeds, at the end and at the steps of the slowest law."""
    common = min(one["points"][-1]["step"] for one in found)
    rows = []
    for law in LAWS:
        runs = [one for one in found if one["law"] == law]
        if not runs:
            continue
        line: dict[str, Any] = {"masks": law}
        for score in ("joint", "marginal"):
            line[f"{score}, equal time"] = shown([one["points"][-1][score] for one in runs])
        for score in ("joint", "marginal"):
            line[f"{score}, {common} steps"] = shown([at(one["points"], "step", common, score) for one in runs])
        steps = statistics.mean(one["points"][-1]["step"] for one in runs)
        rows.append({**line, "steps": round(steps), "parameters": f"{runs[0]['parameters']:,}", "seeds": len(runs)})
    return {
        "title": "MAC's Figure 3: which masks to train on",
        "about": f"Bits per character (lower is better) on {WINDOWS} validation windows of {LENGTH} characters, mean "
        f"and standard deviation over seeds; preset `tiny`, {options['minutes']:g} minutes and one thread a run. "
        "Marginal: M_card, over the length of the window. At equal steps the learning rate of the quicker laws has not "
        "yet fallen, which is to their disadvantage.",
        "partial": f"This is {found[0]['partial']}." if found[0]["partial"] else "",
        "picture": "images/text_masks.png",
        "seed": f"0 .. {max(one['seed'] for one in found)}",
        "rows": rows,
        "details": {"options": options, "runs": found},
    }


def shown(values: list[float]) -> str:
    return f"{statistics.mean(values):.3f}" + (f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else "")


def plot(found: list[dict[str, Any]], path: Path) -> None:
    """Joint and marginal bits against time, a line a seed."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
    colours = ("#8c8c8c", "#b59ad6", "#8ec4e8", "#f5b880", "#2a78b8", "#d9660b", "#222222", "#c7a08a", "#9a9a4a")
    for axis, score in zip(axes, ("joint", "marginal"), strict=True):
        for law, colour in zip(LAWS, colours, strict=True):
            for number, one in enumerate(one for one in found if one["law"] == law):
                seconds = [point["seconds"] for point in one["points"]]
                values = [point[score] for point in one["points"]]
                axis.plot(seconds, values, color=colour, lw=1.4, label=law if number == 0 else None)
        axis.set(xscale="log", xlabel="training time (s)", ylabel="bits per character", title=score)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)


def main(
    minutes: Annotated[float, typer.Option(help="training budget of every run")] = 1.0,
    seeds: int = 3,
    workers: Annotated[int, typer.Option(help="runs side by side, a thread each")] = 2,
    resume: Annotated[bool, typer.Option(help="do only what the JSON file lacks")] = False,
    laws: Annotated[str, typer.Option(help="semicolon-separated; all by default")] = "",
    json: Json = None,
    smoke: Smoke = False,
    picture: Path = Path("docs/images/text_masks.png"),
) -> None:
    """Run everything, then draw the curves."""
    torch.set_num_threads(1)
    record, chosen = Record(json, "text_masks.json", smoke=smoke), listed(laws, list(LAWS), ";")
    if smoke:
        minutes, seeds, workers, chosen = smoke_data.MINUTES, 1, 1, list(LAWS)[-2:]
    options = {"minutes": minutes}
    found: list[dict[str, Any]] = list(record.earlier(options, "runs")) if resume else []
    done = {(one["law"], one["seed"]) for one in found}
    wanted = [(law, seed) for seed in range(seeds) for law in chosen if (law, seed) not in done]
    console = Console(width=140)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run, law, minutes, seed, smoke) for law, seed in wanted]):
            found.append(future.result() | {"run": record.number})
            console.print(f"{found[-1]['law']}, seed {found[-1]['seed']}: {found[-1]['points'][-1]}")
            record.write(payload(found, options))
    plot(found, record.beside(picture))
    for line in payload(found, options)["rows"]:
        console.print(line)


if __name__ == "__main__":
    typer.run(main)
