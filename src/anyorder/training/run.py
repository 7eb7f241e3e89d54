"""Where a run computes, where it keeps its state, and what it starts from."""

from __future__ import annotations

from pathlib import Path

from anyorder.errors import UserError
from anyorder.support.atomic import WriteError, check_room_in
from anyorder.support.checks import checked_seed


def check_run(seed: object, checkpoint: object, *, resume: bool) -> int:
    """The seed as an int; settings of a run that make no sense are refused, for every kind of fit."""
    checked = checked_seed(seed)
    if resume and checkpoint is None:
        raise UserError("resume needs checkpoint=, the folder that keeps the state of the run")
    return checked


def run_folder(path: Path, option: str = "checkpoint") -> Path:
    """The folder that keeps the state of a run, made if need be, and found to be one that can be written into."""
    if path.is_file():
        raise UserError(f"{option} must be a folder, but {str(path)!r} is a file; choose another path")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"{option}: the folder {str(path)!r} cannot be made: {error.strerror}") from error
    check_room_in(path)
    return path
