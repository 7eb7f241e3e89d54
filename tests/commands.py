"""Running a command within a test: what it wrote, and the one line of a mistake."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from anyorder import cli


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> SimpleNamespace:
    got = cli.main(list(arguments))
    out, err = capsys.readouterr()
    assert got == status, err
    return SimpleNamespace(out=out, err=err)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a user's mistake."""
    result = run(capsys, *arguments, status=2)
    assert result.out == ""
    assert result.err.startswith("anyorder: ")
    assert result.err.count("\n") == 1
    return str(result.err)


def refused_late(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The last line of a mistake that came after remarks."""
    return str(run(capsys, *arguments, status=2).err.splitlines()[-1])
