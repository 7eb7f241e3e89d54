"""``anyorder fill``: unknown cells filled, once or by many draws."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anyorder.cli.options import Missing, ModelFile, Seed, TableFile, UnseenValues
from anyorder.cli.paths import check_table
from anyorder.cli.tables import load, read, write
from anyorder.errors import UserError


def fill(
    model: ModelFile,
    table: TableFile,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="TABLE", help="standard output if none")] = None,
    draws: Annotated[
        int | None, typer.Option(help="this many random fills, stacked, told apart by a first column 'draw'")
    ] = None,
    seed: Seed = 0,
    missing: Missing = None,
    unseen: UnseenValues = "refuse",
) -> None:
    """Fill the unknown cells of a table; what is known stays as it is."""
    if draws is not None and draws < 1:
        raise UserError(f"--draws must be at least 1, got {draws}")
    check_table(out)
    loaded = load(model)
    frame = read(table, (*loaded.schema.missing, *(missing or ())))
    if draws is None:
        write(loaded.fill(frame, seed=seed, unseen=unseen), out)
        return
    if "draw" in frame.columns:
        raise UserError("the table has a column 'draw', which is what --draws would add: rename it first")
    import pandas as pd

    filled = loaded.fill(frame, draws=draws, seed=seed, unseen=unseen)
    for index, one in enumerate(filled):
        one.insert(0, "draw", index)
    write(pd.concat(filled, ignore_index=True), out)
