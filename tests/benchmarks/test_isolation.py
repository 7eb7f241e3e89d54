"""Every way in which a case can end is told from the others, and the cases after it are still run."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "reliability"))
from isolation import CRASHED, FAILED, HUNG, MEMORY, Limits, verdicts

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from Linux's /proc")


KEPT_BYTES: list[bytes] = []


def work(case: str) -> tuple[str, str]:
    if case == "abort":
        os.abort()
    if case == "sleep":
        time.sleep(60)
    if case == "fill":
        return "done", str(len(b"1" * 100_000_000))
    if case == "keep":
        KEPT_BYTES.append(b"1" * 400_000_000)
        return "done", str(os.getpid())
    if case == "who":
        return "done", str(os.getpid())
    if case == "raise":
        raise KeyError("what was raised")
    return "done", ""


def test_faults_are_told_apart() -> None:
    cases = ["abort", "plain", "sleep", "fill", "raise", "last"]
    found = {one.case: one for one in verdicts(work, cases, Limits(seconds=2, megabytes=50), workers=1)}
    assert {case: one.outcome for case, one in found.items()} == {
        "abort": CRASHED,
        "plain": "done",
        "sleep": HUNG,
        "fill": MEMORY,
        "raise": FAILED,
        "last": "done",
    }
    assert "SIGABRT" in found["abort"].detail
    assert "what was raised" in found["raise"].detail
    assert found["fill"].megabytes >= 90


def test_no_case_is_begun_after_the_minutes() -> None:
    assert len(list(verdicts(work, ["plain"] * 50, workers=1, minutes=0.0))) == 1


def test_a_worker_that_keeps_memory_is_replaced() -> None:
    first, second, third, fourth = verdicts(work, ["who", "keep", "who", "who"], workers=1)
    assert first.detail == second.detail != third.detail == fourth.detail
