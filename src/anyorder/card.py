"""The training card: how a model came to be, enough to repeat the run and to know what to expect of it."""

from __future__ import annotations

import hashlib
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pandas as pd

from anyorder.config import Config
from anyorder.train import Trainer


def make_card(
    winner: Trainer, trainers: list[Trainer], settings: Config, table: pd.DataFrame, arguments: dict[str, Any]
) -> dict[str, Any]:
    """The card as JSON-ready values."""
    progress = winner.progress
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in ("anyorder", "torch", "numpy", "pandas")},
        },
        "data": {
            "rows": len(table),
            "columns": [str(name) for name in table.columns],
            "fingerprint": fingerprint(table),
        },
        "arguments": arguments,
        "config": settings.to_json(),
        "chosen": winner.label,
        "training": {
            "steps": progress.step,
            "seconds": round(sum(trainer.progress.seconds for trainer in trainers), 2),
            "best_step": progress.best_step,
            "interrupted": any(trainer.progress.interrupted for trainer in trainers),
            "parameters": sum(parameter.numel() for parameter in winner.model.parameters()),
        },
        "scores": {
            "unit": "nats per cell, held-out rows, random queries",
            "held_out": progress.best,
            "candidates": {trainer.label: trainer.progress.best for trainer in trainers},
        },
    }


def fingerprint(table: pd.DataFrame) -> str:
    """A hash of the cells, to tell whether two models saw the same data."""
    digest = hashlib.sha256()
    for name in table.columns:
        column = table[name]
        try:
            hashed = pd.util.hash_pandas_object(column, index=False)
        except TypeError:
            hashed = pd.util.hash_pandas_object(column.astype(str), index=False)
        digest.update(str(name).encode())
        digest.update(hashed.to_numpy().tobytes())
    return digest.hexdigest()[:16]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
