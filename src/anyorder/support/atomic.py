"""Write a file whole or not at all: beside the target first, then one rename.

A reader, or a run killed at any moment, sees either the old file or the new one, never half of one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from anyorder.errors import UserError


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``path``: renamed to ``path`` on success, removed on any error.

    The content is on the disk (fsync) before the rename, and the rename itself before this returns.
    """
    target = Path(os.path.realpath(path))  # a link keeps pointing where it did; its target is replaced
    if target.is_dir():
        raise UserError(f"cannot write {str(path)!r}: it is a folder, a file name was expected")
    if not target.parent.is_dir():
        raise UserError(f"cannot write {str(path)!r}: there is no folder {str(target.parent)!r}; create it first")
    if target.exists() and not target.is_file():
        yield target  # a device or a pipe cannot be renamed over: write straight into it
        return
    beside = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.part")
    try:
        try:
            beside.touch()
            mode = (target if target.exists() else beside).stat().st_mode
            yield beside
            beside.chmod(mode & 0o777)  # some writers make their files private; ours are as the user's other files
            _sync(beside)
            os.replace(beside, target)
        except PermissionError as error:
            raise UserError(f"cannot write {str(path)!r}: {error.strerror}") from error
    except BaseException:  # Ctrl-C too must leave nothing behind
        with suppress(FileNotFoundError):
            beside.unlink()
        raise
    if os.name == "posix":
        _sync(target.parent)


def _sync(path: Path) -> None:
    # A folder can only be opened for reading; Windows wants a file opened for writing.
    handle = os.open(path, os.O_RDONLY if path.is_dir() or os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
