"""``anyorder anomalies``: which cells are surprising given the rest of their rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from anyorder import show
from anyorder.cli.options import Json, Missing, ModelFile, TableFile, UnseenValues
from anyorder.cli.tables import load, read
from anyorder.errors import UserError


def anomalies(
    model: ModelFile,
    table: TableFile,
    top: Annotated[int, typer.Option("--top", metavar="N", help="how many cells to list")] = 10,
    missing: Missing = None,
    unseen: UnseenValues = "refuse",
    as_json: Json = False,
) -> None:
    """The cells least probable given the rest of their rows; rows are counted from 0, as in Python."""
    if top < 1:
        raise UserError(f"--top must be at least 1, got {top}")
    loaded = load(model)
    frame = read(table, (*loaded.schema.missing, *(missing or ())))
    found = [asdict(one) for one in loaded.anomalies(frame, top=top, unseen=unseen)]
    if as_json:
        show.print_json({"rows": len(frame), "anomalies": found})
    elif found:
        lines = [show.plain(one) for one in found]
        show.print_table([{**line, "probability": f"{line['probability']:.2g}"} for line in lines])
    else:
        typer.echo("no known cell to judge")
