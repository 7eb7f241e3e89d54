"""The program itself: its exit status, interruptions, closed pipes, and ``--help``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from anyorder import cli

from commands import run


@pytest.fixture
def broken(model: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model file that makes the program fail."""

    def fault(path: Path) -> None:
        raise ZeroDivisionError("no luck")

    monkeypatch.setattr("anyorder.modalities.load.load", fault)
    return model


def test_interrupted(model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("anyorder.modalities.load.load", interrupt)
    assert run(capsys, "info", model, status=130).err == "anyorder: interrupted\n"


def test_our_own_faults_are_told_apart(
    broken: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ANYORDER_DEBUG", raising=False)
    short = run(capsys, "info", broken, status=1).err
    assert short.startswith("anyorder: internal error: ZeroDivisionError: no luck (please report")
    assert short.count("\n") == 1
    monkeypatch.setenv("ANYORDER_DEBUG", "1")
    assert "Traceback" in run(capsys, "info", broken, status=1).err


@pytest.mark.parametrize("take", [lambda: bytearray(1 << 62), lambda: torch.empty(1 << 57, dtype=torch.uint8)])
def test_too_little_memory_is_no_fault(
    take: Callable[[], object], model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("anyorder.modalities.load.load", lambda path: take())
    assert "more memory than there is" in run(capsys, "info", model, status=2).err


def test_a_closed_pipe_is_no_fault(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`anyorder sample ... | head -1`."""
    source, sink = os.pipe()
    os.close(source)
    with open(sink, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert cli.main(["sample", model, "-n", "20000"]) == 0
        monkeypatch.undo()


def test_help_and_module(tmp_path: Path) -> None:
    """``python -m anyorder`` is the same program, and its mistakes are one line there too."""
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}

    def shell(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "anyorder", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)

    shown = shell()
    assert shown.returncode == 0
    assert "fit" in shown.stdout
    wrong = shell("info", "nowhere.anyorder")
    assert wrong.returncode == 2
    assert wrong.stdout == ""
    assert wrong.stderr.startswith("anyorder: ")
    assert "Traceback" not in wrong.stderr
    assert wrong.stderr.count("\n") == 1
