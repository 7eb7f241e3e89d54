"""``anyorder update``: a model that has learned from new rows as well."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from anyorder.cli import show
from anyorder.cli.configuration import read_toml
from anyorder.cli.files import load_table_model, read_frame
from anyorder.cli.options import Json, Missing, ModelFile, Seed, TableFile, UnseenValues
from anyorder.cli.paths import check_writable
from anyorder.errors import UserError
from anyorder.support.interrupt import deferred_once_begun
from anyorder.support.plain import plain


def update(
    model: ModelFile,
    table: TableFile,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="MODEL", help="where to write the new model")],
    minutes: Annotated[float, typer.Option(help="time budget")] = 0.5,
    seed: Seed = 0,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="options from a TOML file, as for fit")] = None,
    missing: Missing = None,
    unseen: UnseenValues = "refuse",
    as_json: Json = False,
) -> None:
    """Let a model of a table learn from new rows and write another one; some new rows are held back to judge it."""
    if not minutes > 0:
        raise UserError(f"--minutes must be above 0, got {minutes:g}")
    check_writable(out)
    loaded = load_table_model(model)
    frame = read_frame(table, (*loaded.schema.missing, *(missing or ())))
    progress = sys.stderr.isatty() and not as_json
    with deferred_once_begun():
        newer = loaded.update(
            frame, minutes=minutes, seed=seed, config=read_toml(config), unseen=unseen, progress=progress
        )
        newer.save(out)
    said = newer.card["updates"][-1]
    if as_json:
        show.print_json({"model": str(out), **said})
        return
    show.print_facts(plain({"model": str(out), **said}))
    if not said["taken"]:
        show.note("the new rows do not improve the model by more than chance: it answers as before")
