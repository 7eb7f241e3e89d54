"""In what order a chain network should read what is known: MAC's order, any order, or half of each.

    python benchmarks/text_evidence.py --json benchmarks/results/text_evidence.json    (half an hour of one core)

Three trainings of the library's default for texts (counts and a chain network, text8, windows of 250 characters), equal
but for the protocol: evidence and what is asked in MAC's order; evidence in random order (``any_evidence``), and that
for half of the questions. All take the same number of steps. They are asked the questions of text_questions.py about
windows of *validation* text, since the answer chooses a default; the network alone, and with its counts.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import torch
import typer

import anyorder as ao
from anyorder.data.text import Corpus, Windows, text8
from anyorder.modalities.texts.core import codes_of
from anyorder.modalities.texts.model import TextModel
from text_questions import KINDS, LENGTH, OnceCounted, apart, bits_of, network_of, per_character, questions, shown

import smoke_data
from common import Json, Record, Smoke, print_rows

TIMES = ("protocols", "networks", "training", "modalities/texts")
CANONICAL = "MAC's order"
ROWS: dict[str, dict[str, Any]] = {
    CANONICAL: {"name": "canonical"},
    "any order": {"name": "any_evidence"},
    "half of each": {"name": "any_evidence", "share": 0.5},
}
ALONE, TOGETHER = "network alone", "counts and network"


def trained(protocol: dict[str, Any], corpus: Corpus, *, length: int, preset: str, steps: int) -> TextModel:
    """The default after so many steps; no clock has a say."""
    return ao.fit_text(
        corpus.training,
        length=length,
        preset=preset,
        validation=corpus.validation,
        seed=0,
        config={"protocol": protocol, "training": {"steps": steps, "minutes": None, "threads": 1}},
    )


def main(
    steps: Annotated[int, typer.Option(help="of each training: 1,500 are five minutes of one core")] = 1_500,
    windows: Annotated[int, typer.Option(help="of validation text")] = 100,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Train and ask, and print how far the other two are from MAC's order."""
    torch.set_num_threads(1)
    record, length, preset = Record(json, "text_evidence.json", smoke=smoke), LENGTH, "small"
    if smoke:
        steps, windows, length, preset = 2, 3, 12, "tiny"
    corpus, once = smoke_data.text() if smoke else text8(), OnceCounted()
    wanted = questions(windows, length)
    bits: dict[str, dict[str, dict[str, list[float]]]] = {ALONE: {}, TOGETHER: {}}
    seconds: dict[str, float] = {}
    for row, protocol in ROWS.items():
        began = time.process_time()
        model = trained(protocol, corpus, length=length, preset=preset, steps=steps)
        seconds[row] = round(time.process_time() - began, 1)
        asked = Windows(codes_of(model.alphabet, corpus.validation), length).spread(windows)
        once.serve(model.core.network.inside[1])
        for name, one in ((ALONE, network_of(model)), (TOGETHER, model)):
            bits[name][row] = {kind: bits_of(one, asked, query).tolist() for kind, query in wanted.items()}
            print(f"{row}, {name}: {shown_of(bits[name][row], wanted)}", flush=True)
    rows, differences = [], []
    for name, by_row in bits.items():
        for row, own in by_row.items():
            rows.append({"evidence in": row, "model": name, **shown_of(own, wanted), "fitting s": seconds[row]})
            if row != CANONICAL:
                differences.append({"evidence in": row, "model": name, **apart(own, by_row[CANONICAL], wanted)})
    record.write(
        {
            "title": "In what order a chain network reads what is known",
            "about": f"Bits per asked character (lower is better) on {windows} windows of {length} characters of "
            f"validation text, after {steps:,} steps of the preset `{preset}`; ± is the standard error over windows. "
            "What is asked is answered in MAC's order by all. One training each.",
            "partial": f"This is {corpus.partial}." if corpus.partial else "",
            "seed": 0,
            "rows": rows,
            f"above {CANONICAL}": differences,
            "details": {"steps": steps, "bits": bits},
        }
    )
    print_rows(rows)
    print_rows(differences)


def shown_of(bits: dict[str, list[float]], wanted: Any) -> dict[str, str]:
    return {kind: shown(*per_character(bits[kind], wanted[kind])) for kind in KINDS}


if __name__ == "__main__":
    typer.run(main)
