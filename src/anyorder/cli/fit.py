"""``anyorder fit``: one model for one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from anyorder.cli.configuration import read_bounds, read_configuration
from anyorder.cli.files import read_frame
from anyorder.cli.options import Missing, RuleTexts, TableFile
from anyorder.cli.signatures import spelled_out
from anyorder.cli.training_run import TrainingRun
from anyorder.questions.grammar import parse_evidence, parse_names
from anyorder.support.interrupt import deferred_once_begun


@spelled_out
def fit(
    table: TableFile,
    engine: Annotated[
        str | None,
        typer.Option(help="auto (the default), neural, or trees: quick, strong on short tables", show_default=False),
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="COLUMN=KIND", help="override a column's kind; repeatable")
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option("--bounds", metavar="COLUMN=LOW..HIGH", help="range of a number column, such as 0..; repeatable"),
    ] = None,
    missing: Missing = None,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", metavar="COLUMN", help="leave a column out; repeatable")
    ] = None,
    missingness: Annotated[
        str | None,
        typer.Option(help="ignore (the default), or joint: model which cells are missing too", show_default=False),
    ] = None,
    rule: RuleTexts = None,
    *,
    run: TrainingRun,
) -> None:
    """Fit one model to a table: every column becomes a variable that can be asked for or conditioned on."""
    arguments, options = read_configuration(run.config)
    given = {
        "missing": missing,
        "drop": drop and _names(drop),
        "missingness": missingness,
        "engine": engine,
        "rules": rule,
    }
    arguments.update({name: value for name, value in given.items() if value is not None})
    if kind:
        arguments["kinds"] = {**arguments.get("kinds", {}), **_pairs(kind)}
    if bounds:
        ranges = {name: read_bounds(name, text) for name, text in _pairs(bounds).items()}
        arguments["bounds"] = {**arguments.get("bounds", {}), **ranges}
    frame = read_frame(table, arguments.get("missing", ()))
    from anyorder.modalities.tables.fit import fit as fit_table

    with deferred_once_begun():  # once training has begun, no signal costs what was trained before it is saved
        model = fit_table(frame, config=options or None, **{**arguments, **run.arguments()})
        run.finish(model, {"rows": len(frame), "variables": len(model.schema.names)})


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    return {name: value for text in texts for name, value in parse_evidence(text).items()}


def _names(texts: Sequence[str]) -> list[str]:
    return [name for text in texts for name in parse_names(text)]
