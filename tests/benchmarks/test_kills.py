"""A dozen kills: what the long attack of ``benchmarks/reliability/kills.py`` does, in seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "reliability" / "kills.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes of Unix")
def test_a_dozen_kills_leave_old_or_new_files_and_runs_that_resume(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    command = [sys.executable, str(SCRIPT), "--count", "12", "--commands", "save,fill,resume", "--json", str(results)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(results.read_text(encoding="utf-8"))
    assert found["kills"] == 12 and found["failed"] == 0
    rows = found["rows"]
    assert {row["signal"] for row in rows} == {"SIGKILL", "SIGTERM", "SIGINT"}
    assert (
        sum(row["resumed equal"] for row in rows) >= 3
        and sum(row["old whole"] + row["new whole"] for row in rows) >= 12
    )
