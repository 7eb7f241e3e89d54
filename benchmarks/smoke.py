"""Run every benchmark script with ``--smoke`` and print the seconds of each: none may rot unseen.

python benchmarks/smoke.py [NAMES ...]    (two minutes on two cores)
"""

from __future__ import annotations

import json as json_format
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from common import NOT_RUN

HERE = Path(__file__).resolve().parent
TIMEOUT = 240
WARM = ["torch", "lightgbm", "matplotlib.pyplot", "sklearn.model_selection", "rich.table", "typer", "anyorder.sklearn"]


def scripts() -> list[Path]:
    """All files that are run as scripts, but this one and the runners that benchmarks/peers starts by itself."""
    found = (path for path in sorted(HERE.rglob("*.py")) if path.parent.name != "runners" and path != Path(__file__))
    return [path for path in found if '__name__ == "__main__"' in path.read_text(encoding="utf-8")]


@cache
def warm() -> Any:
    """Processes that begin as copies of one which has imported what most scripts need: seconds saved for each."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(WARM)
    return context


def as_script(script: Path, arguments: list[str], environment: dict[str, str], out: str, error: str) -> None:
    """Be ``python script arguments``, in a process of its own; what is printed goes into two files."""
    for stream, path in ((sys.stdout, out), (sys.stderr, error)):
        with open(path, "wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


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
    arguments = ["--smoke", "--json", str(json)]
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("out", "error")]
        process = warm().Process(target=as_script, args=(script, arguments, environment, *map(str, streams)))
        process.start()
        process.join(TIMEOUT)
        if process.is_alive():
            process.kill()
            process.join()
        said = [path.read_text(encoding="utf-8") if path.exists() else "" for path in streams]
    return subprocess.CompletedProcess([str(script), *arguments], process.exitcode, *said)


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
