"""The engines of a text on every kind of question: counting, a network, and both together, after a minute and longer.

    python benchmarks/text_engines.py --json benchmarks/results/text_engines.json    (35 minutes on one core)

The training part of text8 that is at hand; test windows that do not overlap, the same for all rows, and the questions
of text_questions.py (joint, marginal, scattered holes, runs of holes). n-grams are the counts of anyorder with
stretches of so many characters, so they are smoothed alike; a chain in any of these rows is a normalised law. The
network of the default is also asked alone. Beside the bits of every row stand its errors over windows, and the
difference from the default window by window. Then what people wait for: seconds to fit and to fill a text of 250
characters of which three in ten are missing, the size of the model's file, and 100,000 characters of held-out text
compressed, beside xz that reads the training text first. Last, drawing one text with four characters drafted by the
counts at a time, against one at a time: calls of the network for each character, and how long it takes.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from rich.console import Console

import anyorder as ao
from anyorder.data.text import Corpus, Windows, text8
from anyorder.modalities.texts.core import codes_of
from anyorder.modalities.texts.model import TextModel
from anyorder.model.speculative import speculate
from anyorder.query import Query
from text_questions import COUNTING, LENGTH, apart, bits_of, network_of, per_character, questions, shown

import compressors
import smoke_data
from common import Json, Record, Smoke, best_of, print_rows

TIMES = ("networks", "model", "training", "modalities/texts", "tasks/compression")
COMPRESSED = 100_000


def rows_of(minutes: float, quick: float) -> dict[str, dict[str, Any]]:
    """How each row is fitted."""
    return {
        **COUNTING,
        f"default, {quick:g} minute": {"minutes": quick},
        f"default, {minutes:g} minutes": {"minutes": minutes},
    }


def asked(model: TextModel, corpus: Corpus, length: int, windows: int, fitted: float) -> dict[str, Any]:
    """Ask a model everything, and see how long it takes."""
    test = Windows(codes_of(model.alphabet, corpus.test), length).spread(windows)
    wanted = questions(windows, length)
    bits = {heading: bits_of(model, test, query) for heading, query in wanted.items()}
    return {
        "scores": {name: per_character(bits[name], query) for name, query in wanted.items()},
        "bits": {name: [round(number, 4) for number in part.tolist()] for name, part in bits.items()},
        "fit, s": round(fitted, 1),
        "fill, s": round(fill_seconds(model, corpus.test[:length]), 3),
        "file, MB": round(size_of(model) / 1e6, 1),
        **drafted(model),
        **compressed(model, corpus.test[: COMPRESSED if length == LENGTH else 200]),
    }


def fill_seconds(model: TextModel, text: str) -> float:
    """To fill a text of which three characters in ten are missing, once the model has answered before."""
    holes = np.random.default_rng(0).random(len(text)) < 0.3
    broken = "".join("_" if hole else character for hole, character in zip(holes, text, strict=True))
    return best_of(3, lambda: model.fill(broken))


def size_of(model: TextModel) -> int:
    """Bytes of the model's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.anyorder"
        model.save(path)
        return path.stat().st_size


def compressed(model: TextModel, text: str) -> dict[str, Any]:
    """Bits per character of a compressed text that came back whole, and characters a second."""
    began = time.monotonic()
    packed = model.compress(text)
    middle = time.monotonic()
    if model.decompress(packed) != text:
        raise SystemExit("the text did not come back")
    seconds = middle - began, time.monotonic() - middle
    return {
        "compressed, bits per character": round(8 * len(packed) / len(text), 3),
        "characters a second": round(len(text) / seconds[0]),
        "and back": round(len(text) / seconds[1]),
    }


def drafted(model: TextModel) -> dict[str, Any]:
    """Drawing one text with drafts by the counts: calls a character, and its time over that of one at a time."""
    if model.core.network.drafter is None:
        return {}
    values = torch.zeros(1, model.length)
    chain = model.core.chain(Query.marginal(torch.ones(1, model.length, dtype=torch.bool)))
    ratios, calls = [], []
    for seed in range(4):
        generator = torch.Generator().manual_seed(seed)
        began = time.perf_counter()
        found = speculate(model.core, values, chain, generator, drafts=4)
        middle = time.perf_counter()
        model.core.draw(values, chain, generator)
        ratios.append((middle - began) / (time.perf_counter() - middle))
        calls.append(float(found.calls.sum() / found.drawn.sum()))
    return {
        "drafted, calls a character": round(sum(calls) / len(calls), 3),
        "drafted, time over one at a time": round(sorted(ratios)[len(ratios) // 2], 2),
    }


def xz(corpus: Corpus, size: int) -> dict[str, float]:
    """What xz -9 takes for the same text, alone and after the training text."""
    texts = corpus.training.encode(), corpus.test[:size].encode()
    found = compressors.row("xz -9", compressors.COMPRESSORS["xz -9"], *texts)
    return {"xz -9": found["bits per character"], "xz -9, primed": found["bits per character, primed"]}


def main(
    minutes: Annotated[float, typer.Option(help="training budget of the long rows")] = 20.0,
    quick: Annotated[float, typer.Option(help="training budget of the short row")] = 1.0,
    windows: Annotated[int, typer.Option(help="test windows")] = 100,
    preset: str = "small",
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Run row by row, and print the table."""
    record, length = Record(json, "text_engines.json", smoke=smoke), LENGTH
    if smoke:
        minutes, quick, windows, preset, length = 2 * smoke_data.MINUTES, smoke_data.MINUTES, 3, "tiny", 12
    corpus = smoke_data.text() if smoke else text8()
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    ours = f"default, {minutes:g} minutes"
    for row, fitting in rows_of(minutes, quick).items():
        began = time.monotonic()
        model = ao.fit_text(corpus.training, length=length, preset=preset, validation=corpus.validation, **fitting)
        seconds = time.monotonic() - began
        found[row] = asked(model, corpus, length, windows, seconds)
        if row == ours:
            found["its network alone"] = asked(network_of(model), corpus, length, windows, seconds)
        facts = {name: value for name, value in found[row].items() if name != "bits"}
        Console(width=140).print(f"{row}: {facts}")
    lines, above = [], []
    for row, facts in found.items():
        scores = {name: shown(mean, error) for name, (mean, error) in facts["scores"].items()}
        lines.append(
            {"row": row, **scores, **{name: part for name, part in facts.items() if name not in ("scores", "bits")}}
        )
        above.append({"row": row, **apart(facts["bits"], found[ours]["bits"], questions(windows, length))})
    print_rows(lines)
    record.write(
        {
            "title": "Counting, a network, and both: text8",
            "about": f"Bits per asked character (lower is better) on {windows} test windows of {length} characters, "
            "plus or minus the standard error, by the kind of question; all rows from one run. Networks train with the "
            f"preset `{preset}` on one thread, and everything is timed on one.",
            "partial": f"This is {corpus.partial}." if corpus.partial else "",
            "seed": 0,
            "rows": lines,
            "above the default, bits per character": above,
            **xz(corpus, COMPRESSED if length == LENGTH else 2_000),
            "details": {"by_row": found},
        }
    )


if __name__ == "__main__":
    typer.run(main)
