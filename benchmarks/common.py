"""What every benchmark shares: the record of a call beside its figures, files written whole, tables in the terminal."""

from __future__ import annotations

import json
import os
import platform
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from rich.console import Console
from rich.table import Table

import anyorder
from anyorder.support.atomic import atomic_path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
BEGAN = time.perf_counter()
NOT_RUN = "not run: "
"""What a smoke run prints before the reason where an extra that it needs is missing; it then ends with success."""

Smoke = Annotated[bool, typer.Option("--smoke", help="a few seconds on generated data: does the script still run?")]
Json = Annotated[Path | None, typer.Option(help="the result file", show_default=False)]


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that keep a core each, if they get one."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for one in others:
            one.kill()
            one.wait()


class Record:
    """One call of a script: writes its figures together with how they were made.

    Every result file has ``runs``, one entry for each call that put figures into it: commit, command, date, seconds
    and machine. A script that goes on with an earlier file (``--resume``) gives each new part :attr:`number`, the
    position of its call in ``runs``, so that it is known what came from which commit.
    """

    def __init__(self, json: Path | None, default: str | None = None, *, smoke: bool = False) -> None:
        """``default`` is a file of ``benchmarks/results``; without it and without ``json`` nothing is written."""
        self.smoke = smoke
        self.before: list[dict[str, Any]] = []
        # The state at the start is the one that runs, whatever is committed meanwhile.
        self.code = commit()
        if smoke:
            torch.set_num_threads(1)  # two that wait for each other take longer than one on a busy machine
        self._kept: tempfile.TemporaryDirectory[str] | None = None
        if smoke and json is None:
            self._kept = tempfile.TemporaryDirectory(prefix="anyorder-smoke-")
            json = Path(self._kept.name) / (default or "results.json")
        self.path = json or (RESULTS / default if default else None)

    @property
    def number(self) -> int:
        """Where this call stands in ``runs``."""
        return len(self.before)

    def beside(self, path: Path) -> Path:
        """Where a picture or a folder of models goes: there, or next to the results of a smoke run."""
        if not self.smoke:
            return path
        assert self.path is not None
        there = self.path.parent / path.name
        if not path.suffix:
            there.mkdir(parents=True, exist_ok=True)
        return there

    def earlier(self, options: Mapping[str, Any], key: str) -> Any:
        """What the file holds under this key of its details, to go on with; {} if there is no file yet.

        A file that was made with other options, or that does not say how it was made, is refused: its figures do not
        belong beside new ones.
        """
        if self.path is None or not self.path.exists():
            return {}
        content = json.loads(self.path.read_text(encoding="utf-8"))
        if "runs" not in content:
            raise typer.BadParameter(f"{self.path} does not say which calls made it: start afresh with another --json")
        details = content["details"]
        if details["options"] != options:
            raise typer.BadParameter(
                f"{self.path} was made with {details['options']}: give the same, or another --json"
            )
        self.before = content["runs"]
        return details[key]

    def write(self, payload: Mapping[str, Any]) -> None:
        """Write the figures and the record of the call; readers see the old file or the new one, never a half."""
        if self.path is None:
            return
        first = {name: payload[name] for name in ("title", "about") if name in payload}
        content = first | {"runs": [*self.before, self._entry()]} | dict(payload)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(self.path) as beside:
            # NaN and infinity are not JSON: better to stop here than to write what others cannot read.
            beside.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")

    def _entry(self) -> dict[str, Any]:
        return {
            **self.code,
            "command": command(),
            **({"smoke": True} if self.smoke else {}),
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "seconds": round(time.perf_counter() - BEGAN, 1),
            "processor_seconds": round(_processor_seconds(), 1),
            "machine": machine(),
        }


def commit() -> dict[str, Any]:
    """The commit of the code that runs, and whether that code was changed since; None outside of a checkout."""
    code = ["src", "benchmarks", ":!benchmarks/results"]
    try:
        head = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", *code)
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "uncommitted_changes": None}
    return {"commit": head[:12], "uncommitted_changes": bool(changed)}


def _git(*arguments: str) -> str:
    found = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def command() -> str:
    """The command as it was run, from the root of the project; of a path elsewhere only the last part."""
    return shlex.join(["python", *map(_shown, sys.argv)])


def _shown(argument: str) -> str:
    path = Path(argument)
    if not (path.is_absolute() or path.exists()):
        return argument
    path = path.resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else f".../{path.name}"


def machine() -> dict[str, Any]:
    """Processor and versions: what a number needs beside it to mean something. No names, no paths."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "pandas": pd.__version__,
        "anyorder": anyorder.__version__,
    }


def best_of(runs: int, work: Callable[[], object]) -> float:
    """Seconds of the quickest of some runs: what the machine can do when nothing else disturbs it."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def print_rows(rows: Sequence[Mapping[str, Any]], width: int = 140) -> None:
    """The rows of a result as a table in the terminal; columns in the order in which they first appear."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = Table(*names)
    for row in rows:
        table.add_row(*(str(row.get(name, "")) for name in names))
    Console(width=width).print(table)


def listed(text: str, allowed: Sequence[str], separator: str = ",") -> list[str]:
    """Names from an option; all of them if it is empty."""
    names = [name.strip() for name in text.split(separator) if name.strip()] or list(allowed)
    if unknown := [name for name in names if name not in allowed]:
        raise typer.BadParameter(f"unknown: {', '.join(unknown)}; there are {', '.join(allowed)}")
    return names


def _processor_seconds() -> float:
    """All threads and all children that have ended: unlike the clock, no matter what else ran at the time."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or "unknown"
