"""MAC's Table 1 in miniature: joint, marginal and conditional bits per character of ten models of text8.

    python benchmarks/text_table.py [--minutes 8] [--json FILE] [--resume]    (two hours on one core)

Counting: 4, 5, 6 and up to 8 characters. Networks, all of one preset with rotary positions: two mask networks (the
bidirectional transformer) as in their papers, ARDM with known sets of uniform size, MAC with the known sets that M_card
induces under its order, with cardinality reweighting; two chain networks that learn whole chains of the library's own
mixture of questions, in random orders and in MAC's; and a chain network that learns left to right alone. The last row
is the library's default: counts and the chain network in MAC's order, the very one of that row, answering together.

Time is a number of steps: all rows first take a few, on one thread, and the steps a second of the processor of each
(``--calibrate``) times the minutes are the steps that it trains. So a busy machine makes the run longer and changes
nothing else. Mask and chain networks each get the learning rate, of three, that was best on validation text after
pilots of equal length (``--tune``). Both are part of a run and stand in its file; the two options end it there.

The questions are those of text_questions.py. A mask network needs a pass for every character, so it is asked fewer
windows: the first of the same list, and differences are over the windows that both rows were asked. ± is the standard
error over windows of the mean over seeds; what single seeds say stands beside it. What a row was not trained for (holes
under MAC; all but the joint from left to right alone) stands in brackets.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from rich.console import Console

import anyorder as ao
from anyorder.data.text import Corpus, text8
from anyorder.modalities.texts.model import TextModel
from text_questions import (
    COUNTING,
    HOLES,
    KINDS,
    LENGTH,
    OnceCounted,
    apart,
    bits_of,
    network_of,
    per_character,
    questions,
    shown,
    windows_of,
)

import parts
import smoke_data
from common import Json, Record, Smoke, listed, print_rows

TIMES = ("masking", "heads", "networks", "model", "training", "modalities/texts")
WHOLE = {
    "name": "cardinality",
    "least": LENGTH,
}  # everything is asked; in random order, ARDM's known sets of uniform size
MARGINAL = {"name": "cardinality"}
SUFFIX = {"name": "suffix"}  # of whole chains: all of a window from left to right
MASK, CHAIN = {"name": "bidirectional_transformer"}, {"name": "causal_transformer"}
RANDOM, MAC = {"name": "random"}, {"name": "canonical"}

ARDM_ROW = "mask network, random order (ARDM)"
MAC_ROW = "mask network, MAC order (MAC)"
OURS = "chain network, MAC order"
LEFT_TO_RIGHT = "chain network, left to right only"
DEFAULT = "counts and chain network (default)"
TRAINED: dict[str, dict[str, Any]] = {
    ARDM_ROW: {"network": MASK, "protocol": RANDOM, "masking": WHOLE},
    MAC_ROW: {
        "network": MASK,
        "protocol": MAC,
        "masking": MARGINAL,
        "objective": {"name": "parallel", "reweight": True},
    },
    "chain network, random order": {"network": CHAIN, "protocol": RANDOM},
    LEFT_TO_RIGHT: {"network": CHAIN, "protocol": MAC, "masking": SUFFIX},
    OURS: {"network": CHAIN, "protocol": MAC},
}
ROWS = [*COUNTING, *TRAINED, DEFAULT]
# What is run, the most telling first; OURS and DEFAULT are one training.
ORDER = ["counts", OURS, MAC_ROW, ARDM_ROW, LEFT_TO_RIGHT, "chain network, random order", "5-gram", "6-gram", "4-gram"]
PILOTS = {"mask": ARDM_ROW, "chain": OURS}
# The paper trains mask networks at 5e-4; the default of the library, for chain networks, is 2e-3.
RATES = {"mask": (5e-4, 1e-3, 2e-3), "chain": (1e-3, 2e-3, 4e-3)}
PART = 100_000  # characters that steps are timed on
UNTRAINED = {MAC_ROW: HOLES, LEFT_TO_RIGHT: ("marginal, per N", "marginal", *HOLES)}
PRINTED = {"ARDM": 1.48, "MAC": 1.40, "left-to-right transformer": 1.35}  # MAC's Table 1, 3,000 epochs of 12 x 768
Said = Callable[[str], None]


def _file(row: str) -> str:
    return "".join(character if character.isalnum() else "_" for character in (DEFAULT if row == OURS else row))


def family(row: str) -> str:
    return "mask" if TRAINED[row]["network"] == MASK else "chain"


def trained(
    row: str, corpus: Corpus, options: dict[str, Any], steps: int, *, seed: int = 0, engine: str = "neural", **more: Any
) -> TextModel:
    """One row after so many steps; no clock has a say."""
    config = dict(TRAINED[row])
    if config.get("masking") == WHOLE:
        config["masking"] = {**WHOLE, "least": options["length"]}
    model = ao.fit_text(
        corpus.training,
        length=options["length"],
        preset=options["preset"],
        engine=engine,
        validation=corpus.validation,
        seed=seed,
        config={**config, "training": {"steps": steps, "minutes": None, "threads": 1, **more}},
    )
    if model.card["training"]["interrupted"]:
        raise SystemExit("stopped: what was being trained is not written down; --resume goes on")
    return model


def calibrated(corpus: Corpus, options: dict[str, Any], say: Said) -> dict[str, float]:
    """Steps a second of the processor of every row, without what comes before the first step.

    All rows in turn, some times, and the best time of each: other work that comes and goes slows down them all.
    """
    part = replace(corpus, training=corpus.training[:PART], validation=corpus.validation[:PART])
    used: dict[tuple[str, int], float] = {}
    for _ in range(options["rounds"]):
        for row in TRAINED:
            for steps in options["timed_steps"]:
                began = time.process_time()
                trained(row, part, options, steps, validate_every=10**6)
                used[row, steps] = min(used.get((row, steps), math.inf), time.process_time() - began)
    few, many = options["timed_steps"]
    found = {row: round((many - few) / max(used[row, many] - used[row, few], 1e-3), 3) for row in TRAINED}
    say(f"steps a second: {found}")
    return found


def tuned(corpus: Corpus, options: dict[str, Any], say: Said) -> dict[str, Any]:
    """Nats per character of validation text after a pilot with each rate, and the best rate, for each family."""
    found: dict[str, Any] = {}
    for name, row in PILOTS.items():
        scores = {}
        for rate in RATES[name]:
            steps = options["pilot_steps"]
            model = trained(row, corpus, options, steps, learning_rate=rate, validate_every=max(steps // 4, 1))
            scores[str(rate)] = round(model.card["scores"]["held_out"], 5)
            say(f"{name} networks, rate {rate}: {scores[str(rate)]} nats per character of validation text")
        found[name] = {"row": row, "held_out": scores, "learning_rate": float(max(scores, key=lambda key: scores[key]))}
    return found


def asked(model: TextModel, corpus: Corpus, options: dict[str, Any], windows: int) -> dict[str, Any]:
    """Ask a row everything about the first windows."""
    test, began = windows_of(model, corpus, options["windows"])[:windows], time.process_time()
    bits = {
        kind: bits_of(model, test, query.rows(slice(windows)))
        for kind, query in questions(options["windows"], options["length"]).items()
    }
    return {
        "bits": {kind: [round(number, 4) for number in part.tolist()] for kind, part in bits.items()},
        "parameters": sum(parameter.numel() for parameter in model.core.parameters()),
        "steps": model.card["training"]["steps"],
        "asking": round(time.process_time() - began, 1),
    }


def run(
    row: str,
    seed: int,
    corpus: Corpus,
    options: dict[str, Any],
    plan: dict[str, Any],
    once: OnceCounted,
    models: Path,
) -> dict[str, dict[str, Any]]:
    """Fit and ask a row, or two that are one training."""
    began = time.process_time()
    if row in COUNTING:
        model = ao.fit_text(
            corpus.training, length=options["length"], validation=corpus.validation, seed=seed, **COUNTING[row]
        )
        if row == "counts":
            once.serve(model.core.network)
    else:
        rate = plan["tuned"][family(row)]["learning_rate"]
        steps = max(round(60 * options["minutes"] * plan["calibrated"][row]), 2)
        engine = "auto" if row == OURS else "neural"
        model = trained(row, corpus, options, steps, seed=seed, engine=engine, learning_rate=rate)
        model.save(models / f"{_file(row)}_{seed}.anyorder")
    fitting = {"fitting": round(time.process_time() - began, 1)}
    windows = options["mask_windows"] if row in TRAINED and family(row) == "mask" else options["windows"]
    if row != OURS:
        return {row: asked(model, corpus, options, windows) | fitting}
    once.serve(model.core.network.inside[1])
    return {
        OURS: asked(network_of(model), corpus, options, windows) | fitting,
        DEFAULT: asked(model, corpus, options, windows) | fitting,
    }


def main(
    minutes: Annotated[float, typer.Option(help="what every row trains, in minutes of a core to itself")] = 8.0,
    preset: str = "small",
    windows: Annotated[int, typer.Option(help="test windows")] = 400,
    mask_windows: Annotated[int, typer.Option(help="those of mask networks: six seconds each")] = 32,
    seeds: int = 2,
    rows: Annotated[str, typer.Option(help="semicolon-separated; all by default")] = "",
    resume: Annotated[bool, typer.Option(help="do only what the JSON file lacks")] = False,
    calibrate: Annotated[bool, typer.Option("--calibrate", help="end when steps have been timed")] = False,
    tune: Annotated[bool, typer.Option("--tune", help="end when learning rates have been chosen")] = False,
    models: Annotated[Path, typer.Option(help="where trained models go")] = Path("build/texts"),
    json: Json = None,
    smoke: Smoke = False,
    picture: Path = Path("docs/images/text_table.png"),
) -> None:
    """Run row by row, and print the table."""
    torch.set_num_threads(1)
    record, chosen, length = Record(json, "text_table.json", smoke=smoke), listed(rows, ORDER, ";"), LENGTH
    pilot_steps, timed_steps, rounds = 300, [4, 34], 4
    if smoke:
        minutes, preset, windows, mask_windows, length = 0.003, "tiny", 3, 2, 12
        pilot_steps, timed_steps, rounds = 4, [1, 3], 2
    corpus = smoke_data.text() if smoke else text8()
    options: dict[str, Any] = {
        "minutes": minutes,
        "preset": preset,
        "windows": windows,
        "mask_windows": mask_windows,
        "length": length,
        "pilot_steps": pilot_steps,
        "timed_steps": timed_steps,
        "rounds": rounds,
        # All rows are from one version of the code: a file of another one is not gone on with.
        "code": parts.digest(files=(Path(__file__), Path(__file__).with_name("text_questions.py")), library=True),
    }
    found: dict[str, Any] = record.earlier(options, "found") if resume else {}
    found = {"plan": {}, "by_row": {}} | found
    console = Console(width=140)

    def write() -> None:
        record.write(payload(found, options, corpus))

    for name, ends, work in (("calibrated", calibrate, calibrated), ("tuned", tune, tuned)):
        if name not in found["plan"]:
            found["plan"][name] = work(corpus, options, console.print)
            write()
        if ends:
            return
    models = record.beside(models)
    models.mkdir(parents=True, exist_ok=True)
    once = OnceCounted()
    for seed in range(seeds):
        for row in chosen:
            if str(seed) in found["by_row"].get(row, {}) or (seed and row in COUNTING):
                continue
            for name, facts in run(row, seed, corpus, options, found["plan"], once, models).items():
                found["by_row"].setdefault(name, {})[str(seed)] = facts | {"run": record.number}
                console.print(f"{name}, seed {seed}: {scores_of(facts['bits'], options)}")
            write()
    plot(found["by_row"], options, record.beside(picture))
    print_rows(payload(found, options, corpus)["rows"])


def scores_of(bits: dict[str, Any], options: dict[str, Any]) -> dict[str, str]:
    """By the kind of question: bits per asked character and the error over windows."""
    asked_for = questions(options["windows"], options["length"])
    return {kind: shown(*per_character(bits[kind], asked_for[kind])) for kind in KINDS}


def mean_bits(by_seed: dict[str, Any]) -> dict[str, list[float]]:
    """Bits of each window, as the mean over seeds."""
    return {kind: np.mean([facts["bits"][kind] for facts in by_seed.values()], axis=0).tolist() for kind in KINDS}


def above(by_row: dict[str, Any], base: str, options: dict[str, Any]) -> list[dict[str, str]]:
    """How far every other row is above one, window by window; then the same of single seeds."""
    if base not in by_row:
        return []
    lines, wanted = [], questions(options["windows"], options["length"])
    for row in (name for name in ROWS if name in by_row and name != base):
        line = {"row": row, **apart(mean_bits(by_row[row]), mean_bits(by_row[base]), wanted)}
        for seed in sorted(set(by_row[row]) | set(by_row[base])):
            pair = [by_row[name].get(seed) or (by_row[name]["0"] if name in COUNTING else None) for name in (row, base)]
            if all(pair):
                own = apart(pair[0]["bits"], pair[1]["bits"], wanted)
                line[f"seed {seed}"] = ", ".join(part.split(" ±")[0] for part in own.values())
        lines.append(line)
    return lines


def payload(found: dict[str, Any], options: dict[str, Any], corpus: Corpus) -> dict[str, Any]:
    """The table as the documentation shows it, and the figures behind it."""
    by_row, lines = found["by_row"], []
    asked_for = questions(options["windows"], options["length"])
    for row in (name for name in ROWS if name in by_row):
        bits, facts = mean_bits(by_row[row]), list(by_row[row].values())
        line: dict[str, Any] = {"row": row}
        for kind, query in asked_for.items():
            mean, error = per_character(bits[kind], query)
            line[kind] = shown(mean, error)
            if kind == "marginal":
                share = float(query.asked[: len(bits[kind])].double().mean())
                line["marginal, per N"] = shown(mean * share, error * share)
        line |= {name: f"({text})" for name, text in line.items() if name in UNTRAINED.get(row, ())}
        if len(facts) > 1:
            seeds = [[per_character(one["bits"][kind], asked_for[kind])[0] for one in facts] for kind in KINDS]
            line["spread of seeds"] = ", ".join(f"{max(own) - min(own):.3f}" for own in seeds)
        line |= {"windows": len(bits["joint"]), "seeds": len(facts), "parameters": f"{facts[0]['parameters']:,}"}
        line |= {"steps": f"{facts[0]['steps']:,}", "fitting s": facts[0]["fitting"], "asking s": facts[0]["asking"]}
        lines.append(line)
    return {
        "title": "MAC's Table 1 in miniature: text8",
        "about": f"Bits per asked character (lower is better) on {options['windows']} test windows of "
        f"{options['length']} characters, the same for all rows; mask networks, which need a pass for every character, "
        f"on the first {options['mask_windows']} of them. ± is the standard error over windows of the mean over seeds; "
        f"the spread of seeds is their range, in the order {', '.join(KINDS)}. Networks have the preset "
        f"`{options['preset']}` and train as many steps as {options['minutes']:g} minutes of one core are good for, "
        "each family with the best of three learning rates on validation text. Marginal: M_card, over the characters "
        "asked and, as in MAC, over the length of the window. Holes: 30 % of a window. In brackets: not trained for. "
        "Seconds are those of the processor, on one thread. Printed by MAC for the joint, full text8, 12 blocks of "
        f"width 768, 3,000 epochs: {', '.join(f'{name} {bits}' for name, bits in PRINTED.items())}.",
        "partial": f"This is {corpus.partial}." if corpus.partial else "",
        "picture": "images/text_table.png",
        "seed": f"0 .. {max((int(seed) for own in by_row.values() for seed in own), default=0)}",
        "rows": lines,
        "above the default, bits per character": above(by_row, DEFAULT, options),
        "above the chain network in MAC's order, bits per character": above(by_row, OURS, options),
        "above MAC's mask network, bits per character": above(by_row, MAC_ROW, options),
        "learning rates": [
            {"networks": name, **{f"rate {rate}": score for rate, score in own["held_out"].items()}}
            for name, own in found["plan"].get("tuned", {}).items()
        ],
        "details": {"options": options, "found": found},
    }


def plot(by_row: dict[str, Any], options: dict[str, Any], path: Path) -> None:
    """A group of bars for each kind of question."""
    import matplotlib.pyplot as plt

    rows = [row for row in ROWS if row in by_row]
    tones = (
        "#e3d9c6",
        "#d3c09a",
        "#bfa16a",
        "#a37f36",
        "#c9c9c9",
        "#8f8f8f",
        "#a9d0ec",
        "#5b9bcf",
        "#1f5f99",
        "#d9660b",
    )
    colours = dict(zip(ROWS, tones, strict=True))
    asked_for = questions(options["windows"], options["length"])
    figure, axis = plt.subplots(figsize=(11, 4.4), constrained_layout=True)
    width = 0.86 / len(rows)
    for number, row in enumerate(rows):
        bits = mean_bits(by_row[row])
        means, errors = zip(*(per_character(bits[kind], asked_for[kind]) for kind in KINDS), strict=True)
        places = [place + (number - len(rows) / 2 + 0.5) * width for place in range(len(KINDS))]
        axis.bar(places, means, width * 0.92, yerr=errors, color=colours[row], label=row, error_kw={"lw": 0.8})
        for place, mean in zip(places, means, strict=True):
            axis.text(place, 0.06, f"{mean:.2f}", ha="center", rotation=90, fontsize=7, color="#111111")
    axis.set_xticks(range(len(KINDS)), KINDS)
    axis.set_ylabel("bits per character asked (lower is better)")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8, ncols=3, loc="upper left")
    axis.set_ylim(top=axis.get_ylim()[1] * 1.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)


if __name__ == "__main__":
    typer.run(main)
