"""Tables in many files, as commands take them: a folder or a pattern in, a folder out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from anyorder.cli import show
from anyorder.errors import UserError

if TYPE_CHECKING:
    from anyorder.tasks.parts import PartsDone


PATTERN = re.compile(r"[*?\[]")


def in_parts(file: Path, out: Path | None = None) -> bool:
    """Whether a table is to be worked off part by part: it is in many files, or a folder is to take the result."""
    from anyorder.data.parts import in_parts as has_parts

    return has_parts(file) or (into_parts(out) and str(file) != "-")


def into_parts(out: Path | None) -> bool:
    """Whether this is a folder: one that is there, or a name without an ending."""
    return out is not None and str(out) != "-" and (out.is_dir() or (not out.suffix and not out.exists()))


def folder_for(out: Path | None) -> Path:
    """The folder that was named for the parts of a result."""
    if out is None:
        raise UserError("a table in many files is answered in parts: name a folder for them with -o FOLDER")
    if out.suffix and not out.is_dir():
        raise UserError(f"a table in many files is answered in parts: -o {str(out)!r} must be a folder, not a file")
    return out


@contextmanager
def working_off(doing: str) -> Iterator[None]:
    """Within, a bar; an interruption says what is left of the work."""
    try:
        with show.bar(doing):
            yield
    except KeyboardInterrupt:
        show.note("the parts that were finished stay; the same command goes on from there")
        raise


def print_parts(did: str, done: PartsDone) -> None:
    """Print what was written."""
    kept = f", {done.kept:,} of which had been made before" if done.kept else ""
    typer.echo(f"{did} {done.rows:,} rows in {done.parts:,} part{'s' if done.parts > 1 else ''}{kept}: {done.folder}")
