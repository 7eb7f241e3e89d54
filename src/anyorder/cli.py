"""The command line: plain functions, the same words as in Python.

Every function turns text into arguments, calls the library once and prints the result. A user's mistake is one line
on standard error and exit status 2, never a traceback; results go to standard output, remarks to standard error.
"""

from __future__ import annotations

import math
import os
import sys
import traceback
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from anyorder import show
from anyorder.cli_config import read_configuration
from anyorder.cli_paths import check_folder, check_table, check_writable
from anyorder.errors import UserError
from anyorder.grammar import parse_evidence, parse_names, parse_question, write_question

if TYPE_CHECKING:
    import pandas as pd

    from anyorder.tables import TableModel

app = typer.Typer(
    name="anyorder",
    help="One model, every question: fit a table once, then ask any conditional question of it.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

# Usage errors of the option parser (an unknown option, a missing argument) share this base in every version of typer.
_UsageError: type[Exception] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="a model file (.anyorder)", show_default=False)]
TableFile = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE", help="CSV (any delimiter), CSV.gz, Parquet, or - for standard input", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object instead of text")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="the same seed gives the same draws")]
Missing = Annotated[
    list[str] | None,
    typer.Option("--missing", metavar="MARK", help="a mark for an unknown cell, such as '?'; repeatable"),
]
UnseenValues = Annotated[
    Literal["refuse", "missing"],
    typer.Option("--unseen", help="a value that was never seen in training: a mistake, or as good as unknown"),
]


@app.command()
def fit(
    table: TableFile,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="MODEL", help="where to write the model")],
    minutes: Annotated[float | None, typer.Option(help="time budget (2 if not given)", show_default=False)] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="0 if not given", show_default=False)] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="COLUMN=KIND", help="override a column's kind; repeatable")
    ] = None,
    missing: Missing = None,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", metavar="COLUMN", help="leave a column out; repeatable")
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
    arguments.update({name: value for name, value in given.items() if value is not None})
    if kind:
        arguments["kinds"] = {**arguments.get("kinds", {}), **_pairs(kind)}
    if resume and checkpoint is None:
        raise UserError("--resume needs --checkpoint FOLDER: the run to go on with")
    if not float(arguments.get("minutes", 1.0)) > 0:
        raise UserError(f"--minutes must be above 0, got {arguments['minutes']}")
    for path in (out, log):
        check_writable(path)
    check_folder(checkpoint, "--checkpoint")
    check_folder(tensorboard, "--tensorboard")
    frame = _read(table, arguments.get("missing", ()))
    from anyorder.tables import fit as fit_table

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
        sys.stderr.write(f"anyorder: note: interrupted: kept the best of {training.get('steps')} steps\n")
    result = {"model": str(out), "rows": len(frame), "variables": len(model.schema.names), "card": model.card}
    if as_json:
        show.print_json(result)
    else:
        facts = {name: value for name, value in result.items() if name != "card"}
        show.print_facts({**facts, **_headline(model.card)})


@app.command()
def ask(
    model: ModelFile,
    question: Annotated[str, typer.Argument(help="asked | evidence, e.g. 'price, tax | rooms=6, river=yes'")],
    plot: Annotated[Path | None, typer.Option(metavar="PICTURE", help="draw the answers (.png, .svg, .pdf)")] = None,
    as_json: Json = False,
) -> None:
    """Ask for variables given others; with a value (price=22) also how likely that value is."""
    read = parse_question(question)
    if plot is not None:
        from anyorder import plots

        plots.require_matplotlib()
        plots.check_format(plot)
        check_writable(plot)
    loaded = _load(model)
    if not read.asked:
        raise UserError(f"nothing is asked in {question!r}: name a variable before the '|'")
    _check_names(loaded, [*read.asked, *read.evidence])
    conditional = loaded.given(read.evidence)
    names = [name for name in read.asked if name not in read.values]
    result: dict[str, Any] = {"question": write_question(read), "evidence": dict(read.evidence)}
    result["answers"] = {name: show.answer_facts(conditional[name]) for name in names}
    if read.values:
        result["values"] = dict(read.values)
        result["log_prob"] = conditional.log_prob(read.values)
    if plot is not None:
        plots.save_figure(plots.plot_answers(conditional, list(read.asked)), plot)
        result["plot"] = str(plot)
    if as_json:
        show.print_json(result)
    else:
        show.print_answers(result)


@app.command()
def sample(
    model: ModelFile,
    count: Annotated[int, typer.Option("-n", "--count", help="how many rows")] = 100,
    given: Annotated[str, typer.Option(metavar="EVIDENCE", help="e.g. 'rooms=6, river=yes'", show_default=False)] = "",
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="TABLE", help="standard output if none")] = None,
) -> None:
    """Draw full rows, with what is given kept fixed."""
    if count < 1:
        raise UserError(f"-n must be at least 1, got {count}")
    evidence = parse_evidence(given)
    check_table(out)
    loaded = _load(model)
    _check_names(loaded, evidence)
    _write(loaded.given(evidence).sample(count, seed=seed), out)


@app.command()
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
    loaded = _load(model)
    frame = _read(table, (*loaded.schema.missing, *(missing or ())))
    if draws is None:
        _write(loaded.fill(frame, seed=seed, unseen=unseen), out)
        return
    if "draw" in frame.columns:
        raise UserError("the table has a column 'draw', which is what --draws would add: rename it first")
    import pandas as pd

    filled = loaded.fill(frame, draws=draws, seed=seed, unseen=unseen)
    for index, one in enumerate(filled):
        one.insert(0, "draw", index)
    _write(pd.concat(filled, ignore_index=True), out)


