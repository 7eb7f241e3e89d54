"""The prompt of ``anyorder ask MODEL``: completion, commands, and mistakes that are shown where they stand."""

from __future__ import annotations

import io
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

import anyorder as ao
from anyorder import cli
from anyorder.cli.completion import completions
from anyorder.cli.prompt import MARK, Prompt, history_file
from anyorder.questions.grammar import Question
from anyorder.variables.schema import Kind, Schema, Variable

from commands import refused, run

FILE = str(Path(__file__).parents[1] / "files" / "v1" / "table_trees.anyorder")
SCHEMA = Schema(
    (
        Variable("sepal length (cm)", Kind.CONTINUOUS),
        Variable("price", Kind.CONTINUOUS),
        Variable("a, b", Kind.CATEGORICAL, levels=("x", "y"), dtype="str"),
        Variable("colour", Kind.CATEGORICAL, levels=("red", "ruby, dark", "blue"), dtype="str"),
    )
)


@pytest.mark.parametrize(
    ("before", "options"),
    [
        ("pr", ["price"]),
        ("se", ["sepal length (cm)"]),
        ("sepal length (c", ["sepal length (cm)"]),
        ("P(pr", ["price"]),
        ("med", ["median("]),
        ("median[c", ["colour"]),
        ("price | c", ["colour"]),
        ("price | colour=r", ["red", '"ruby, dark"']),
        ("price | colour = ", ["red", '"ruby, dark"', "blue"]),
        ("price | colour != b", ["blue"]),
        ("price | colour={red, b", ["blue"]),
        ("price | colour={red, blue}, p", ["price"]),
        ("P(colour = red or b", ["blue"]),
        ("P(price < 3 or pri", ["price"]),
        ("P(price > se", ["sepal length (cm)"]),
        ("a", ['"a, b"']),
        ('price | "a, b"=', ["x", "y"]),
        ("he", ["help"]),
        ("price | he", []),
    ],
)
def test_completion(before: str, options: list[str]) -> None:
    start, found = completions(SCHEMA, before, ("help",))
    assert found == options
    assert not before[:start] or before[start - 1] in " ,|=<>({[!"


def test_everything_is_offered_at_the_beginning() -> None:
    _, found = completions(SCHEMA, "", ("help",))
    assert {"price", "P(", "E(", "median(", "mode(", "help"} <= set(found)


@pytest.fixture
def asked() -> list[Question]:
    return []


@pytest.fixture
def prompt(asked: list[Question]) -> Prompt:
    model = ao.load(FILE)
    assert isinstance(model, ao.TableModel)
    return Prompt(model, lambda text, read: asked.append(read) or (model.ask(text) and None))


@pytest.mark.parametrize(
    ("line", "under", "says"),
    [
        ("P(size >> 3)", "> 3)", "expected 'name'"),
        ("P(sise > 3)", "sise", "did you mean 'size'"),
        ("size | kind=ahs", "ahs", "did you mean 'ash'"),
        ("size, kind | count=many", "many", "many"),
        ("size | size=3", "size=3", "asked and given"),
        ("P(kind = ash or oak)", "ash or oak", "oak"),
    ],
)
def test_a_mistake_is_shown_where_it_stands(
    prompt: Prompt, line: str, under: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    prompt.turn(line)
    caret, message = capsys.readouterr().out.splitlines()
    assert caret.strip() == "^"
    assert line[len(caret) - len(MARK) - 1 :].startswith(under)
    assert says in message


def test_commands(prompt: Prompt, asked: list[Question], capsys: pytest.CaptureFixture[str]) -> None:
    prompt.turn("help")
    assert "what is asked | what is known" in capsys.readouterr().out
    prompt.turn("columns")
    shown = capsys.readouterr().out
    assert "ash, birch, cedar" in shown
    assert "rain" in shown
    prompt.turn("")
    assert capsys.readouterr().out == ""
    assert asked == []
    prompt.turn("size | kind=ash")
    assert asked == [Question(("size",), {}, {"kind": "ash"})]


def test_every_example_of_the_help_is_a_question() -> None:
    import re

    from anyorder.cli.prompt import HELP
    from anyorder.questions.grammar import parse_question

    for line in HELP.splitlines()[1:8]:
        for text in re.split(r" {2,}", line.strip())[:1]:
            parse_question(text)


def test_lines_on_standard_input_are_questions(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"E[size]\nmode(kind)\n"), encoding="utf-8"))
    found = json.loads(run(capsys, "ask", FILE, "--json").out)["answers"]
    assert [row["what"] for row in found] == ["mean of size", "mode of kind"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b""), encoding="utf-8"))
    assert "no questions" in refused(capsys, "ask", FILE)


def test_evidence_for_every_question(capsys: pytest.CaptureFixture[str]) -> None:
    plain = json.loads(run(capsys, "ask", FILE, "E[size | kind=ash]", "--json").out)
    given = json.loads(run(capsys, "ask", FILE, "E[size]", "--given", "kind=ash", "--json").out)
    assert given["means"] == plain["means"]
    own = json.loads(run(capsys, "ask", FILE, "E[size | kind=ash]", "--given", "kind=cedar", "--json").out)
    assert own["means"] == plain["means"]


def test_the_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "anyorder" / "history"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal(tmp_path: Path) -> None:
    import pty

    pytest.importorskip("readline")
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(cli.__file__).parents[2]),
        "XDG_STATE_HOME": str(tmp_path),
        "TERM": "dumb",
        "INPUTRC": os.devnull,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "anyorder", "ask", FILE], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    seen = ""

    def until(words: str, seconds: float = 60) -> None:
        nonlocal seen
        end = time.monotonic() + seconds
        while words not in seen:
            assert time.monotonic() < end, seen
            if select.select([ours], [], [], 0.2)[0]:
                seen += os.read(ours, 4096).decode()

    until(MARK)
    os.write(ours, b"E[siz\t | kind=bi\t]\n")
    until("E[size] =")
    seen = ""
    os.write(ours, b"P(size >> 3)\n")
    until("expected 'name'")
    seen = ""
    os.write(ours, b"quit\n")
    assert process.wait(60) == 0
    os.close(ours)
    assert (tmp_path / "anyorder" / "history").read_text().splitlines()[0] == "E[size | kind=birch]"
