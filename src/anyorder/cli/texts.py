"""What the commands do with a model of texts, and the options they take for it."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyorder.cli import show
from anyorder.cli.files import read_bytes, write_bytes
from anyorder.cli.options import (
    CompressedFile,
    Count,
    Evenly,
    Json,
    NetworkCalls,
    Order,
    Orders,
    Out,
    PlainOut,
    Seed,
    at_least_one,
)
from anyorder.cli.paths import check_figure, check_writable
from anyorder.errors import UserError
from anyorder.support import plotting
from anyorder.support.boundary import field
from anyorder.support.visible import visible

if TYPE_CHECKING:
    from anyorder.modalities.texts.model import Filling, TextModel

MODALITY, NOUN = "text", "texts"
SURE, LIKELY = 0.8, 0.4  # green above, yellow above, red below
GREEN, YELLOW, RED = 32, 33, 31

TextFile = Annotated[Path, typer.Argument(metavar="TEXT", help="a UTF-8 text file", show_default=False)]
HeldOut = Annotated[
    Path | None, typer.Option(metavar="TEXT", help="a text file on which the best use of --calls is measured")
]


def fill(
    model: TextModel,
    text: Annotated[str, typer.Option(metavar="TEXT", help="a text with holes", show_default=False)],
    mark: Annotated[str, typer.Option(help="the character that stands for a hole")] = "_",
    out: Out = None,
    draws: Annotated[
        int | None, typer.Option(callback=at_least_one, help="this many random fills, one per line")
    ] = None,
    seed: Seed = 0,
    plot: Annotated[
        Path | None, typer.Option(metavar="PICTURE", help="draw how sure the model is of each filled character")
    ] = None,
    as_json: Json = False,
) -> None:
    """The likeliest characters for the holes of --text; in a terminal their colour shows how sure the model is."""
    check_writable(out)
    check_figure(plot)
    if plot is not None and model.alphabet.unit == "bytes":
        raise UserError("--plot works with models that read characters; this one reads bytes")
    found = model.fill(text, mark=mark, draws=draws, seed=seed)
    fillings: list[Filling] = found if isinstance(found, list) else [found]
    if plot is not None:
        from anyorder.modalities.texts.plots import plot_fillings

        names = ["greedy"] if draws is None else [f"draw {number}" for number in range(1, draws + 1)]
        plotting.save_figure(plot_fillings(text, fillings, names), plot)
    if as_json:
        facts = [_facts(filling) for filling in fillings]
        _write(json.dumps({"draws": draws, "fillings": facts}, ensure_ascii=False), out)
        return
    if out is None:
        print_fillings(fillings, model)
    else:
        _write("\n".join(filling.text for filling in fillings), out)


def print_fillings(fillings: Sequence[Filling], model: TextModel) -> None:
    """The texts; on a terminal their filled characters in colour."""
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        _write("\n".join(filling.text for filling in fillings), None)
        return
    sys.stdout.write("".join(_coloured(filling, model) + "\n" for filling in fillings))
    show.remark(f"green: above {SURE:.0%} sure; yellow: above {LIKELY:.0%}; red: less")


def sample(
    model: TextModel,
    count: Count = 1,
    out: Out = None,
    seed: Seed = 0,
    calls: NetworkCalls = None,
    order: Order = "model",
    beginning: Annotated[str, typer.Option(metavar="TEXT", help="how they begin", show_default=False)] = "",
    length: Annotated[int | None, typer.Option(help="characters in each (a whole window if not given)")] = None,
    drafts: Annotated[
        int | None, typer.Option(min=1, help="draft this many characters per call and check them; still exact")
    ] = None,
    held_out: HeldOut = None,
) -> None:
    """Texts, one per line, with their beginning kept."""
    check_writable(out)
    budget = _budget(model, calls, held_out)
    if held_out is not None:
        cost = f"{budget.nats:.2f} nats per window ({budget.nats / model.length / math.log(2):.3f} bits per character)"
        show.remark(f"{budget.calls} calls for {model.length} characters; predicted cost: {cost}")
    drawn = model.sample(
        count,
        length=length,
        beginning=beginning,
        seed=seed,
        drafts=drafts,
        calls=budget,
        order=order,  # type: ignore[arg-type]  # checked there
    )
    if calls is not None or order == "confidence":
        hint = "" if held_out is not None or calls is None else "; --held-out TEXT predicts what that costs"
        show.note(f"these texts do not exactly follow the model's distribution (with --drafts 4 they do){hint}")
    _write("\n".join(drawn), out)


def score(model: TextModel, file: TextFile, orders: Orders = 1, as_json: Json = False, windows: Evenly = None) -> None:
    """Bits per character of a text file: of whole windows, of single characters, and of holes given the rest."""
    from anyorder.data.text import read_corpus

    corpus = read_corpus(file)
    with show.bar("scoring windows"):
        found = model.scores(corpus, most=windows, orders=orders)
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


def info(model: TextModel, as_json: Json = False) -> None:
    """Its alphabet, and how it was trained."""
    show.print_card(model.card, as_json=as_json)


def compress(
    model: TextModel,
    file: TextFile,
    out: PlainOut,
    as_json: Json = False,
    calls: Annotated[
        int | None, typer.Option(min=1, help="network calls per window; fewer are quicker and cost more bytes")
    ] = None,
    held_out: HeldOut = None,
) -> None:
    """The file comes back to the byte."""
    check_writable(out)
    spent = _budget(model, calls, held_out)
    write_bytes(model.compress(_decoded(file), calls=spent), out)
    show.print_compression(file, out, as_json=as_json)


def decompress(model: TextModel, file: CompressedFile, out: PlainOut) -> None:
    """The text file, to the byte."""
    check_writable(out)
    with field(str(file)):
        text = model.decompress(read_bytes(file))
    write_bytes(text.encode("utf-8", "surrogatepass"), out)  # bytes: line ends stay as they were


def _budget(model: TextModel, calls: int | None, held_out: Path | None) -> Any:
    """How the calls are spent: as the model would, or as held-out text says."""
    if held_out is None:
        return calls
    if calls is None:
        raise UserError("--held-out TEXT only decides how --calls are spent: give --calls too")
    from anyorder.data.text import read_corpus

    return model.budget(read_corpus(held_out), calls)


def _decoded(path: Path) -> str:
    """The file as it is, never unpacked: what comes back must be the file."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{str(path)!r} is not UTF-8 text ({error}); a model of texts compresses only text") from error


def _write(text: str, out: Path | None) -> None:
    if out is None:
        sys.stdout.write((visible(text, kept="\n\t") if sys.stdout.isatty() else text) + "\n")
    else:
        write_bytes((text + "\n").encode("utf-8"), out)


def _facts(filling: Filling) -> dict[str, Any]:
    sure = {position: round(filling.confidence[position], 4) for position in filling.holes}
    return {"text": filling.text, "nats": filling.nats, "confidence": sure}


def _coloured(filling: Filling, model: TextModel) -> str:
    """The text with its filled characters in colour, by escape sequences; those of the text are spelled out."""
    if model.alphabet.unit == "bytes":  # a character may be several positions
        return visible(filling.text, kept="\n\t")
    symbols = [visible(symbol, kept="\n\t") for symbol in filling.text]
    for position in filling.holes:
        sure = filling.confidence[position]
        colour = GREEN if sure > SURE else YELLOW if sure > LIKELY else RED
        symbols[position] = f"\x1b[1;{colour}m{symbols[position]}\x1b[0m"
    return "".join(symbols)
