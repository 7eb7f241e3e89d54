"""MAC's Table 1 in miniature: joint, marginal and conditional bits per character of five models of text8.

    python benchmarks/text_table.py [--minutes 20] [--rows NAMES] [--resume | --again] [--json FILE]    (two hours)

The same preset for all rows, rotary positions for all, the same time on two threads. Two mask networks (the
bidirectional transformer) as in their papers: ARDM with known sets of uniform size; MAC with the known sets that M_card
induces under its order, with cardinality reweighting. Two chain networks learn whole chains of the library's own
mixture of questions, in random orders and in MAC's. The fifth row is the chain network that learns left to right alone.
Asked on test windows that do not overlap, the same for all rows:

joint        all characters of a window, from nothing
marginal     u from M_card: -log2 p(x_u) over the length of the window (MAC's "per N"), and over |u|
conditional  the holes of a window, 30 % of it scattered or in runs of six on average, given all the rest

± is the standard error over windows, given these questions; rows are also compared window by window with the chain
network in MAC's order, which is what the error of a difference needs. What a row was not trained for (holes under
MAC; all but the joint from left to right alone) stands in brackets. A mask network needs a pass for every character,
so the windows are few.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

import anyorder as ao
from anyorder.data.text import Corpus, Windows, text8
from anyorder.masking import Cardinality, Spans
from anyorder.modalities.texts.core import codes_of
from anyorder.modalities.texts.model import TextModel
from anyorder.modalities.texts.scores import bits_per
from anyorder.model.likelihood import log_prob
from anyorder.query import Query

import smoke_data
from common import Json, Record, Smoke, listed, print_rows

TIMES = ("masking", "heads", "networks", "model", "training", "modalities/texts")
LENGTH = 250
WHOLE = {
    "name": "cardinality",
    "least": LENGTH,
}  # everything is asked; in random order, ARDM's known sets of uniform size
MARGINAL = {"name": "cardinality"}
SUFFIX = {"name": "suffix"}  # of whole chains: all of a window from left to right
MASK, CHAIN = {"name": "bidirectional_transformer"}, {"name": "causal_transformer"}
RANDOM, MAC = {"name": "random"}, {"name": "canonical"}

MAC_ROW = "mask network, MAC order (MAC)"
OURS = "chain network, MAC order"
LEFT_TO_RIGHT = "chain network, left to right only"
ROWS: dict[str, dict[str, Any]] = {
    "mask network, random order (ARDM)": {"network": MASK, "protocol": RANDOM, "masking": WHOLE},
    MAC_ROW: {
        "network": MASK,
        "protocol": MAC,
        "masking": MARGINAL,
        "objective": {"name": "parallel", "reweight": True},
    },
    "chain network, random order": {"network": CHAIN, "protocol": RANDOM},
    OURS: {"network": CHAIN, "protocol": MAC},
    LEFT_TO_RIGHT: {"network": CHAIN, "protocol": MAC, "masking": SUFFIX},
}
HOLES = ("scattered holes", "runs of holes")
UNTRAINED = {MAC_ROW: HOLES, LEFT_TO_RIGHT: ("marginal, per N", "marginal, per |u|", *HOLES)}
PRINTED = {"ARDM": 1.48, "MAC": 1.40, "left-to-right transformer": 1.35}  # MAC's Table 1, 3,000 epochs of 12 x 768


def questions(windows: int, length: int) -> dict[str, Query]:
    """What is known and what is asked of every test window, by the heading of its column."""
    generator = torch.Generator().manual_seed(7)
    everything = torch.ones(windows, length, dtype=torch.bool)
    scattered = torch.rand(windows, length, generator=generator) < 0.3
    return {
        "joint": Query.marginal(everything),
        "marginal": Cardinality().draw(windows, length, generator),
        "scattered holes": Query(~scattered, scattered),
        "runs of holes": Spans(length=6.0, share=0.3).draw(windows, length, generator),
    }


def bits_of(model: TextModel, windows: torch.Tensor, query: Query) -> torch.Tensor:
    """Bits of all that is asked of each window."""
    return torch.from_numpy(-log_prob(model.core, windows, query)) / math.log(2)


def run(row: str, corpus: Corpus, options: dict[str, Any], models: Path) -> dict[str, Any]:
    """Train one row and ask it everything."""
    length, config = options["length"], dict(ROWS[row])
    if config.get("masking") == WHOLE:
        config["masking"] = {**WHOLE, "least": length}
    used = time.process_time()
    model = ao.fit_text(
        corpus.training,
        length=length,
        minutes=options["minutes"],
        preset=options["preset"],
        engine="neural",
        validation=corpus.validation,
        seed=options["seed"],
        config=config,
        log=models / f"{_file(row)}.jsonl",
    )
    used = time.process_time() - used
    model.save(models / f"{_file(row)}.anyorder")
    return {**asked(model, corpus, options), "processor_seconds": round(used, 1)}


def asked(model: TextModel, corpus: Corpus, options: dict[str, Any]) -> dict[str, Any]:
    """Ask a trained row everything."""
    windows, length = options["windows"], options["length"]
    test = Windows(codes_of(model.alphabet, corpus.test), length).spread(windows)
    began = time.monotonic()
    asked_for = questions(windows, length)
    bits = {heading: bits_of(model, test, query) for heading, query in asked_for.items()}
    scores = {heading: bits_per(bits[heading], query.asked.sum(dim=1).double()) for heading, query in asked_for.items()}
    training = model.card["training"]
    return {
        "scores": scores,
        "bits": {heading: [round(number, 4) for number in part.tolist()] for heading, part in bits.items()},
        "parameters": training["parameters"],
        "steps": training["steps"],
        "seconds": training["seconds"],
        "asking": round(time.monotonic() - began, 1),
        "partial": corpus.partial,
    }


def _file(row: str) -> str:
    return "".join(character if character.isalnum() else "_" for character in row)


def main(
    minutes: Annotated[float, typer.Option(help="training budget of every row")] = 20.0,
    preset: str = "small",
    windows: Annotated[int, typer.Option(help="test windows; mask networks take some seconds for each")] = 50,
    rows: Annotated[str, typer.Option(help="semicolon-separated; all by default")] = "",
    seed: int = 0,
    resume: Annotated[bool, typer.Option(help="do only what the JSON file lacks")] = False,
    again: Annotated[bool, typer.Option("--again", help="train nothing: ask the models of --models anew")] = False,
    models: Annotated[Path, typer.Option(help="where trained models and their curves go")] = Path("build/texts"),
    json: Json = None,
    smoke: Smoke = False,
    picture: Path = Path("docs/images/text_table.png"),
) -> None:
    """Run row by row, and print the table."""
    torch.set_num_threads(2)
    record, chosen, length = Record(json, "text_table.json", smoke=smoke), listed(rows, list(ROWS), ";"), LENGTH
    if smoke:
        minutes, preset, windows, length = smoke_data.MINUTES, "tiny", 3, 12
    models = record.beside(models)
    models.mkdir(parents=True, exist_ok=True)
    corpus = smoke_data.text() if smoke else text8()
    options = {"minutes": minutes, "preset": preset, "windows": windows, "seed": seed, "length": length}
    found: dict[str, Any] = record.earlier(options, "by_row") if resume or again else {}
    for row in chosen:
        if resume and row in found:
            continue
        if again:
            model = ao.load(models / f"{_file(row)}.anyorder")
            assert isinstance(model, TextModel)
            found[row] = {**found.get(row, {}), **asked(model, corpus, options), "run": record.number}
        else:
            found[row] = run(row, corpus, options, models) | {"run": record.number}
        Console(width=140).print(f"{row}: {found[row]['scores']}")
        record.write(payload(found, options))
    plot(found, record.beside(picture))
    print_rows(payload(found, options)["rows"])


def payload(found: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The table as the documentation shows it, and the figures behind it."""
    lines = []
    share = float(questions(options["windows"], options["length"])["marginal"].asked.double().mean())
    for row in ROWS:
        if row not in found:
            continue
        scores = found[row]["scores"]
        line = {"row": row}
        for heading, (mean, error) in scores.items():
            if heading == "marginal":
                line["marginal, per N"] = f"{mean * share:.3f} ± {error * share:.3f}"
            name = "marginal, per |u|" if heading == "marginal" else heading
            line[name] = f"{mean:.3f} ± {error:.3f}"
        line |= {name: f"({text})" for name, text in line.items() if name in UNTRAINED.get(row, ())}
        facts = found[row]
        line |= {"parameters": f"{facts['parameters']:,}", "steps": f"{facts['steps']:,}"}
        line |= {
            "training s": facts["seconds"],
            "of processor": facts.get("processor_seconds", "-"),
            "asking s": facts["asking"],
        }
        lines.append(line)
    partial = next(iter(found.values()))["partial"] if found else ""
    return {
        "title": "MAC's Table 1 in miniature: text8",
        "about": f"Bits per character (lower is better) on {options['windows']} test windows of {options['length']} "
        "characters, the same for all rows, plus or minus the standard error. Every row trains "
        f"{options['minutes']:g} minutes on "
        f"two threads with the preset `{options['preset']}`, rotary positions and the same options (chosen on "
        "validation curves of the chain network). The processor's seconds show how undisturbed a row was. Marginal: "
        "M_card, divided by the length of the window as in MAC, and by the characters asked. Holes: 30 % of a window. "
        "In brackets: not trained for. Printed by MAC for the joint, full text8, 12 blocks of width 768, 3,000 epochs: "
        f"{', '.join(f'{name} {bits}' for name, bits in PRINTED.items())}.",
        "partial": f"This is {partial}." if partial else "",
        "picture": "images/text_table.png",
        "seed": options["seed"],
        "rows": lines,
        "above the chain network in MAC's order, bits per character": paired(found, options),
        **distances(found),
        "details": {"options": options, "by_row": found},
    }


