"""What every benchmark shares: which machine it ran on, and results written whole or not at all."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import typer
from rich.console import Console
from rich.table import Table

from anyorder.support.atomic import atomic_path


def best_of(runs: int, work: Callable[[], object]) -> float:
    """Seconds of the quickest of some runs: what the machine can do when nothing else disturbs it."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def machine() -> dict[str, Any]:
    """Date, processor and versions: what a number needs beside it to mean something. No names, no paths."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def write_results(path: str | Path, payload: Mapping[str, Any]) -> None:
    """Write ``payload`` as JSON to ``path``: readers see the old file or the new one, never a half."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as beside:
        # NaN and infinity are not JSON: better to stop here than to write what others cannot read.
        beside.write_text(json.dumps(payload, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def print_rows(rows: Sequence[Mapping[str, Any]], width: int = 140) -> None:
    """The rows of a result as a table in the terminal, its columns named by the first one."""
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console(width=width).print(table)


def earlier(path: Path, options: Mapping[str, Any], key: str) -> Any:
    """What a result file holds under this key of its details, to go on with; {} if there is none yet.

    A file that was made with other options is refused: its figures do not belong beside new ones.
    """
    if not path.exists():
        return {}
    details = json.loads(path.read_text(encoding="utf-8"))["details"]
    if details["options"] != options:
        raise typer.BadParameter(f"{path} was made with {details['options']}: give the same, or another --json")
    return details[key]


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or "unknown"
