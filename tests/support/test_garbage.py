"""A process that is one command collects garbage seldom; a caller of the command line keeps its own collector."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from anyorder import cli
from anyorder.support.garbage import SELDOM

PROCESS = """
import atexit, gc, sys
from anyorder import cli
sys.argv = ["anyorder", "--version"]
atexit.register(lambda: print(gc.get_freeze_count() > 1000))  # run after those that were registered later
assert cli.main() == 0
print(*gc.get_threshold(), gc.get_freeze_count())
"""


def test_a_process_that_is_one_command() -> None:
    said = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True, check=True).stdout
    _, within, after = said.splitlines()
    assert tuple(map(int, within.split())) == (*SELDOM, 0)  # cycles are still found while it works
    assert after == "True"


def test_a_caller_keeps_its_own_collector(capsys: pytest.CaptureFixture[str]) -> None:
    before = gc.get_threshold()
    assert cli.main(["--version"]) == 0
    assert gc.get_threshold() == before and before != SELDOM and gc.get_freeze_count() == 0
