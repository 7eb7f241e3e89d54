"""Where a public data set is found: in $ANYORDER_DATA, else in the user's cache, else fetched from its public origin.

What is fetched is written whole or not at all, and only if its SHA-256 is the stated one; a set whose SHA-256 nobody
has stated is not fetched. Nothing that is read here can run code: plain files are taken from archives by name, and
pickles are left alone.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

import pooch
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from anyorder.errors import UserError
from anyorder.support.atomic import atomic_path

VARIABLE = "ANYORDER_DATA"
CHUNK = 1 << 20
TIMEOUT = 60.0  # seconds without an answer
PICKLES = (".pickle", ".pkl", ".p", ".joblib", ".pt", ".pth")


@dataclass(frozen=True)
class Origin:
    """A file on the public web. Only ``checksum="sha256:..."`` lets it be fetched.

    With ``md5:...``, which is forged easily, or with none, it has to be put in its place by hand.
    """

    url: str
    file: str
    checksum: str = ""

    def __post_init__(self) -> None:
        if not self.url.startswith(("https://", "http://")):
            raise UserError(f"an origin must be an http(s) address, got {self.url!r}")
        kind, _, digits = self.checksum.partition(":")
        if self.checksum and (kind not in ("md5", "sha256") or not digits):
            raise UserError(f"a checksum is 'md5:...' or 'sha256:...', got {self.checksum!r}")


def cache_folder() -> Path:
    """The user's cache of anyorder, as the system has it; it need not exist yet."""
    return Path(pooch.os_cache("anyorder")) / "data"


def data_folders() -> list[Path]:
    """Where to look: the folders named in $ANYORDER_DATA (several as in $PATH), then the cache."""
    named = [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    return [*named, cache_folder()]


def find(*files: str, folders: Sequence[Path] | None = None) -> Path | None:
    """The first of the folders that holds all of these files (paths relative to it), or None."""
    for folder in data_folders() if folders is None else folders:
        if all((folder / file).is_file() for file in files):
            return folder
    return None


def fetch(origin: Origin, folder: Path | None = None, *, show: bool = True, timeout: float = TIMEOUT) -> Path:
    """The origin's file: where it is found, else fetched into ``folder`` (the cache by default)."""
    where = find(origin.file, folders=None if folder is None else [folder])
    target = (where or folder or cache_folder()) / origin.file
    if where is not None:
        if (wrong := _wrong_checksum(target, origin)) is not None:
            raise UserError(f"{str(target)!r} {wrong}; delete it to fetch it again")
        return target
    by_hand = f"fetch it by hand, put it at {str(target)!r}, or name the folder that has it in ${VARIABLE}"
    if not origin.checksum.startswith("sha256:"):
        raise UserError(f"{origin.file} is not fetched, because no SHA-256 is known for {origin.url}; {by_hand}")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with atomic_path(target) as beside:
            with _Bar(origin.file, show) as bar:
                # As it lies on the server: checksums are of that, not of what a browser would unpack.
                headers = {"User-Agent": "anyorder", "Accept-Encoding": "identity"}
                download = pooch.HTTPDownloader(progressbar=bar, chunk_size=CHUNK, headers=headers, timeout=timeout)
                download(origin.url, str(beside), None)
            if (wrong := _wrong_checksum(beside, origin)) is not None:
                raise UserError(f"{origin.url} {wrong}: not kept; {by_hand}")
    except OSError as error:  # all that can go wrong on the way, and a full disk
        reason = _first_cause(error)
        raise UserError(f"{origin.file} could not be fetched from {origin.url} ({reason}); {by_hand}") from error
    return target


def extract(archive: Path, members: Sequence[str], folder: Path) -> None:
    """Put the named members of a tar or zip archive into ``folder`` under those names, each whole or not at all.

    A member is found by how its path ends, so that the archive's own folders do not matter.
    """
    for name in members:
        if PurePosixPath(name).suffix.lower() in PICKLES:
            raise UserError(f"{name!r} may run code when it is read; it is left in {archive.name}")
        with _member(archive, name) as source:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with atomic_path(target) as beside, beside.open("wb") as out:
                shutil.copyfileobj(source, out, CHUNK)


@contextmanager
def _member(archive: Path, name: str) -> Iterator[IO[bytes]]:
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                found = _ending(zipped.namelist(), name)
                if found is not None:
                    with zipped.open(found) as source:
                        yield source
                    return
        else:
            with tarfile.open(archive) as packed:
                files = {member.name: member for member in packed if member.isfile()}
                found = _ending(list(files), name)
                source_or_none = packed.extractfile(files[found]) if found is not None else None
                if source_or_none is not None:
                    with source_or_none as source:
                        yield source
                    return
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise UserError(f"{str(archive)!r} cannot be read ({error}); delete it and fetch it again") from error
    raise UserError(f"{str(archive)!r} holds no file {name!r}; is it the right archive?")


def _ending(names: Sequence[str], wanted: str) -> str | None:
    """The name that ends like the wanted path; else the only one with its last part."""
    parts = PurePosixPath(wanted).parts
    whole = [name for name in names if PurePosixPath(name).parts[-len(parts) :] == parts]
    last = [name for name in names if PurePosixPath(name).name == parts[-1]]
    return whole[0] if whole else last[0] if len(last) == 1 else None


def _wrong_checksum(path: Path, origin: Origin) -> str | None:
    """What is wrong with a file's checksum; None if it is the stated one, or none is stated."""
    kind = origin.checksum.partition(":")[0]
    if not kind:
        return None
    found = f"{kind}:{pooch.file_hash(str(path), alg=kind)}"
    return None if found == origin.checksum else f"has the checksum {found}, not {origin.checksum}"


def _first_cause(error: BaseException) -> BaseException:
    """What went wrong to begin with: "Connection refused", without what the layers above it add."""
    while error.__context__ is not None:
        error = error.__context__
    return error


class _Bar:
    """A progress bar on standard error, with the four members that pooch asks of one."""

    def __init__(self, name: str, show: bool) -> None:
        columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        text = TextColumn("{task.description}")
        self.progress = Progress(text, *columns, console=Console(stderr=True), transient=True, disable=not show)
        self.task = self.progress.add_task(name, total=None)
        self.total = 0  # set by pooch; 0 where the server does not say

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def update(self, size: int) -> None:
        self.progress.update(self.task, advance=size, total=self.total or None)

    def reset(self) -> None:
        self.progress.reset(self.task)

    def close(self) -> None:
        self.progress.stop()
