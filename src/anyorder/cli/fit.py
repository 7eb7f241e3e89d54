"""``anyorder fit``: one model for one table."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from anyorder.cli import show
from anyorder.cli.configuration import read_bounds, read_configuration
from anyorder.cli.loading import read
from anyorder.cli.options import Json, Missing, TableFile
from anyorder.cli.paths import check_folder, check_writable
from anyorder.errors import UserError
from anyorder.questions.grammar import parse_evidence, parse_names


def fit(
    table: TableFile,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="MODEL", help="where to write the model")],
    minutes: Annotated[float | None, typer.Option(help="time budget (2 if not given)", show_default=False)] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="auto (the default), neural, or trees: quick, strong on short tables", show_default=False),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="0 if not given", show_default=False)] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="COLUMN=KIND", help="override a column's kind; repeatable")
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option("--bounds", metavar="COLUMN=LOW..HIGH", help="range of a number column, such as 0.."),
    ] = None,
    missing: Missing = None,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", metavar="COLUMN", help="leave a column out; repeatable")
    ] = None,
    missingness: Annotated[
        str | None,
        typer.Option(help="ignore (the default), or joint: model which cells are missing too", show_default=False),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="options from a TOML file or a model's card; the command line wins"),
    ] = None,
    checkpoint: Annotated[Path | None, typer.Option(metavar="FOLDER", help="keep the state of the run here")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on from --checkpoint if it exists")] = False,
    log: Annotated[Path | None, typer.Option(metavar="JSONL", help="write the training curve here")] = None,
    tensorboard: Annotated[Path | None, typer.Option(metavar="FOLDER", help="the curve for TensorBoard")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda", show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """Fit one model to a table: every column becomes a variable one can ask for or condition on."""
    arguments, options = read_configuration(config)
    given = {"minutes": minutes, "seed": seed, "missing": missing, "drop": drop and _names(drop), "device": device}
    given |= {"missingness": missingness, "engine": engine}
    arguments.update({name: value for name, value in given.items() if value is not None})
    if kind:
        arguments["kinds"] = {**arguments.get("kinds", {}), **_pairs(kind)}
    if bounds:
        told = {name: read_bounds(name, text) for name, text in _pairs(bounds).items()}
        arguments["bounds"] = {**arguments.get("bounds", {}), **told}
    if resume and checkpoint is None:
        raise UserError("--resume needs --checkpoint FOLDER: the run to go on with")
    if not float(arguments.get("minutes", 1.0)) > 0:
        raise UserError(f"--minutes must be above 0, got {arguments['minutes']}")
    for path in (out, log):
        check_writable(path)
    check_folder(checkpoint, "--checkpoint")
    check_folder(tensorboard, "--tensorboard")
    frame = read(table, arguments.get("missing", ()))
    from anyorder.modalities.tables.fit import fit as fit_table

    model = fit_table(
        frame,
        **arguments,
        config=options or None,
        checkpoint=checkpoint,
        resume=resume,
        log=log,
        tensorboard=tensorboard,
        progress=sys.stderr.isatty() and not as_json,
    )
    model.save(out)
    training = model.card.get("training", {})
    if training.get("interrupted"):
        kept = f"the best of {training['steps']} steps" if training.get("steps") else "the trees grown so far"
        sys.stderr.write(f"anyorder: note: interrupted: kept {kept}\n")
    result = {"model": str(out), "rows": len(frame), "variables": len(model.schema.names), "card": model.card}
    if as_json:
        show.print_json(result)
    else:
        facts = {name: value for name, value in result.items() if name != "card"}
        show.print_facts({**facts, **_headline(model.card)})


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    return {name: value for text in texts for name, value in parse_evidence(text).items()}


def _names(texts: Sequence[str]) -> list[str]:
    return [name for text in texts for name in parse_names(text)]


def _headline(card: Mapping[str, Any]) -> dict[str, Any]:
    """The few facts of a card worth a line after training."""
    training, scores = card.get("training", {}), card.get("scores", {})
    return {
        "seconds": training.get("seconds"),
        "steps": training.get("steps"),
        "score": f"{show.number(show.plain(scores.get('held_out')))} ({scores.get('unit', 'nats')})",
    }
