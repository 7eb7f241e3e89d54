"""Every benchmark script runs with ``--smoke``, and its result file says how it was made."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from common import NOT_RUN
from smoke import HERE as BENCHMARKS
from smoke import run, scripts

SCRIPTS = {str(script.relative_to(BENCHMARKS)): script for script in scripts()}


def test_all_scripts_are_found() -> None:
    assert {"tables_small.py", "peers/run.py", "peers/plot.py", "pictures/fills.py", "acquisition/speed.py"} <= set(
        SCRIPTS
    )
    assert not any(name.startswith("peers/runners") or name in ("smoke.py", "common.py") for name in SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_says_what_it_times_and_how_it_is_run(name: str) -> None:
    text = SCRIPTS[name].read_text(encoding="utf-8")
    assert f"python benchmarks/{name}" in text.split('"""')[1]
    packages = re.search(r"^TIMES = \((.*)\)", text, re.M)
    assert packages
    for package in re.findall(r'"([^"]+)"', packages[1]):
        assert (BENCHMARKS.parent / "src" / "anyorder" / package).exists(), package
    # The record of a call is written in one place: no script composes it by hand.
    assert '"command":' not in text and "machine()" not in text


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_smoke_run_writes_results_and_their_record(name: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    done = run(SCRIPTS[name], path)
    assert done.returncode == 0, done.stderr[-3000:]
    if done.stdout.startswith(NOT_RUN):
        pytest.skip(done.stdout.strip())
    text = SCRIPTS[name].read_text(encoding="utf-8")
    if "beside(picture" in text or "beside(out" in text:
        assert list(tmp_path.rglob("*.png"))
    if "record.write(" not in text:
        return
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["title"] and content["about"] and "seed" in content
    (entry,) = content["runs"]
    assert entry["smoke"] and entry["seconds"] > 0 and entry["processor_seconds"] > 0
    assert entry["command"] == f"python benchmarks/{name} --smoke --json .../results.json"
    assert {"processor", "cores", "threads", "python", "torch", "anyorder"} <= set(entry["machine"])
    if (BENCHMARKS.parent / ".git").exists():
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=BENCHMARKS, capture_output=True, text=True, check=True)
        assert head.stdout.startswith(entry["commit"]) and isinstance(entry["uncommitted_changes"], bool)
