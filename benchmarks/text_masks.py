"""MAC's Figure 3: seven distributions of training masks on one small architecture, for the same time.

    python benchmarks/text_masks.py [--minutes 10] [--seeds 3] [--json FILE] [--resume]    (five hours on one core)

text8 in windows of 100 characters, the preset `tiny`. Six rows train the same mask network (the bidirectional
transformer) and differ in the law of the known sets alone; the seventh trains the chain network of the same size on
whole chains. Every row is asked in the order that it was trained for: M_card-mask and w-RND in random orders, w-ablateA
in the order of each set's hash, w-MAC from left to right. Two more rows have MAC's other canonical order, strided
(0, 7, 14, ..., 1, 8, ...): far characters first.

Time is a number of steps: all laws first take a few, on one thread, and the steps a second of the processor of each,
times the minutes, are the steps that it trains. Mask and chain networks each get the learning rate, of three, that was
best on validation text after pilots of equal length. While a row trains, its averaged weights are put aside; they are
scored afterwards, on a few validation windows, for the curves. The table is about test windows, asked at the end:
joint, and marginal under M_card over the length (as MAC counts), in bits per character. The baseline is the uniform law
of ARDM, and laws are compared with it, and as the paper ranks them, window by window and seed by seed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from rich.console import Console
from torch import Tensor

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

import parts
import smoke_data
from common import Json, Record, Smoke, listed, print_rows

TIMES = ("masking", "networks", "training")
LENGTH = 100
STRIDE = 7
MASK, CHAIN = "bidirectional_transformer", "causal_transformer"
WHOLE, CARDINALITY = Cardinality(least=LENGTH), Cardinality()
RANDOM, HASHED, MAC = {"name": "random"}, {"name": "hashed"}, {"name": "canonical"}
STRIDED = {"name": "canonical", "stride": STRIDE}
ARDM, BEST = "M_card-mask (ARDM)", "w-MAC, reweighted"
# network, protocol, questions, cardinality reweighting
LAWS: dict[str, tuple[str, dict[str, Any], Masking, bool]] = {
    ARDM: (MASK, RANDOM, WHOLE, False),
    "w-ablateA": (MASK, HASHED, CARDINALITY, False),
    "w-RND": (MASK, RANDOM, CARDINALITY, False),
    "w-MAC": (MASK, MAC, CARDINALITY, False),
    "w-RND, reweighted": (MASK, RANDOM, CARDINALITY, True),
    BEST: (MASK, MAC, CARDINALITY, True),
    "w-MAC, whole chains": (CHAIN, MAC, CARDINALITY, False),
    "w-MAC strided, reweighted": (MASK, STRIDED, CARDINALITY, True),
    "w-MAC strided, whole chains": (CHAIN, STRIDED, CARDINALITY, False),
}
# What the paper says of its curves: the first of each pair is ahead of the second.
RANKED = (
    ("w-ablateA", ARDM),
    ("w-RND", ARDM),
    ("w-MAC", "w-ablateA"),
    ("w-MAC", "w-RND"),
    ("w-RND, reweighted", "w-RND"),
    (BEST, "w-MAC"),
    (BEST, "w-RND, reweighted"),
    (BEST, ARDM),
)
CLEAR = 2.0  # standard errors
SCORES = ("joint", "marginal")
PILOTS = {MASK: ARDM, CHAIN: "w-MAC, whole chains"}
RATES = (1e-3, 2.5e-3, 6e-3)
POINTS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # of the steps, after which weights are put aside
JUDGES = 64  # validation windows in training, and for the curves


def trained(
    law: str, corpus: Corpus, steps: int, rate: float, seed: int, validations: int = 32
) -> tuple[AnyOrderModel, list[tuple[int, dict[str, Any]]], float]:
    """One run: the model, (step, averaged weights) along the way, and the score of validation windows at the end."""
    network, protocol, masking, reweight = LAWS[law]
    alphabet = Alphabet.of(corpus.training, "characters")
    sizes = TextOptions(preset="tiny", network={"name": network}).described_network()
    model = text_model(alphabet, LENGTH, sizes, protocols.build(protocol), seed=seed)
    options = Options(
        minutes=None,
        steps=steps,
        batch=16,
        learning_rate=rate,
        validate_every=max(steps // validations, 1),
        validation_queries=JUDGES,
        patience=10**6,
        cool_down=0.25,
        threads=1,
    )
    objective = objective_for(model, masking, **({"reweight": True} if reweight else {}))
    judges = WindowRows(Windows(codes_of(alphabet, corpus.validation), LENGTH))
    rows = WindowRows(Windows(codes_of(alphabet, corpus.training), LENGTH))
    spread = torch.linspace(0, len(judges) - 1, JUDGES).long()
    trainer = Trainer(model, objective, rows, judges.take(spread), options, seed=seed)
    kept: list[tuple[int, dict[str, Any]]] = []

    def put_aside(progress: Progress, _: float) -> None:
        if len(kept) < len(POINTS) and progress.step >= POINTS[len(kept)] * steps:
            kept.append((progress.step, {name: part.clone() for name, part in trainer.average.state_dict().items()}))

    if trainer.run(watch=put_aside).interrupted:
        raise SystemExit("stopped: what was being trained is not written down; --resume goes on")
    return trainer.average, kept, trainer.progress.validation


def steps_a_second(corpus: Corpus, options: dict[str, Any], say: Callable[[str], None]) -> dict[str, float]:
    """Of the processor, for every law, without what comes before the first step.

    All laws in turn, some times, and the best time of each: other work that comes and goes slows down them all.
    """
    used: dict[tuple[str, int], float] = {}
    for _ in range(options["rounds"]):
        for law in LAWS:
            for steps in options["timed_steps"]:
                began = time.process_time()
                trained(law, corpus, steps, RATES[0], 0, validations=1)
                used[law, steps] = min(used.get((law, steps), math.inf), time.process_time() - began)
    few, many = options["timed_steps"]
    found = {law: round((many - few) / max(used[law, many] - used[law, few], 1e-3), 3) for law in LAWS}
    say(f"steps a second: {found}")
    return found


def tuned(corpus: Corpus, options: dict[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
    """Nats per character of validation text after a pilot with each rate, and the best rate, for each network."""
    found: dict[str, Any] = {}
    for network, law in PILOTS.items():
        scores = {}
        for rate in RATES:
            scores[str(rate)] = round(trained(law, corpus, options["pilot_steps"], rate, 0)[2], 5)
            say(f"{network}, rate {rate}: {scores[str(rate)]} nats per character of validation text")
        best = float(max(scores, key=lambda key: scores[key]))
        found[network] = {"law": law, "held_out": scores, "learning_rate": best}
    return found


@torch.no_grad()
def bits(model: AnyOrderModel, windows: Tensor) -> dict[str, Tensor]:
    """Bits of all that is asked of each window, over its length."""
    everything = torch.ones(windows.shape, dtype=torch.bool)
    asked = {
        "joint": Query.marginal(everything),
        "marginal": CARDINALITY.draw(len(windows), LENGTH, torch.Generator().manual_seed(7)),
    }
    found = {}
    for score, query in asked.items():
        chain = model.chain(query, torch.Generator().manual_seed(0))
        own = [
            model.step_log_prob(windows[rows], chain.rows(rows)).double().sum(dim=1)
            for rows in torch.arange(len(windows)).split(8)
        ]
        found[score] = -torch.cat(own) / (LENGTH * math.log(2))
    return found


def run(law: str, seed: int, corpus: Corpus, options: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    """One law under one seed: its curve, and what it says of the test windows."""
    began = time.process_time()
    speed = plan["steps_a_second"][law]
    steps = max(round(60 * options["minutes"] * speed), 2)
    model, kept, _ = trained(law, corpus, steps, plan["tuned"][LAWS[law][0]]["learning_rate"], seed)
    used, final = time.process_time() - began, {name: part.clone() for name, part in model.state_dict().items()}
    alphabet = Alphabet.of(corpus.training, "characters")
    few = Windows(codes_of(alphabet, corpus.validation), LENGTH).spread(options["curve_windows"])
    points = []
    for step, weights in (*kept, (steps, final)):
        model.load_state_dict(weights)
        means = {score: round(float(own.mean()), 4) for score, own in bits(model, few).items()}
        points.append({"step": step, "minutes": round(step / speed / 60, 3), **means})
    test = Windows(codes_of(alphabet, corpus.test), LENGTH).spread(options["windows"])
    found = {score: [round(number, 4) for number in own.tolist()] for score, own in bits(model, test).items()}
    facts = {"steps": steps, "parameters": sum(parameter.numel() for parameter in model.parameters())}
    return {
        **facts,
        "points": points,
        "bits": found,
        "training": round(used, 1),
        "asking": round(time.process_time() - began - used, 1),
    }


def judged(differences: np.ndarray) -> tuple[float, float]:
    """The mean of [seeds, windows], and its standard error: that over windows and that over seeds together."""
    seeds, windows = differences.shape
    over_windows = differences.mean(axis=0).std(ddof=1) / math.sqrt(windows)
    over_seeds = differences.mean(axis=1).std(ddof=1) / math.sqrt(seeds) if seeds > 1 else 0.0
    return float(differences.mean()), math.hypot(over_windows, over_seeds)


def numbers(by_law: dict[str, Any], law: str, score: str, seeds: list[str]) -> np.ndarray:
    return np.array([by_law[law][seed]["bits"][score] for seed in seeds])


def compared(by_law: dict[str, Any], one: str, other: str) -> dict[str, tuple[float, float]]:
    """How far the first law is above the second, over the seeds that both have."""
    seeds = sorted(set(by_law.get(one, {})) & set(by_law.get(other, {})))
    if not seeds:
        return {}
    return {
        score: judged(numbers(by_law, one, score, seeds) - numbers(by_law, other, score, seeds)) for score in SCORES
    }


def ranking(by_law: dict[str, Any]) -> list[dict[str, str]]:
    """The paper's rankings: whether they hold here, do not, or cannot be told."""
    lines = []
    for one, other in RANKED:
        found = compared(by_law, one, other)
        if not found:
            continue
        line = {"the paper": f"{one} ahead of {other}"}
        for score, (mean, error) in found.items():
            verdict = "unresolved" if abs(mean) < CLEAR * error else "holds" if mean < 0 else "does not hold"
            line[score] = f"{verdict}: {mean:+.3f} ± {error:.3f}"
        lines.append(line)
    return lines


