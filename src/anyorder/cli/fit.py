"""``anyorder fit``: one model for one table."""

from __future__ import annotations

from typing import Annotated

import typer

from anyorder.cli.column_options import BoundTexts, Dropped, Kinds, LevelTexts, column_arguments
from anyorder.cli.configuration import read_configuration
from anyorder.cli.files import read_frame
from anyorder.cli.options import Missing, RuleTexts, TableFile
from anyorder.cli.signatures import spelled_out
from anyorder.cli.training_run import TrainingRun
from anyorder.support.interrupt import deferred_once_begun


@spelled_out
def fit(
    table: TableFile,
    engine: Annotated[
        str | None,
        typer.Option(help="auto (the default), neural, or trees: quick, strong on short tables", show_default=False),
    ] = None,
    kind: Kinds = None,
    bounds: BoundTexts = None,
    levels: LevelTexts = None,
    missing: Missing = None,
    drop: Dropped = None,
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
    given = {"missingness": missingness, "engine": engine, "rules": rule}
    arguments.update({name: value for name, value in given.items() if value is not None})
    for name, value in column_arguments(kind, bounds, levels, missing, drop).items():
        both = isinstance(value, dict) and isinstance(arguments.get(name), dict)
        arguments[name] = {**arguments[name], **value} if both else value
    frame = read_frame(table, arguments.get("missing", ()))
    from anyorder.modalities.tables.fit import fit as fit_table

    with deferred_once_begun():  # once training has begun, no signal costs what was trained before it is saved
        model = fit_table(frame, config=options or None, **{**arguments, **run.arguments()})
        run.finish(model, {"rows": len(frame), "variables": len(model.schema.names)})
