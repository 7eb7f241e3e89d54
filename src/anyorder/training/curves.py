"""Where a training curve is written: one JSON object a line, or TensorBoard."""

from __future__ import annotations

import errno
import json
import math
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from anyorder.errors import UserError
from anyorder.support.atomic import atomic_path, check_place
from anyorder.support.paths import checked_path
from anyorder.support.strict_json import read_json
from anyorder.training.run import run_folder

BEGINNING = '{"run": "'  # of every line that is written here


class Curve(ABC):
    """Takes one point per validation. ``where`` names the file or folder."""

    where: str

    @abstractmethod
    def point(self, run: str, step: int, numbers: Mapping[str, float]) -> None:
        """Note these numbers of ``run`` at ``step``; an ``OSError`` costs the point, and the next one may be noted."""

    @abstractmethod
    def forget(self, run: str, after: int) -> None:
        """Drop what was noted of ``run`` beyond a step: a resumed run notes it again, a fresh one starts at 0."""


class JsonLines(Curve):
    """Appends to a ``.jsonl`` file; every line is whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.where = str(path)
        check_place(path)

    def point(self, run: str, step: int, numbers: Mapping[str, float]) -> None:
        known = {name: value if math.isfinite(value) else None for name, value in numbers.items()}  # JSON has no NaN
        line = (json.dumps({"run": run, "step": step, **known}) + "\n").encode()
        with self.path.open("ab", buffering=0) as file:
            end = os.fstat(file.fileno()).st_size
            try:
                if file.write(line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                if self.path.is_file():
                    file.truncate(end)  # the next line must not stand behind half of this one
                raise

    def forget(self, run: str, after: int) -> None:
        if not self.path.is_file():
            return
        try:
            text = self.path.read_text(encoding="utf-8")
            points = [read_json(line, finite=False) for line in _whole_lines(text)]
            kept = [point for point in points if point["run"] != run or point["step"] <= after]
        except OSError as error:
            raise UserError(f"{self.where!r} cannot be read ({error.strerror}); choose another file") from error
        except (UserError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{self.where!r} already exists and is not a training curve; choose another file"
            ) from error
        content = "".join(json.dumps(point) + "\n" for point in kept)
        if content != text:
            with atomic_path(self.path) as beside:
                beside.write_text(content, encoding="utf-8")


def _whole_lines(text: str) -> list[str]:
    """The lines without the last one, if that is half of one of ours: its writer was killed."""
    *lines, last = text.split("\n")
    if last.startswith(BEGINNING) or BEGINNING.startswith(last):
        try:
            read_json(last, finite=False)
        except UserError:
            return lines
    return [*lines, last]


class TensorBoard(Curve):
    """Writes event files into a folder, one sub-folder per run (needs the extra ``tensorboard``)."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise UserError("curves for TensorBoard need it installed: pip install 'anyorder[tensorboard]'") from error
        self._open = SummaryWriter
        self._folder = run_folder(folder, "tensorboard")
        self._writers: dict[str, SummaryWriter] = {}
        self.where = str(folder)

    def point(self, run: str, step: int, numbers: Mapping[str, float]) -> None:
        with _quiet_threads():
            try:
                if run not in self._writers:
                    self._writers[run] = self._open(str(self._folder / run))
                for name, value in numbers.items():
                    self._writers[run].add_scalar(name, value, step)
                self._writers[run].flush()
            except OSError:
                self._close(run)  # it would fail for ever: the next point opens another
                raise

    def forget(self, run: str, after: int) -> None:
        self._close(run)
        # Event files are only added to; purge_step tells TensorBoard to leave out what older ones say beyond it.
        self._writers[run] = self._open(str(self._folder / run), purge_step=after)

    def _close(self, run: str) -> None:
        writer = self._writers.pop(run, None)
        if writer is not None:
            with suppress(OSError):
                writer.close()


_HOOK = threading.RLock()  # of two threads that exchange the hook at once, the second would leave the wrong one behind


@contextmanager
def _quiet_threads() -> Iterator[None]:
    """No traceback of a disk that refuses: TensorBoard's thread gives the error to its caller as well."""
    with _HOOK:
        before = threading.excepthook

        def hook(arguments: Any) -> None:
            if not issubclass(arguments.exc_type, OSError):
                before(arguments)

        threading.excepthook = hook
        try:
            yield
        finally:
            threading.excepthook = before


def curves_to(log: str | Path | None, tensorboard: str | Path | None) -> list[Curve]:
    """The curves that a user asked for: a file of JSON lines, a folder for TensorBoard, both or none."""
    curves: list[Curve] = [] if log is None else [JsonLines(checked_path(log))]
    if tensorboard is not None:
        curves.append(TensorBoard(checked_path(tensorboard)))
    return curves
