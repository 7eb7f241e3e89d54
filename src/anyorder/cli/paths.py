"""Checks of the paths that a command writes to, before it works: training must not end in a path that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anyorder.errors import UserError
from anyorder.support.atomic import check_place, check_room_in


def check_writable(path: Path | None) -> None:
    """A file can be made there, as a little that is written beside it shows."""
    if path is not None:
        check_place(path)


def check_figure(path: Path | None) -> None:
    """A figure can be drawn there: the ending is one that Matplotlib writes, and Matplotlib is installed."""
    if path is None:
        return
    from anyorder.support import plotting

    plotting.require_matplotlib()
    plotting.check_format(path)
    check_writable(path)


def check_picture(path: Path | None, *, exact: bool = False) -> None:
    """Pixels can be written there, by the ending; ``exact``: in a format that changes none of them."""
    if path is None:
        return
    from anyorder.data.picture_files import check_written, pillow

    pillow()
    check_written(path, exact=exact)
    check_writable(path)


FOLDERS = ("checkpoint", "tensorboard")
"""The parameters that name folders to be written into."""

WRITTEN = ("out", "plot", "intervals", "strip", "film", "log", "transcript", "report")
"""The parameters of commands that name files to be written; whatever else is a path is read."""


def check_apart(paths: Mapping[str, Any]) -> None:
    """No file that a command writes is one that it reads or writes otherwise: nothing of the user's is lost.

    A link to a file counts as the file, and a file in a folder that is read as one that is read. A run may keep its
    model and its log beside its checkpoints, but not in their place.
    """
    from anyorder.data.said import bare_name  # what is read may have more behind its name, as in sales.csv#header=3

    given = {name: path for name, path in paths.items() if isinstance(path, Path) and str(path) != "-"}
    named = {name: path if name in WRITTEN else Path(bare_name(path)) for name, path in given.items()}
    for name in WRITTEN:
        for other, path in named.items():
            if name in named and other != name and _same_file(named[name], path):
                option = f"--{name}"
                if other in WRITTEN:
                    raise UserError(
                        f"{option} and --{other} are the same file, {str(path)!r}: give two different files"
                    )
                raise UserError(f"{option} would overwrite {str(path)!r}, which is an input: choose another file")
            if name in named and path.is_dir() and _is_of(other, path, named[name]):
                raise UserError(
                    f"--{name} would overwrite {str(named[name])!r}, a file in {str(path)!r} that is an input: "
                    "choose another file"
                )


def _is_of(parameter: str, folder: Path, file: Path) -> bool:
    """Whether a file is one of what a folder holds for the command: its pictures, or what a run writes there."""
    if folder.resolve() not in file.resolve().parents:
        return False
    ours = file.suffix == ".checkpoint" or "tfevents" in file.name
    return ours if parameter in FOLDERS else file.exists()


def _same_file(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.is_file() and one.samefile(other)  # two outputs may go to one device
    return one.resolve() == other.resolve()


def check_table(path: Path | None) -> None:
    """A table can be written there: the ending says in which format."""
    if path is None or str(path) == "-":
        return
    from anyorder.data.files import PARQUET_SUFFIXES, TEXT_SUFFIXES

    endings = (*TEXT_SUFFIXES, *(f"{suffix}.gz" for suffix in TEXT_SUFFIXES), *PARQUET_SUFFIXES)
    if not path.name.lower().endswith(endings):
        raise UserError(f"cannot write {str(path)!r}: the name must end in one of {', '.join(endings)}")
    check_writable(path)


def check_folder(path: Path | None, option: str) -> None:
    """The folder exists or can be made, and can be written into: no file of that name is in the way."""
    if path is None:
        return
    if path.exists() and not path.is_dir():
        raise UserError(f"{option} needs a folder, but {str(path)!r} is a file: choose another path")
    there = next(folder for folder in (path, *path.absolute().parents) if folder.is_dir())
    check_room_in(there)