def payload(found: dict[str, Any], options: dict[str, Any], corpus: Corpus) -> dict[str, Any]:
    """One line a law, and the paper's rankings."""
    by_law, rows = found["by_law"], []
    for law in (name for name in LAWS if name in by_law):
        seeds = sorted(by_law[law])
        line: dict[str, Any] = {"masks": law}
        for score in SCORES:
            mean, error = judged(numbers(by_law, law, score, seeds))
            line[score] = f"{mean:.3f} ± {error:.3f}"
        for score, (mean, error) in (compared(by_law, law, ARDM) if law != ARDM else {}).items():
            line[f"{score}, above ARDM's"] = f"{mean:+.3f} ± {error:.3f}"
        facts = by_law[law][seeds[0]]
        rows.append(
            {
                **line,
                "steps": f"{facts['steps']:,}",
                "parameters": f"{facts['parameters']:,}",
                "seeds": len(seeds),
                "training s": facts["training"],
                "asking s": facts["asking"],
            }
        )
    return {
        "title": "MAC's Figure 3: which masks to train on",
        "about": f"Bits per character (lower is better) on {options['windows']} test windows of {LENGTH} characters; "
        "± is the standard error over windows and over seeds together, of differences window by window and seed by "
        f"seed. Preset `tiny`; every law trains as many steps as {options['minutes']:g} minutes of one core are good "
        "for, each family of networks with the best of three learning rates on validation text. Marginal: M_card, over "
        f"the length of the window. A ranking of the paper holds, or does not, if it is clear by {CLEAR:g} errors.",
        "partial": f"This is {corpus.partial}." if corpus.partial else "",
        "picture": "images/text_masks.png",
        "seed": f"0 .. {max((int(seed) for own in by_law.values() for seed in own), default=0)}",
        "rows": rows,
        "the paper's rankings, bits per character": ranking(by_law),
        "details": {"options": options, "found": found},
    }


