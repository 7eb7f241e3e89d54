"""``anyorder anomalies``: which cells are surprising given the rest of their rows, or which rows as a whole."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from anyorder.cli import show
from anyorder.cli.files import load_table_model, read_frame
from anyorder.cli.options import Json, Missing, ModelFile, Seed, TableFile, UnseenValues, at_least_one
from anyorder.cli.parts import in_parts, working_off
from anyorder.errors import UserError
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
    if in_parts(table):
        if rows:
            raise UserError("--rows ranks the rows of one file; of parts, write the score of every row with score -o")
        with working_off("scoring rows"):
            cells = [asdict(one) for one in loaded.anomalies_files(table, top, unseen=unseen, missing=missing or ())]
        _print(cells, {}, as_json=as_json, rows=False)
        return
    frame = read_frame(table, (*loaded.schema.missing, *(missing or ())))
    if rows:
        with show.bar("scoring rows"):
            found = [asdict(one) for one in row_anomalies(loaded.core, frame, top=top, seed=seed, unseen=unseen)]
    else:
        with show.bar("scoring rows"):
            found = [asdict(one) for one in loaded.anomalies(frame, top=top, unseen=unseen)]
    _print(found, {"rows": len(frame)}, as_json=as_json, rows=rows)


def _print(found: list[dict[str, Any]], facts: dict[str, Any], *, as_json: bool, rows: bool) -> None:
    if as_json:
        show.print_json({**facts, "anomalies": found})
    elif found:
        lines = [plain(one) for one in found]
        show.print_table([{**line, "probability": f"{line['probability']:.2g}"} for line in lines])
    else:
        typer.echo("no rows to rank" if rows else "no known cells to rank")
