"""What a newcomer types first: ``--version``, ``--help`` with its examples, ``doctor``, and TAB in the shell."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer

from anyorder import __version__, cli

from commands import refused, run

COMMANDS = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version").out == f"anyorder {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_has_two_examples_that_parse(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = run(capsys, name, "--help").out
    lines = re.findall(r"^ +(anyorder .*)$", shown.partition("Examples:")[2], flags=re.M)
    assert len(lines) >= 2
    assert max(map(len, shown.splitlines())) <= 100
    for line in lines:
        _, command, *words = shlex.split(line.partition(" > ")[0] if " > d" in line else line, comments=True)
        assert command == name
        COMMANDS[name].make_context(name, words)  # which raises where an option or argument is not one


def test_the_list_of_commands_has_whole_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    shown = run(capsys, "--help").out.partition("Commands:")[2]
    assert len(shown.split("\n")) > len(COMMANDS)
    assert "..." not in shown


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["predict", "m.anyorder", "t.csv"], "anyorder predict --help"),
        (["fit"], "anyorder fit --help"),
        (["fit", "--frobnicate"], "anyorder fit --help"),
        (["frobnicate"], "anyorder --help"),
    ],
)
def test_a_wrong_line_points_to_the_help_of_its_command(
    arguments: list[str], where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"(see {where})" in refused(capsys, *arguments)


def test_the_shell_completes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("_ANYORDER_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "anyorder ask house.anyorder --dr")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert run(capsys).out.split() == ["--draws"]
    monkeypatch.setenv("COMP_WORDS", "anyorder deco")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert run(capsys).out.split() == ["decompress"]


def test_the_doctor_fits_and_asks(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "doctor", "--json").out)
    assert found["self_test"]["result"] == "passed"
    assert found["versions"]["anyorder"] == __version__
    assert set(found["extras"]) >= {"plots", "parquet", "sklearn"}
    assert found["machine"]["cores"] >= 1


def test_the_doctor_says_what_failed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fault(*_: object, **__: object) -> None:
        raise OSError("no such library")

    monkeypatch.setattr("anyorder.modalities.load.load", fault)
    result = run(capsys, "doctor", status=1)
    assert "failed while loading" in result.out
    assert "OSError: no such library" in result.out


def test_the_doctor_knows_every_extra() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = importlib.import_module("anyorder.cli.doctor").EXTRAS  # the package's attribute is the command
    assert set(extras) == set(project["optional-dependencies"]) - {"all", "dev", "docs"}
