"""Where a training curve is written: one JSON object a line, or TensorBoard."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from anyorder.errors import UserError


class Curve(ABC):
    """Takes one point per validation."""

    @abstractmethod
    def point(self, run: str, step: int, numbers: Mapping[str, float]) -> None:
        """Note these numbers of ``run`` at ``step``."""


class JsonLines(Curve):
    """Appends to a ``.jsonl`` file; every line is whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def point(self, run: str, step: int, numbers: Mapping[str, float]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"run": run, "step": step, **numbers}) + "\n")


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
