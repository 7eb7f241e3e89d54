"""What passes between the comparison and the methods, as files: tables with holes one way, draws the other way.

One folder per table and mechanism holds ``train.csv`` and ``test.csv`` (what a method may see), ``truth.csv`` (the test
rows before hiding), ``hidden.npz`` (which cells were hidden) and ``columns.json`` (kinds and levels). A method answers
with one ``.npz`` of draws, [draws, test rows, columns], levels as their positions in ``columns.json``, and a ``.json``
of seconds. This file is read inside every environment, so it needs NumPy and pandas only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

DRAWS = int(os.environ.get("PEER_DRAWS", "20"))
SEED = 0
THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))
"""One budget for every method: the driver sets it."""


@dataclass
class Task:
    """One table with holes, as a method sees it; a list of filled frames goes back."""

    folder: Path
    answer: Path
    kinds: dict[str, str]
    levels: dict[str, list[str]]
    train: pd.DataFrame
    test: pd.DataFrame
    seconds: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def numeric(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind == "numeric"]

    @property
    def categorical(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind == "categorical"]

    def timed(self, phase: str, work: Callable[[], Any]) -> Any:
        """Do the work and note its seconds under ``phase`` (fit or fill), by the clock and by the processor."""
        began, processor = time.perf_counter(), time.process_time()
        result = work()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - began
        self.processor[phase] = self.processor.get(phase, 0.0) + time.process_time() - processor
        return result

    def coded(self, frame: pd.DataFrame) -> np.ndarray:
        """Numbers as they are, levels as positions, unknown cells as NaN."""
        columns = []
        for name in self.kinds:
            if name in self.levels:
                places = {level: place for place, level in enumerate(self.levels[name])}
                # Strictly by text: a level that came back changed must not pass for an unknown cell.
                cells = [np.nan if pd.isna(cell) else places[str(cell)] for cell in frame[name]]
                columns.append(np.array(cells, dtype=float))
            else:
                columns.append(frame[name].to_numpy(dtype=float))
        return np.column_stack(columns)

    def finish(self, draws: Sequence[np.ndarray]) -> None:
        """Write the draws (coded as above) and the seconds; the seconds come last and say that all is there."""
        self.answer.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(self.answer.with_suffix(".npz"), draws=np.stack(draws))
        about = {"seconds": self.seconds, "processor": self.processor, "threads": THREADS}
        about |= {"draws": len(draws), "notes": self.notes}
        self.answer.with_suffix(".json").write_text(json.dumps(about) + "\n", encoding="utf-8")


def task_from_arguments() -> tuple[Task, list[str]]:
    """``runner.py TABLE-FOLDER ANSWER [more ...]``: how the driver calls every runner."""
    folder, answer = Path(sys.argv[1]), Path(sys.argv[2])
    return read_task(folder, answer), sys.argv[3:]


def read_task(folder: Path, answer: Path) -> Task:
    columns = json.loads((folder / "columns.json").read_text(encoding="utf-8"))
    parts = (read_table(folder / f"{part}.csv", columns["kinds"]) for part in ("train", "test"))
    return Task(folder, answer, columns["kinds"], columns["levels"], *parts)


def read_table(path: Path, kinds: dict[str, str]) -> pd.DataFrame:
    """Numbers as float64, levels as Python texts with None for unknown: no guessing, whatever pandas is installed."""
    types = {name: "float64" if kind == "numeric" else "object" for name, kind in kinds.items()}
    frame = pd.read_csv(path, dtype=types, na_values=[""], keep_default_na=False)
    return frame.astype({name: "object" for name, kind in kinds.items() if kind == "categorical"})


def write_task(
    folder: Path, frame: pd.DataFrame, hidden: np.ndarray, train: np.ndarray, test: np.ndarray, columns: dict[str, Any]
) -> None:
    """Write one table with holes for all methods."""
    folder.mkdir(parents=True, exist_ok=True)
    seen = frame.mask(hidden)
    seen.iloc[train].to_csv(folder / "train.csv", index=False)
    seen.iloc[test].to_csv(folder / "test.csv", index=False)
    frame.iloc[test].to_csv(folder / "truth.csv", index=False)
    np.savez_compressed(folder / "hidden.npz", train=hidden[train], test=hidden[test], rows=test)
    (folder / "columns.json").write_text(json.dumps(columns) + "\n", encoding="utf-8")
