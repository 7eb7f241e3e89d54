"""``anyorder score``: how likely the rows of a table are."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from anyorder.cli import show
from anyorder.cli.images import score_images
from anyorder.cli.loading import check_names, load_any, read
from anyorder.cli.options import Json, Missing, ModelFile, UnseenValues
from anyorder.cli.texts import score_text
from anyorder.errors import UserError
from anyorder.questions.grammar import parse_names


def score(
    model: ModelFile,
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="CSV, CSV.gz, Parquet, -; or a text file", show_default=False)
    ],
    given: Annotated[str, typer.Option(metavar="COLUMNS", help="known columns: score the others given these")] = "",
    orders: Annotated[int, typer.Option(help="average the probability over this many orders")] = 1,
    per_row: Annotated[bool, typer.Option("--per-row", help="one number a row")] = False,
    windows: Annotated[
        int | None, typer.Option(min=1, help="of texts and pictures: so many windows or pictures, evenly spread")
    ] = None,
    missing: Missing = None,
    unseen: UnseenValues = "refuse",
    as_json: Json = False,
) -> None:
    """Log-likelihood of the filled cells of each row, in nats: the mean and its standard error.

    With a model of texts: bits per character of a text file, jointly, of marginals and of holes. With a model of
    pictures: nats and bits per dimension of a folder or an .npz file, averaged over --orders.
    """
    known = parse_names(given)
    if orders < 1:
        raise UserError(f"--orders must be at least 1, got {orders}")
    loaded = load_any(model)
    from anyorder.modalities.images.model import ImageModel
    from anyorder.modalities.texts.model import TextModel

    if isinstance(loaded, TextModel):
        from anyorder.data.text import read_corpus

        if given or per_row or orders > 1:
            raise UserError("--given, --per-row and --orders are for tables; a text is scored as a whole")
        score_text(loaded, read_corpus(table), most=windows, as_json=as_json)
        return
    if isinstance(loaded, ImageModel):
        if given or per_row:
            raise UserError("--given and --per-row are for tables")
        score_images(loaded, table, orders=orders, most=windows, as_json=as_json)
        return
    if windows is not None:
        raise UserError("--windows is for texts; a table is scored row by row")
    check_names(loaded, known)
    frame = read(table, (*loaded.schema.missing, *(missing or ())))
    if not len(frame):
        raise UserError(f"{str(table)!r} has no rows to score")
    scores = loaded.log_prob(frame, given=known or None, orders=orders, unseen=unseen)
    rows = len(scores)
    error = float(scores.std(ddof=1)) / math.sqrt(rows) if rows > 1 else math.nan
    result: dict[str, Any] = {
        "rows": rows,
        "given": known,
        "mean": float(scores.mean()),
        "standard_error": error,
        "unit": "nats per row",
    }
    if as_json:
        show.print_json({**result, "log_prob": scores.tolist()} if per_row else result)
        return
    spread = f" ± {error:.4f}" if rows > 1 else ""
    summary = f"{result['mean']:.4f}{spread} nats per row ({rows} row{'s' if rows > 1 else ''})"
    if per_row:
        scores.rename("log_prob").to_csv(sys.stdout, index_label="row")
    typer.echo(summary, err=per_row)
