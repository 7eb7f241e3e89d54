"""The options that every fit command has, checked before any training, and what it says at the end."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from anyorder.cli import show
from anyorder.cli.options import Json
from anyorder.cli.parts import PATTERN
from anyorder.cli.paths import check_apart, check_folder, check_writable
from anyorder.errors import UserError
from anyorder.support.atomic import WriteError
from anyorder.support.interrupt import deferred_interrupt
from anyorder.support.plain import plain
from anyorder.support.starts import helps

if TYPE_CHECKING:
    from anyorder.modalities.face import FittedModel


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """Where a run writes, how long it may take, and how it goes on after a stop."""

    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="MODEL", help="where to write the model")]
    minutes: Annotated[
        float | None,
        typer.Option(
            help="time budget (default: 2 for a table, 0.5 for a short one, 10 for texts and pictures)",
            show_default=False,
        ),
    ] = None
    seed: Annotated[int | None, typer.Option(min=0, help="seed of the run (0 if not given)", show_default=False)] = None
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="options from a TOML file or, for fit, from an earlier model; the command line wins"
        ),
    ] = None
    checkpoint: Annotated[Path | None, typer.Option(metavar="FOLDER", help="keep the state of the run here")] = None
    resume: Annotated[bool, typer.Option("--resume", help="continue the run in --checkpoint, if there is one")] = False
    log: Annotated[Path | None, typer.Option(metavar="JSONL", help="write the training curve to this file")] = None
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="write the training curve for TensorBoard")
    ] = None
    device: Annotated[str | None, typer.Option(help="auto (the default), cpu or cuda", show_default=False)] = None
    as_json: Json = False

    def __post_init__(self) -> None:
        if self.resume and self.checkpoint is None:
            raise UserError("--resume needs --checkpoint FOLDER, the run to continue")
        if self.minutes is not None and not self.minutes > 0:
            raise UserError(f"--minutes must be above 0, got {self.minutes:g}")
        if helps():  # started by torchrun beside the process that writes, perhaps on another machine
            return
        for path in (self.out, self.log):
            check_writable(path)
        check_folder(self.checkpoint, "--checkpoint")
        check_folder(self.tensorboard, "--tensorboard")

    def arguments(self) -> dict[str, Any]:
        """The arguments of a fit function that these options stand for; it has its own defaults for the rest."""
        given = {"minutes": self.minutes, "seed": self.seed, "device": self.device}
        return {
            **{name: value for name, value in given.items() if value is not None},
            "checkpoint": self.checkpoint,
            "resume": self.resume,
            "log": self.log,
            "tensorboard": self.tensorboard,
            "progress": sys.stderr.isatty() and not self.as_json,
        }

    @property
    def place(self) -> Path:
        """Where the model is written."""
        assert self.out is not None  # every command has one before it works
        return self.out

    def finish(self, model: FittedModel, facts: Mapping[str, Any]) -> None:
        """Save the model, and print what it was fitted to and how training went; nothing in a process that helps."""
        if helps():
            return
        self.save(model)
        self.tell(model, facts)

    def save(self, model: FittedModel) -> None:
        """Save the model, and say so if training was interrupted."""
        self._save(model)
        training = model.card.get("training", {})
        if training.get("interrupted"):
            kept = f"the best of {training['steps']} steps" if training.get("steps") else "the trees grown so far"
            show.note(f"interrupted: kept {kept}")

    def tell(self, model: FittedModel, facts: Mapping[str, Any], further: Mapping[str, Any] | None = None) -> None:
        """Print what a model was fitted to and how training went; ``further`` facts in JSON only."""
        training, scores = model.card.get("training", {}), model.card.get("scores", {})
        result = {"model": str(self.place), **facts}
        result |= {name: training.get(name) for name in ("seconds", "steps")}
        if self.as_json:
            show.print_json({**result, **(further or {}), "card": model.card})
        else:
            score = f"{show.number(plain(scores.get('held_out')))} ({scores.get('unit', 'nats')})"
            show.print_facts({**result, "score": score})

    def _save(self, model: FittedModel) -> None:
        """Save the model; if the disk refuses, somewhere else, and end with an error that says where."""
        with deferred_interrupt() as interrupt:  # a signal that comes now must not cost the model
            interrupt.requested = False  # one that ended training is done with
            try:
                model.save(self.place)
            except (OSError, WriteError) as error:
                reason = str(error) if isinstance(error, WriteError) else f"cannot write {str(self.place)!r}: {error}"
                if (where := _saved_elsewhere(model, self.place.name)) is not None:
                    raise UserError(f"{reason}; the model is in {str(where)!r}: move it from there") from error
                again = f"; give --resume with --checkpoint {self.checkpoint} to get it" if self.checkpoint else ""
                raise UserError(
                    f"{reason}; it could not be saved in the temporary or the current folder either{again}"
                ) from error


@dataclass(frozen=True, kw_only=True)
class TableRun(TrainingRun):
    """A run that can do without a place for its model: the table has one."""

    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="MODEL",
            help="where to write the model (default: next to the table, data.anyorder for data.csv)",
            show_default=False,
        ),
    ] = None

    def beside(self, table: Path) -> Self:
        """This run, with its model beside the table where it was told no other place."""
        if self.out is not None:
            return self
        if str(table) == "-":
            raise UserError("a table from standard input has no file name: name the model's file with -o MODEL")
        if PATTERN.search(table.name):
            raise UserError("a pattern has no file name of its own: name the model's file with -o MODEL")
        stem = table.with_suffix("") if table.suffix.lower() == ".gz" else table
        named = replace(self, out=stem.with_suffix(".anyorder"))
        written = {name: getattr(named, name) for name in ("out", "config", "checkpoint", "log", "tensorboard")}
        check_apart({"table": table, **written})
        return named


def _saved_elsewhere(model: FittedModel, name: str) -> Path | None:
    """Where the model is now: in the folder for temporary files, or the current one; None if neither takes it."""
    parents: tuple[Callable[[], str], ...] = (tempfile.gettempdir, os.getcwd)  # both may fail
    for parent in parents:
        with suppress(OSError, WriteError):
            return _saved_within(model, parent(), name)
    return None


def _saved_within(model: FittedModel, parent: str, name: str) -> Path:
    """Save the model in a new folder there, which only the user may read and in which nothing can be overwritten."""
    folder = Path(tempfile.mkdtemp(prefix="anyorder-", dir=parent))
    try:
        model.save(folder / name)
    except BaseException:
        folder.rmdir()
        raise
    return folder / name