def plot(by_law: dict[str, Any], path: Path) -> None:
    """Joint and marginal bits of validation text against time, a line a seed."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
    colours = ("#8c8c8c", "#b59ad6", "#8ec4e8", "#f5b880", "#2a78b8", "#d9660b", "#222222", "#c7a08a", "#9a9a4a")
    for axis, score in zip(axes, SCORES, strict=True):
        for law, colour in zip(LAWS, colours, strict=True):
            for number, one in enumerate(by_law.get(law, {}).values()):
                minutes = [point["minutes"] for point in one["points"]]
                values = [point[score] for point in one["points"]]
                axis.plot(minutes, values, color=colour, lw=1.4, label=law if number == 0 else None)
        axis.set(xscale="log", xlabel="minutes of one core", ylabel="bits per character", title=score)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)


def main(
    minutes: Annotated[float, typer.Option(help="what every run trains, in minutes of a core to itself")] = 10.0,
    seeds: int = 3,
    windows: Annotated[int, typer.Option(help="test windows")] = 400,
    resume: Annotated[bool, typer.Option(help="do only what the JSON file lacks")] = False,
    laws: Annotated[str, typer.Option(help="semicolon-separated; all by default")] = "",
    json: Json = None,
    smoke: Smoke = False,
    picture: Path = Path("docs/images/text_masks.png"),
) -> None:
    """Run everything, seed by seed, then draw the curves."""
    torch.set_num_threads(1)
    record, chosen = Record(json, "text_masks.json", smoke=smoke), listed(laws, list(LAWS), ";")
    curve_windows, pilot_steps, timed_steps, rounds = 32, 1_500, [10, 110], 4
    if smoke:
        minutes, seeds, windows, chosen = 0.001, 1, 2, list(LAWS)[-2:]
        curve_windows, pilot_steps, timed_steps, rounds = 1, 2, [1, 2], 2
    corpus = smoke_data.text() if smoke else text8()
    options: dict[str, Any] = {
        "minutes": minutes,
        "windows": windows,
        "curve_windows": curve_windows,
        "pilot_steps": pilot_steps,
        "timed_steps": timed_steps,
        "rounds": rounds,
        # All laws are from one version of the code: a file of another one is not gone on with.
        "code": parts.digest(files=(Path(__file__),), library=True),
    }
    found: dict[str, Any] = {"plan": {}, "by_law": {}} | (record.earlier(options, "found") if resume else {})
    console = Console(width=140)
    for name, work in (("steps_a_second", steps_a_second), ("tuned", tuned)):
        if name not in found["plan"]:
            found["plan"][name] = work(corpus, options, console.print)
            record.write(payload(found, options, corpus))
    for seed in range(seeds):
        for law in chosen:
            if str(seed) in found["by_law"].get(law, {}):
                continue
            own = run(law, seed, corpus, options, found["plan"]) | {"run": record.number}
            found["by_law"].setdefault(law, {})[str(seed)] = own
            console.print(f"{law}, seed {seed}: {own['points'][-1]}")
            record.write(payload(found, options, corpus))
    plot(found["by_law"], record.beside(picture))
    print_rows(payload(found, options, corpus)["rows"])


if __name__ == "__main__":
    typer.run(main)
