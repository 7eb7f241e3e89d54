"""Write a file whole or not at all: beside the target first, then one rename.

A reader, or a run killed at any moment, sees either the old file or the new one, never half of one. What a killed run
leaves is a hidden part beside the target, ``.NAME.0123456789ab.part``; the next write to the same target removes it.

Whether the writer of a part still lives is told by a lock (``flock``) that it holds while it writes. The kernel gives
the lock up when the process ends, however it ends, which a process number in the name would not survive: numbers are
used again, and mean nothing in another container that sees the same folder. Where a file system knows no such locks, or
the system has none (Windows), nothing is removed.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from anyorder.errors import UserError
from anyorder.support.paths import checked_path

if sys.platform != "win32":
    import fcntl

# What a disk says, or who guards it; other errors of the system may have come to a writer from elsewhere (a download).
REFUSALS = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EROFS", "EFBIG", "EIO", "EACCES", "EPERM", "ENAMETOOLONG")
    if hasattr(errno, name)
}


PROBE = "anyorder-probe"  # what the parts of a probe are named after; there is never such a file


class WriteError(UserError):
    """A file cannot be written: a full disk, a folder that is missing or closed to the user."""


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside ``path``: renamed to ``path`` on success, removed on any error.

    The content is on the disk (fsync) before the rename, and the rename itself before this returns. From its first byte
    the part can be read by nobody who cannot read ``path``.
    """
    with _refusals(path):
        target = _target(path)
        special = target.exists() and not target.is_file()
    if special:
        yield target  # a device or a pipe cannot be renamed over: write straight into it
        return
    with _refusals(path):
        _remove_stale(target)
        beside, handle, mode = _new_part(target)
        try:
            yield beside
            beside.chmod(mode)  # some writers make their files private; ours are as the user's other files
            _sync(beside)
            if os.name != "posix":  # Windows renames no open file
                handle = _closed(handle)
            os.replace(beside, target)
        except BaseException:  # Ctrl-C too must leave nothing behind
            handle = _closed(handle)
            with suppress(FileNotFoundError):
                beside.unlink()
            raise
        finally:
            _closed(handle)
        if os.name == "posix":
            _sync(target.parent)


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise a :class:`WriteError` if no file can be written there, found out by writing a little beside it."""
    with _refusals(path):
        target = _target(path)
        if not target.exists() or target.is_file():
            _write_a_little(target)


def check_room_in(folder: str | os.PathLike[str]) -> None:
    """Raise a :class:`WriteError` if no file can be written into this folder, whatever is in it."""
    with _refusals(folder):
        # Always the same name, so that the part of a probe that was killed is found by the next one.
        _write_a_little(Path(os.path.realpath(checked_path(folder))) / PROBE)


def _write_a_little(target: Path) -> None:
    """Write a part of the target and remove it again, with those of killed processes; the target is not touched."""
    _remove_stale(target)
    beside, handle, _ = _new_part(target)
    try:
        os.write(handle, b"\n")  # a full disk has room for a name, but not for a byte
        os.fsync(handle)
    finally:
        _closed(handle)
        with suppress(FileNotFoundError):
            beside.unlink()


def _target(path: str | os.PathLike[str]) -> Path:
    target = Path(os.path.realpath(checked_path(path)))  # a link keeps pointing where it did; its target is replaced
    if target.is_dir():
        raise WriteError(f"cannot write {str(path)!r}: it is a folder; expected a file name")
    if not target.parent.is_dir():
        raise WriteError(f"cannot write {str(path)!r}: there is no folder {str(target.parent)!r}; create it first")
    return target


@contextmanager
def _refusals(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno is None or error.errno not in REFUSALS:
            raise
        raise WriteError(f"cannot write {str(path)!r}: {os.strerror(error.errno)}") from error


def _new_part(target: Path) -> tuple[Path, int, int]:
    """A part of the target that nobody else has, open and locked, and the permissions that it will end with."""
    before = target.stat() if target.exists() else None
    while True:
        beside = target.with_name(f".{_short(target.name)}.{secrets.token_hex(6)}.part")
        # Its owner must be able to write it, even where a file is to be replaced that its owner may only read.
        mode = 0o666 if before is None else stat.S_IMODE(before.st_mode) & 0o777 | 0o600
        handle = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), mode)
        # Another writer may have taken it for a dead one before it was locked: then the next name will do.
        if _lock(handle) is not False and beside.exists():
            break
        os.close(handle)
    if before is None:
        return beside, handle, stat.S_IMODE(os.fstat(handle).st_mode)
    if os.name == "posix":
        for user, group in ((-1, before.st_gid), (before.st_uid, -1)):
            with suppress(OSError):  # only root may give files away
                os.fchown(handle, user, group)
        os.fchmod(handle, mode)  # what the umask took away
    return beside, handle, stat.S_IMODE(before.st_mode) & 0o777


def _remove_stale(target: Path) -> None:
    """Remove the parts of this target that no living process is writing."""
    if sys.platform == "win32":
        return
    ours = re.compile(rf"\.{re.escape(_short(target.name))}\.[0-9a-f]{{12}}\.part")
    names: list[str] = []
    with suppress(OSError):  # a folder that may be written, but not listed
        names = os.listdir(target.parent)
    for name in filter(ours.fullmatch, names):
        with suppress(OSError):  # gone by now, or somebody else's
            part = target.with_name(name)
            handle = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if _lock(handle):
                    part.unlink()
            finally:
                os.close(handle)


def _lock(handle: int) -> bool | None:
    """Whether the file is now locked by us and was not by another; None where there are no locks."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _short(name: str) -> str:
    """The name, or as much of it as leaves room for what a part has around it: a name has 255 bytes at most."""
    return name.encode("utf-8", "surrogateescape")[:200].decode("utf-8", "ignore")


def _closed(handle: int) -> int:
    if handle >= 0:
        os.close(handle)
    return -1


def _sync(path: Path) -> None:
    # A folder can only be opened for reading; Windows wants a file opened for writing.
    handle = os.open(path, os.O_RDONLY if path.is_dir() or os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
