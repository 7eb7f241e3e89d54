"""What the commands do when the model is one of texts."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from anyorder.cli import show
from anyorder.errors import UserError
from anyorder.support import plotting
from anyorder.support.atomic import atomic_path

if TYPE_CHECKING:
    from anyorder.modalities.texts.model import Filling, TextModel

SURE, LIKELY = 0.8, 0.4  # green above, yellow above, red below
GREEN, YELLOW, RED = 32, 33, 31


def fill_text(
    model: TextModel,
    text: str,
    *,
    mark: str,
    draws: int | None,
    seed: int,
    out: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Print (or write) the text with its holes filled; in a terminal the colour says how sure each character is."""
    if plot is not None and model.alphabet.unit == "bytes":
        raise UserError("--plot draws character by character; this model reads bytes")
    found = model.fill(text, mark=mark, draws=draws, seed=seed)
    fillings: list[Filling] = found if isinstance(found, list) else [found]
    if plot is not None:
        from anyorder.modalities.texts.plots import plot_fillings

        names = ["greedy"] if draws is None else [f"draw {number}" for number in range(1, draws + 1)]
        plotting.save_figure(plot_fillings(text, fillings, names), plot)
    if as_json or out is not None:
        facts = [_facts(filling) for filling in fillings]
        written = json.dumps({"draws": draws, "fillings": facts}, ensure_ascii=False) if as_json else None
        lines = written or "\n".join(filling.text for filling in fillings)
        if out is None:
            sys.stdout.write(lines + "\n")
            return
        with atomic_path(out) as beside:
            beside.write_text(lines + "\n", encoding="utf-8")
        return
    colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for filling in fillings:
        sys.stdout.write((_coloured(filling, model) if colours else filling.text) + "\n")
    if colours:
        sys.stderr.write(f"anyorder: green: above {SURE:.0%} sure; yellow: above {LIKELY:.0%}; red: less\n")


def score_text(model: TextModel, text: str, *, most: int | None, as_json: bool) -> None:
    """Print bits per character, jointly, of marginals and of holes."""
    found = model.scores(text, most=most)
    if as_json:
        show.print_json({**dataclasses.asdict(found), "unit": "bits per character"})
        return
    names = {
        "joint": "all of a window, from nothing",
        "marginal": "random characters alone (M_card), over those",
        "marginal_per_length": "the same, over the length of the window",
        "conditional": "30 % holes, given the rest",
    }
    rows = []
    for name, meaning in names.items():
        row = {"bits per character": name.replace("_", " "), "of": meaning, "mean": getattr(found, name)}
        rows.append(row if found.errors is None else {**row, "±": found.errors[name]})
    show.print_table(rows)
    typer.echo(f"{found.windows} window{'s' * (found.windows > 1)} of {found.length} characters")


def sample_text(
    model: TextModel,
    count: int,
    *,
    beginning: str,
    length: int | None,
    drafts: int | None,
    calls: int | None,
    held_out: Path | None,
    order: str,
    seed: int,
    out: Path | None,
) -> None:
    """Print (or write) texts, one a line; what fewer calls cost is said on standard error."""
    spent: Any = calls
    if held_out is not None:
        if calls is None:
            raise UserError("--held-out TEXT says where the calls should go: give --calls too")
        from anyorder.data.text import read_corpus

        spent = model.budget(read_corpus(held_out), calls)
        cost = f"{spent.nats:.2f} nats a window ({spent.nats / model.length / math.log(2):.3f} bits a character)"
        sys.stderr.write(f"anyorder: {spent.calls} calls for {model.length} characters; predicted cost: {cost}\n")
    texts = model.sample(
        count,
        length=length,
        beginning=beginning,
        seed=seed,
        drafts=drafts,
        calls=spent,
        order=order,  # type: ignore[arg-type]  # checked there
    )
    if calls is not None or order == "confidence":
        told = "" if held_out is not None or calls is None else "; --held-out TEXT predicts what that costs"
        sys.stderr.write(f"anyorder: note: not the model's own distribution (--drafts 4 is){told}\n")
    lines = "\n".join(texts) + "\n"
    if out is None:
        sys.stdout.write(lines)
        return
    with atomic_path(out) as beside:
        beside.write_text(lines, encoding="utf-8")


def _facts(filling: Filling) -> dict[str, Any]:
    filled = {place: round(filling.confidence[place], 4) for place in filling.holes}
    return {"text": filling.text, "nats": filling.nats, "confidence": filled}


def _coloured(filling: Filling, model: TextModel) -> str:
    """The text with its filled characters in colour, by escape sequences: whatever else is in it stays as it is."""
    if model.alphabet.unit == "bytes":  # a character may be several positions
        return filling.text
    symbols = list(filling.text)
    for place in filling.holes:
        sure = filling.confidence[place]
        symbols[place] = f"\x1b[1;{GREEN if sure > SURE else YELLOW if sure > LIKELY else RED}m{symbols[place]}\x1b[0m"
    return "".join(symbols)
