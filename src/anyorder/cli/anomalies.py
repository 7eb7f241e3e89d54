"""``anyorder anomalies``: which cells are surprising given the rest of their rows, or which rows as a whole."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from anyorder.cli import show
from anyorder.cli.files import load_table_model, read_frame
from anyorder.cli.options import Json, Missing, ModelFile, Seed, TableFile, UnseenValues, at_least_one
from anyorder.support.plain import plain


def anomalies(
    model: ModelFile,
    table: TableFile,
    top: Annotated[int, typer.Option(metavar="N", callback=at_least_one, help="how many cells (or rows) to list")] = 10,
    rows: Annotated[bool, typer.Option("--rows", help="rank whole rows instead of single cells")] = False,
    seed: Seed = 0,
    missing: Missing = None,
    unseen: UnseenValues = "refuse",
    as_json: Json = False,
) -> None:
    """List the cells least probable given the rest of their rows, or the least probable rows, counted from 0."""
    from anyorder.tasks.anomalies import row_anomalies

    loaded = load_table_model(model)
    frame = read_frame(table, (*loaded.schema.missing, *(missing or ())))
    if rows:
        with show.bar("scoring rows"):
            found = [asdict(one) for one in row_anomalies(loaded.core, frame, top=top, seed=seed, unseen=unseen)]
    else:
        with show.bar("scoring rows"):
            found = [asdict(one) for one in loaded.anomalies(frame, top=top, unseen=unseen)]
    if as_json:
        show.print_json({"rows": len(frame), "anomalies": found})
    elif found:
        lines = [plain(one) for one in found]
        show.print_table([{**line, "probability": f"{line['probability']:.2g}"} for line in lines])
    else:
        typer.echo("no rows to rank" if rows else "no known cells to rank")
