"""What the commands do when the model is one of texts."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from anyorder.atomic import atomic_path
from anyorder.errors import UserError

if TYPE_CHECKING:
    from anyorder.text import Filling, TextModel

SURE, LIKELY = 0.8, 0.4  # green above, yellow above, red below


def fill_text(
    model: TextModel, text: str, *, mark: str, draws: int | None, seed: int, out: Path | None, as_json: bool
) -> None:
    """Print (or write) the text with its holes filled; in a terminal the colour says how sure each character is."""
    found = model.fill(text, mark=mark, draws=draws, seed=seed)
    fillings: list[Filling] = found if isinstance(found, list) else [found]
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
    console = Console(soft_wrap=True, highlight=False)
    for filling in fillings:
        console.print(_coloured(filling, model))
    if console.is_terminal:
        sys.stderr.write(f"anyorder: green: above {SURE:.0%} sure; yellow: above {LIKELY:.0%}; red: less\n")


def score_text(model: TextModel, text: str) -> dict[str, Any]:
    """Bits per character: of a short text jointly, of a long one window by window, each from nothing."""
    if len(text) == 0:
        raise UserError("there is no text to score")
    if len(model.alphabet.check(text)) <= model.length:
        nats = float(model.log_prob([text])[0])
        count = len(model.alphabet.spread(text))
        return {"characters": count, "nats": nats, "bits_per_character": -nats / count / math.log(2), "windows": 1}
    count = len(model.alphabet.spread(text)) // model.length
    return {
        "characters": count * model.length,
        "bits_per_character": model.bits_per_character(text),
        "windows": count,
    }


def _facts(filling: Filling) -> dict[str, Any]:
    filled = {place: round(sure, 4) for place, sure in enumerate(filling.confidence) if sure < 1}
    return {"text": filling.text, "nats": filling.nats, "confidence": filled}


def _coloured(filling: Filling, model: TextModel) -> Text:
    whole = Text(filling.text)
    if model.alphabet.unit == "bytes":  # a character may be several positions
        return whole
    for place, sure in enumerate(filling.confidence):
        if sure < 1:
            whole.stylize(
                "bold " + ("green" if sure > SURE else "yellow" if sure > LIKELY else "red"), place, place + 1
            )
    return whole
