"""A dozen kills: what the long attack of ``benchmarks/reliability/kills.py`` does, in seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "reliability"))
from kills import COMMANDS, Arena, Case, Finding, Reference

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
    assert sum(row["old whole"] + row["new whole"] for row in rows) >= 12


def test_an_old_file_after_success_is_a_fault(tmp_path: Path) -> None:
    arena, command = Arena(tmp_path), COMMANDS["fill"]
    arena.disk.mkdir()
    arena.references["fill"] = Reference(1.0, 1, 1, "digest", set())
    arena.old["fill"] = b"old"
    out = tmp_path / command.out
    out.write_bytes(b"old")
    case = Case(0, command, "SIGTERM", "normal", 0.5, None, False, 0.5)
    done, refused = Finding(), Finding()
    arena.look_at(out, case, 0, done)
    arena.look_at(out, case, 2, refused)
    assert done.faults and not done.old_whole
    assert refused.old_whole and not refused.faults


def test_parts_are_seen_wherever_a_command_writes(tmp_path: Path) -> None:
    arena = Arena(tmp_path)
    wanted = {"here.part", "disk/run/.a.part", "temporary/anyorder-x/m.part"}
    for name in (*wanted, "disk/out.csv", "said"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert arena.parts() == wanted
    assert "disk/out.csv" in arena.listing() and "said" not in arena.listing()