def plot(found: dict[str, Any], path: Path) -> None:
    """A group of bars for each kind of question."""
    import matplotlib.pyplot as plt

    headings = ["joint", "marginal", "scattered holes", "runs of holes"]
    rows = [row for row in ROWS if row in found]
    colours = dict(zip(ROWS, ("#b7b7b7", "#7d7d7d", "#8ec4e8", "#2a78b8", "#d9660b"), strict=True))
    figure, axis = plt.subplots(figsize=(9, 4), constrained_layout=True)
    width = 0.8 / len(rows)
    for number, row in enumerate(rows):
        means, errors = zip(*(found[row]["scores"][heading] for heading in headings), strict=True)
        places = [place + (number - len(rows) / 2 + 0.5) * width for place in range(len(headings))]
        axis.bar(places, means, width * 0.92, yerr=errors, color=colours[row], label=row, error_kw={"lw": 0.8})
        for place, mean in zip(places, means, strict=True):
            axis.text(place, 0.06, f"{mean:.2f}", ha="center", rotation=90, fontsize=7, color="white")
    axis.set_xticks(range(len(headings)), headings)
    axis.set_ylabel("bits per character asked (lower is better)")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8, ncols=2, loc="upper left")
    axis.set_ylim(top=axis.get_ylim()[1] * 1.25)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)


def paired(found: dict[str, Any], options: dict[str, Any]) -> list[dict[str, Any]]:
    """How far every other row is above the chain network in MAC's order, with the error of that difference."""
    ours = found.get(OURS, {}).get("bits")
    lines = []
    for row in ROWS:
        theirs = found.get(row, {}).get("bits")
        if ours is None or theirs is None or row == OURS:
            continue
        line = {"row": row}
        for heading, query in questions(options["windows"], options["length"]).items():
            more = torch.tensor(theirs[heading]) - torch.tensor(ours[heading])
            mean, error = bits_per(more.double(), query.asked.sum(dim=1).double())
            line[heading] = f"{mean:+.3f} ± {error:.3f}"
        lines.append(line)
    return lines


def distances(found: dict[str, Any]) -> dict[str, Any]:
    """How far the any-order chain network is from the one that only goes left to right."""
    ours, ordinary = (found.get(row) for row in (OURS, LEFT_TO_RIGHT))
    if ours is None or ordinary is None:
        return {}
    distance = ours["scores"]["joint"][0] / ordinary["scores"]["joint"][0] - 1
    return {"joint, any order above left to right": f"{distance:+.1%}"}


if __name__ == "__main__":
    typer.run(main)
