"""Packed files, read piece by piece: .gz, .xz and .zip, with a limit on what comes out of them.

A few kilobytes can unpack to gigabytes. So what comes out may be :data:`UNPACKED` bytes, or :data:`RATIO` times the
file if that is more; whoever has more unpacks the file and names that. The limit is checked while reading, before the
bytes are kept. A file that is damaged, cut off or locked by a password is a :class:`UserError` too.
"""

from __future__ import annotations

import gzip
import io
import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from anyorder.errors import UserError
from anyorder.support.boundary import first_line

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

ENDINGS = (".gz", ".xz", ".zip")
UNPACKED = 200_000_000  # bytes
RATIO = 50

# What the three unpackers raise for damaged, cut off, locked or unusual files.
_DAMAGE = (
    EOFError,
    IndexError,
    LookupError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file from its beginning, unpacked if its ending says that it is packed."""
    ending = path.suffix.lower()
    mode = path.stat().st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise UserError(f"cannot read {str(path)!r}: it is a device, which may never end; expected a file")
    with ExitStack() as stack:
        file = stack.enter_context(path.open("rb"))
        if ending not in ENDINGS:
            yield file
            return
        try:
            source = stack.enter_context(_unpacker(file, path, ending))
        except UserError:
            raise
        except _DAMAGE as error:
            raise _damaged(path, error) from error
        limit = max(UNPACKED, RATIO * path.stat().st_size)
        yield cast(BinaryIO, stack.enter_context(io.BufferedReader(_Bounded(source, path, limit), 1 << 16)))


def read_bytes(path: Path) -> bytes:
    """All bytes of a file, unpacked if its ending says that it is packed."""
    with opened(path) as file:
        return file.read()


def _unpacker(file: BinaryIO, path: Path, ending: str) -> IO[bytes]:
    if ending == ".gz":
        return cast(IO[bytes], gzip.GzipFile(fileobj=file))
    if ending == ".xz":
        return lzma.LZMAFile(file)
    archive = zipfile.ZipFile(file)
    files = [name for name in archive.namelist() if not name.endswith("/")]
    if len(files) != 1:
        raise UserError(
            f"{str(path)!r} contains {len(files)} files, but one was expected: unpack it and name the one you want"
        )
    return archive.open(files[0])


class _Bounded(io.RawIOBase):
    """What an unpacker gives, up to a number of bytes."""

    def __init__(self, source: IO[bytes], path: Path, limit: int) -> None:
        self.source, self.path, self.limit, self.count = source, path, limit, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        try:
            piece = self.source.read(len(view))
        except _DAMAGE as error:
            raise _damaged(self.path, error) from error
        self.count += len(piece)
        if self.count > self.limit:
            raise UserError(
                f"{str(self.path)!r} unpacks to more than {self.limit / 1e6:,.0f} MB (the limit is "
                f"{UNPACKED / 1e6:.0f} MB or {RATIO} times the file): unpack it yourself and name the unpacked file"
            )
        view[: len(piece)] = piece
        return len(piece)


def _damaged(path: Path, error: BaseException) -> UserError:
    kind = path.suffix.lower().removeprefix(".").replace("gz", "gzip")
    return UserError(f"cannot read {str(path)!r}: it is damaged or not a {kind} file ({first_line(error)})")
