"""``anyorder fit``: one model for one table."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyorder.cli import show
from anyorder.cli.column_options import BoundTexts, ContextNames, Dropped, Kinds, LevelTexts, column_arguments
from anyorder.cli.configuration import read_configuration
from anyorder.cli.files import load_table_model, read_frame
from anyorder.cli.options import Missing, RuleTexts, TableFile
from anyorder.cli.parts import in_parts
from anyorder.cli.paths import check_writable
from anyorder.cli.signatures import spelled_out
from anyorder.cli.training_run import TableRun
from anyorder.errors import UserError
from anyorder.questions.grammar import parse_names
from anyorder.support.budgets import FEW_CELLS, QUICK_MINUTES
from anyorder.support.interrupt import deferred_once_begun
from anyorder.support.starts import helps

if TYPE_CHECKING:
    import pandas as pd

    from anyorder.modalities.tables.model import TableModel
    from anyorder.tasks.summary import Summary


@spelled_out
def fit(
    table: TableFile,
    engine: Annotated[
        str | None,
        typer.Option(
            help="auto (the default: a blend), neural, or trees (quick, strong on short tables)", show_default=False
        ),
    ] = None,
    kind: Kinds = None,
    bounds: BoundTexts = None,
    levels: LevelTexts = None,
    missing: Missing = None,
    drop: Dropped = None,
    context: ContextNames = None,
    missingness: Annotated[
        str | None,
        typer.Option(help="ignore (the default), or joint: also model which cells are missing", show_default=False),
    ] = None,
    rule: RuleTexts = None,
    report: Annotated[
        Path | None, typer.Option(metavar="HTML", help="write what was found as one page, with pictures")
    ] = None,
    no_summary: Annotated[
        bool, typer.Option("--no-summary", help="leave out the summary of the table at the end")
    ] = False,
    *,
    run: TableRun,
) -> None:
    """Fit one model to a table: every column but --context can be asked for, given any others."""
    implied, run = run.out is None, run.beside(table)
    if not helps():
        check_writable(report)
    arguments, options = read_configuration(run.config)
    given: dict[str, Any] = {"missingness": missingness, "engine": engine, "rules": rule}
    if context:
        given["context"] = [name for text in context for name in parse_names(text)]
    arguments.update({name: value for name, value in given.items() if value is not None})
    for name, value in column_arguments(kind, bounds, levels, missing, drop).items():
        both = isinstance(value, dict) and isinstance(arguments.get(name), dict)
        arguments[name] = {**arguments[name], **value} if both else value
    if in_parts(table):
        if report is not None:
            raise UserError("--report needs a table in one file: fit without it, and report on some of the rows")
        _fit_parts(table, arguments, options, run, implied=implied)
        return
    frame = read_frame(table, arguments.get("missing", ()))
    if run.minutes is None and frame.size < FEW_CELLS and not {"minutes", "training"} & {*arguments, *options}:
        arguments["minutes"] = QUICK_MINUTES
    if implied and not helps():
        check_replaceable(run.place, [str(name) for name in frame.columns])
    from anyorder.modalities.tables.fit import fit as fit_table

    # Once training has begun, no signal costs what was trained before it is saved.
    with deferred_once_begun(), nullcontext() if run.as_json or helps() else _remarks():
        model = fit_table(frame, config=options or None, **{**arguments, **run.arguments()})
        if helps():
            return
        run.save(model)
    facts: dict[str, Any] = {"rows": len(frame), "variables": len(model.schema.names)}
    summary = None if no_summary and report is None else _summary(model, frame, run.place, table)
    if summary is not None and report is not None:
        from anyorder.cli.fit_report import write_fit_report
        from anyorder.data.tables import understand_table

        understood = {
            name: arguments[name] for name in ("kinds", "missing", "drop", "bounds", "levels") if name in arguments
        }
        found = understand_table(frame, **understood)[1]
        write_fit_report(report, model, frame, found, summary, title=table.name, place=run.place)
        facts["report"] = str(report)
    told = None if no_summary else summary
    run.tell(model, facts, None if told is None else {"summary": told.to_json()})
    if told is not None and not run.as_json:
        typer.echo(f"\n{told}")


def _fit_parts(
    place: Path, arguments: dict[str, Any], options: dict[str, Any], run: TableRun, *, implied: bool
) -> None:
    """Fit a model to a table in many files."""
    from anyorder.data.parts import PartedTable
    from anyorder.modalities.tables.fit import fit as fit_table

    table = PartedTable(place, arguments.get("missing", ()))
    if implied:
        check_replaceable(run.place, table.names)
    with deferred_once_begun(), nullcontext() if run.as_json else _remarks():
        model = fit_table(table, config=options or None, **{**arguments, **run.arguments()})
        run.save(model)
    data = model.card["data"]
    counts = {name: data[name] for name in ("rows", "parts", "schema_rows", "training_rows") if name in data}
    run.tell(model, {**counts, "variables": len(model.schema.names)}, None)


def check_replaceable(path: Path, columns: Sequence[str]) -> None:
    """Refuse to write over a file that the user did not name, unless it is an earlier model of this table."""
    if not path.exists():
        return
    try:
        own = load_table_model(path).card.get("data", {}).get("columns")
    except UserError:
        own = None
    if not own:
        raise UserError(
            f"{str(path)!r} already exists and is not a model of a table: choose another file with -o MODEL"
        )
    others = [name for name in own if name not in columns]
    if others:
        raise UserError(
            f"{str(path)!r} already exists and is a model of another table (with a column {others[0]!r}): "
            "choose another file with -o MODEL"
        )


@contextmanager
def _remarks() -> Iterator[None]:
    """Within, what the library logs is written to standard error, a line each."""
    logger, handler = logging.getLogger("anyorder"), logging.Handler()
    handler.emit = lambda record: show.remark(record.getMessage())  # type: ignore[method-assign]
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def _summary(model: TableModel, frame: pd.DataFrame, place: Path, table: Path) -> Summary | None:
    """The summary; None, with a note, where it cannot be had: the model is saved already, and is what counts."""
    from anyorder.modalities.tables.summary import summary_of

    try:
        return summary_of(model, frame, model_file=str(place), table_file=str(table))
    except KeyboardInterrupt:
        show.note("interrupted: the model is saved, but there is no summary")
    except Exception as error:  # noqa: BLE001 (whatever it is, it must not make a fit that went well look like a failure)
        show.note(f"the model is saved, but there is no summary: {error or type(error).__name__}")
    return None
