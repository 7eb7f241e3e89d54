"""Run every benchmark script with ``--smoke`` and print the seconds of each: none may rot unseen.

python benchmarks/smoke.py [NAMES ...]    (two minutes on two cores)
"""

from __future__ import annotations

import json as json_format
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import NOT_RUN

HERE = Path(__file__).resolve().parent
TIMEOUT = 240


def scripts() -> list[Path]:
    """All files that are run as scripts, but this one and the runners that benchmarks/peers starts by itself."""
    found = (path for path in sorted(HERE.rglob("*.py")) if path.parent.name != "runners" and path != Path(__file__))
    return [path for path in found if '__name__ == "__main__"' in path.read_text(encoding="utf-8")]


def run(script: Path, json: Path) -> subprocess.CompletedProcess[str]:
    """One script in a process of its own, without the folder of data and on one thread."""
    hidden = {"ANYORDER_DATA", "PEER_DRAWS"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "XDG_CACHE_HOME": str(json.parent),
    }
    command = [sys.executable, script, "--smoke", "--json", json]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False)


def timed(script: Path, json: Path) -> tuple[subprocess.CompletedProcess[str], float]:
    """With the processor's seconds, as far as the script wrote them down: the clock depends on who else is at work."""
    done = run(script, json)
    if not json.exists():
        return done, float("nan")
    return done, json_format.loads(json.read_text(encoding="utf-8"))["runs"][0]["processor_seconds"]


def main() -> None:
    names = sys.argv[1:]
    chosen = [script for script in scripts() if not names or str(script.relative_to(HERE)) in names]
    failed = []

    def one(script: Path) -> None:
        name, began = str(script.relative_to(HERE)), time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            done, used = timed(script, Path(folder) / "results.json")
        if not done.returncode and done.stdout.startswith(NOT_RUN):
            print(f"{done.stdout.strip()}  {name}", flush=True)
            return
        seconds = f"{time.perf_counter() - began:6.1f} s ({used:5.1f} of the processor)"
        print(f"{seconds}  {name}" + ("" if not done.returncode else "  FAILED"), flush=True)
        if done.returncode:
            failed.append(f"{name}\n{done.stderr}")

    began = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(one, chosen))
    print(f"{time.perf_counter() - began:6.1f} s  all {len(chosen)}", flush=True)
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
