"""Where a training curve is written: one JSON object a line, or TensorBoard."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from anyorder.errors import UserError
from anyorder.support.atomic import atomic_path


class Curve(ABC):
    """Takes one point per validation."""

    @abstractmethod
    def point(self, run: str, step: int, numbers: Mapping[str, float]) -> None:
        """Note these numbers of ``run`` at ``step``."""

    @abstractmethod
    def forget(self, run: str, after: int) -> None:
        """Drop what was noted of ``run`` beyond a step: a resumed run notes it again, a fresh one starts at 0."""


class JsonLines(Curve):
    """Appends to a ``.jsonl`` file; every line is whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def point(self, run: str, step: int, numbers: Mapping[str, float]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"run": run, "step": step, **numbers}) + "\n")

    def forget(self, run: str, after: int) -> None:
        if not self.path.exists():
            return
        try:
            points = [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]
            kept = [point for point in points if point["run"] != run or point["step"] <= after]
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{str(self.path)!r} exists and is no training curve; name another file") from error
        with atomic_path(self.path) as beside:
            beside.write_text("".join(json.dumps(point) + "\n" for point in kept), encoding="utf-8")


class TensorBoard(Curve):
    """Writes event files into a folder, one sub-folder per run (needs the extra ``tensorboard``)."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise UserError("curves for TensorBoard need it installed: pip install 'anyorder[tensorboard]'") from error
        self._open = SummaryWriter
        self._folder = folder
        self._writers: dict[str, SummaryWriter] = {}

    def point(self, run: str, step: int, numbers: Mapping[str, float]) -> None:
        if run not in self._writers:
            self._writers[run] = self._open(str(self._folder / run))
        for name, value in numbers.items():
            self._writers[run].add_scalar(name, value, step)
        self._writers[run].flush()

    def forget(self, run: str, after: int) -> None:
        if run in self._writers:
            self._writers.pop(run).close()
        # Event files are only added to; purge_step tells TensorBoard to leave out what older ones say beyond it.
        self._writers[run] = self._open(str(self._folder / run), purge_step=after)


def curves_to(log: str | Path | None, tensorboard: str | Path | None) -> list[Curve]:
    """The curves that a user asked for: a file of JSON lines, a folder for TensorBoard, both or none."""
    curves: list[Curve] = [] if log is None else [JsonLines(Path(log))]
    if tensorboard is not None:
        curves.append(TensorBoard(Path(tensorboard)))
    return curves