@app.command()
def score(
    model: ModelFile,
    table: TableFile,
    given: Annotated[str, typer.Option(metavar="COLUMNS", help="known columns: score the others given these")] = "",
    orders: Annotated[int, typer.Option(help="average the probability over this many orders")] = 1,
    per_row: Annotated[bool, typer.Option("--per-row", help="one number a row")] = False,
    missing: Missing = None,
    unseen: UnseenValues = "refuse",
    as_json: Json = False,
) -> None:
    """Log-likelihood of the filled cells of each row, in nats: the mean and its standard error."""
    known = parse_names(given)
    if orders < 1:
        raise UserError(f"--orders must be at least 1, got {orders}")
    loaded = _load(model)
    _check_names(loaded, known)
    frame = _read(table, (*loaded.schema.missing, *(missing or ())))
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


@app.command()
def info(model: ModelFile, as_json: Json = False) -> None:
    """What a model file holds: its variables and how it was trained."""
    loaded = _load(model)
    variables = [
        {"name": variable.name, "kind": variable.kind, "levels": list(variable.levels)}
        for variable in loaded.schema.variables
    ]
    if as_json:
        show.print_json({"variables": variables, "card": loaded.card})
    else:
        show.print_variables([show.plain(variable) for variable in variables])
        typer.echo()
        show.print_facts(show.plain(loaded.card))


@app.command()
def demo(
    out: Annotated[Path, typer.Option("-o", "--out", metavar="HTML", help="where to write the report")] = Path(
        "anyorder-demo.html"
    ),
    minutes: Annotated[float, typer.Option(help="time budget of the fit")] = 1.0,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Fit on data that comes with scikit-learn, hide cells, fill them, and write a report with pictures."""
    from anyorder.demo import run_demo

    check_writable(out)
    result = run_demo(out, minutes=minutes, seed=seed, progress=sys.stderr.isatty() and not as_json)
    if as_json:
        show.print_json(result)
    else:
        show.print_table(show.plain(result["scores"]))
        typer.echo(f"\nfitted in {result['seconds']} s; report: {result['report']}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit status (0 done, 1 our own fault, 2 a user's mistake, 130 interrupted)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with warnings.catch_warnings():
        # A warning of the library is a remark to the user, not a line of source code.
        warnings.showwarning = _remark
        warnings.simplefilter("default", UserWarning)
        return _run(given)


def _run(given: list[str]) -> int:
    try:
        # Not app(): it would turn an interruption and a closed pipe into exit codes of its own.
        command = typer.main.get_command(app)
        with command.make_context("anyorder", given or ["--help"]) as context:
            command.invoke(context)
        sys.stdout.flush()
        return 0
    except typer.Exit as error:
        return error.exit_code
    except UserError as error:
        return _complain(str(error))
    except _UsageError as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        return _complain(f"{message} (see anyorder --help)")
    except BrokenPipeError:
        # `anyorder sample ... | head`: the reader has enough. Keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("anyorder: interrupted\n")
        return 130
    except Exception as error:  # noqa: BLE001 (a user of a command line is not helped by a traceback)
        if isinstance(error, OSError) and error.strerror:  # a missing file, a full disk
            return _complain(error.strerror + (f": {error.filename!r}" if error.filename else ""))
        if os.environ.get("ANYORDER_DEBUG"):
            traceback.print_exc()
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        _complain(f"internal error: {said} (please report; ANYORDER_DEBUG=1 shows the traceback)")
        return 1


def _remark(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, UserWarning):
        sys.stderr.write("anyorder: note: " + " ".join(str(message).split()) + "\n")


def _complain(message: str) -> int:
    sys.stderr.write("anyorder: " + " ".join(message.split()) + "\n")
    return 2


def _load(path: Path) -> TableModel:
    if not path.is_file():
        raise UserError(f"there is no model file {str(path)!r}; make one with: anyorder fit TABLE -o MODEL")
    from anyorder.tables import load

    return load(path)


def _read(path: Path, missing: Sequence[str]) -> pd.DataFrame:
    from anyorder.data.files import read_table

    return read_table(path, missing=tuple(missing))


def _write(frame: pd.DataFrame, path: Path | None) -> None:
    if path is None:
        frame.to_csv(sys.stdout, index=False)
        return
    from anyorder.data.files import write_table

    write_table(frame, path)


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    return {name: value for text in texts for name, value in parse_evidence(text).items()}


def _names(texts: Sequence[str]) -> list[str]:
    return [name for text in texts for name in parse_names(text)]


def _check_names(model: TableModel, names: Iterable[str]) -> None:
    """The schema refuses a name it does not have, with the nearest one it has."""
    for name in names:
        model.schema.index(name)


def _headline(card: Mapping[str, Any]) -> dict[str, Any]:
    """The few facts of a card worth a line after training."""
    training, scores = card.get("training", {}), card.get("scores", {})
    return {
        "seconds": training.get("seconds"),
        "steps": training.get("steps"),
        "score": f"{show.number(show.plain(scores.get('held_out')))} ({scores.get('unit', 'nats')})",
    }
