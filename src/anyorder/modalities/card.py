"""The training card: how a model came to be, enough to repeat the run and to know what to expect of it."""

from __future__ import annotations

import hashlib
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pandas as pd

from anyorder.modalities.tables.engines import Fitted
from anyorder.modalities.tables.options import Config
from anyorder.training.loop import Trainer


def make_card(fitted: Fitted, settings: Config, table: pd.DataFrame, arguments: dict[str, Any]) -> dict[str, Any]:
    """The card as JSON-ready values."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "data": {
            "rows": len(table),
            "columns": [str(name) for name in table.columns],
            "fingerprint": fingerprint(table),
        },
        "arguments": arguments,
        "config": settings.to_json(),
        "chosen": fitted.chosen,
        "training": fitted.training,
        "scores": fitted.scores,
    }


def run_card(trainer: Trainer, seconds: float, scored: str, **facts: Any) -> dict[str, Any]:
    """The card of a single run (texts, pictures); ``facts`` are what the modality has to say, its name among them."""
    return {
        **facts,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "training": {
            "steps": trainer.progress.step,
            "best_step": trainer.progress.best_step,
            "interrupted": trainer.progress.interrupted,
            "seconds": round(seconds, 2),
            "parameters": sum(parameter.numel() for parameter in trainer.model.parameters()),
        },
        "scores": {"unit": scored, "held_out": trainer.progress.best},
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


def versions() -> dict[str, str]:
    """What was installed."""
    packages = ("anyorder", "torch", "numpy", "pandas", "lightgbm")
    return {"python": platform.python_version(), **{name: _version(name) for name in packages}}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
