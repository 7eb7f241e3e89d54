"""``anyorder compress`` and ``anyorder decompress``: a text file in as few bytes as a model of texts can."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anyorder import show
from anyorder.atomic import atomic_path
from anyorder.cli.options import Json, ModelFile
from anyorder.cli.paths import check_writable
from anyorder.cli.tables import load_any
from anyorder.errors import UserError

if TYPE_CHECKING:
    from anyorder.text import TextModel


def compress(
    model: ModelFile,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="UTF-8 text", show_default=False)],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="where to write it")],
    as_json: Json = False,
) -> None:
    """Compress a text file with the model's own probabilities; decompress needs the same model."""
    check_writable(out)
    loaded = _texts(model)
    from anyorder.compress import compress as packed
    from anyorder.data.text import read_corpus

    text = read_corpus(file)
    data = packed(loaded, text)
    with atomic_path(out) as beside:
        beside.write_bytes(data)
    size = len(text.encode())
    facts = {"file": str(out), "bytes": len(data), "of": size, "bits_per_byte": 8 * len(data) / max(size, 1)}
    (show.print_json if as_json else show.print_facts)(facts)


def decompress(
    model: ModelFile,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="what compress wrote", show_default=False)],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="where to write the text")],
) -> None:
    """Give back the text that compress compressed with this model."""
    check_writable(out)
    loaded = _texts(model)
    from anyorder.compress import decompress as unpacked

    if not file.is_file():
        raise UserError(f"no file {str(file)!r}")
    text = unpacked(loaded, file.read_bytes())
    with atomic_path(out) as beside:
        beside.write_bytes(text.encode())  # bytes: line ends stay as they were


def _texts(path: Path) -> TextModel:
    from anyorder.text import TextModel

    model = load_any(path)
    if not isinstance(model, TextModel):
        raise UserError(f"{str(path)!r} is a model of a table; texts need one that anyorder fit-text made")
    return model
