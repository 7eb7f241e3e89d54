"""``anyorder compress`` and ``anyorder decompress``: a text or a table in as few bytes as its model can."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyorder.cli import show
from anyorder.cli.loading import load_any, read, write
from anyorder.cli.options import Json, ModelFile
from anyorder.cli.paths import check_table, check_writable
from anyorder.errors import UserError
from anyorder.support.atomic import atomic_path

if TYPE_CHECKING:
    from anyorder.modalities.tables.model import TableModel
    from anyorder.modalities.texts.model import TextModel


def compress(
    model: ModelFile,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="UTF-8 text, or a table", show_default=False)],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="where to write it")],
    calls: Annotated[
        int | None, typer.Option(min=1, help="of texts: network calls a window; fewer are quicker and cost more bytes")
    ] = None,
    held_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="of texts: measure on this text where the --calls should go")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compress a text file or a table with the model's own probabilities; decompress needs the same model.

    A text comes back to the byte. Of a table the cells come back, in a CSV file of their own: 0.130 is the cell 0.13.
    """
    check_writable(out)
    if held_out is not None and calls is None:
        raise UserError("--held-out FILE says where the calls should go: give --calls too")
    loaded = _packer(model)
    from anyorder.modalities.texts.model import TextModel

    if isinstance(loaded, TextModel):
        content: Any = _text(file)
        spent: Any = calls if held_out is None else loaded.budget(_text(held_out), calls or 0)
    else:
        content, spent = read(file, ()), calls
    size = file.stat().st_size if file.is_file() else 0
    data = loaded.compress(content, calls=spent)
    with atomic_path(out) as beside:
        beside.write_bytes(data)
    facts = {"file": str(out), "bytes": len(data), "of": size, "bits_per_byte": 8 * len(data) / max(size, 1)}
    (show.print_json if as_json else show.print_facts)(facts)


def decompress(
    model: ModelFile,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="what compress wrote", show_default=False)],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="where to write the text or the table")],
) -> None:
    """Give back the text, or the cells of the table, that compress compressed with this model."""
    check_writable(out)
    loaded = _packer(model)
    from anyorder.modalities.texts.model import TextModel

    if not file.is_file():
        raise UserError(f"no file {str(file)!r}")
    if not isinstance(loaded, TextModel):
        check_table(out)
        write(loaded.decompress(file.read_bytes()), out)
        return
    text = loaded.decompress(file.read_bytes())
    with atomic_path(out) as beside:
        beside.write_bytes(text.encode("utf-8", "surrogatepass"))  # bytes: line ends stay as they were


def _packer(path: Path) -> TableModel | TextModel:
    from anyorder.modalities.images.model import ImageModel

    model = load_any(path)
    if isinstance(model, ImageModel):
        raise UserError(f"{str(path)!r} is a model of pictures; texts and tables can be compressed")
    return model


def _text(path: Path) -> str:
    """The file as it is, never unpacked: what comes back must be the file."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise UserError(f"no file {str(path)!r}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{str(path)!r} is not UTF-8 text ({error}); models of texts compress text alone") from error
