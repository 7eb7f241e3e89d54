"""Run every benchmark script with ``--smoke`` and print the seconds of each: none may rot unseen.

python benchmarks/smoke.py [NAMES ...]    (two minutes on two cores)
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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


def main() -> None:
    names = sys.argv[1:]
    chosen = [script for script in scripts() if not names or str(script.relative_to(HERE)) in names]
    failed = []

    def one(script: Path) -> None:
        name, began = str(script.relative_to(HERE)), time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            done = run(script, Path(folder) / "results.json")
        print(f"{time.perf_counter() - began:6.1f} s  {name}" + ("" if not done.returncode else "  FAILED"), flush=True)
        if done.returncode:
            failed.append(f"{name}\n{done.stderr}")

    began = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(one, chosen))
    print(f"{time.perf_counter() - began:6.1f} s  all {len(chosen)}")
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
