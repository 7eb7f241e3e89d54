"""Interviews: the logic by itself, and the command in a real terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.cli.sparkline import spark
from anyorder.errors import UserError
from anyorder.tasks.acquisition.interview import Interview, Setup, resumed


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    age = rng.normal(50, 12, 500).round()
    smokes = np.where(rng.random(500) < 0.4, "yes", "no")
    dose = rng.normal(size=500)
    risk = 0.1 * age + 2.0 * (smokes == "yes") + 0.3 * rng.normal(size=500)
    frame = pd.DataFrame({"age": age, "smokes": smokes, "dose": dose, "risk": risk})
    path = tmp_path_factory.mktemp("interview") / "risk.anyorder"
    network = {"name": "residual_mlp", "width": 48, "blocks": 1}
    config = {"training": {"steps": 300}, "network": network, "encoding": "standard"}
    ao.fit(frame, engine="neural", config=config).save(path)
    return path


@pytest.fixture
def session(model_file: Path) -> Interview:
    model = ao.load(model_file)
    assert isinstance(model, ao.TableModel)
    return Interview(model.core, Setup(about=("risk",)), draws=64)


def test_answers_narrow_the_posterior_and_undo_brings_it_back(session: Interview) -> None:
    before = float(session.posterior()["risk"].std())
    first = session.next().best
    assert first in ("age", "smokes")
    session.answer("age", {"age": "60"})
    session.answer("smokes", {"smokes": "yes"})
    assert float(session.posterior()["risk"].std()) < 0.6 * before
    session.undo()
    session.undo()
    assert session.undo() is None
    assert float(session.posterior()["risk"].std()) == before


def test_skipped_questions_come_back_once_and_unknown_ones_never(session: Interview) -> None:
    first = str(session.next().best)
    session.skip(first)
    second = session.next().best
    assert second not in (first, None)
    session.unknown(str(second))
    assert session.next().best == first
    session.skip(first)
    assert session.next().best is None


def test_transcripts_resume_exactly(session: Interview, tmp_path: Path, model_file: Path) -> None:
    session.setup = Setup(about=("risk",), budget=3.0, costs={"age": 1.5, "smokes": 0.5, "dose": 1.0})
    session.tell({"dose": "0.5"})
    session.answer("age", {"age": "41"})
    session.skip("smokes")
    path = tmp_path / "talk.json"
    session.save(path)
    again = resumed(path, session.model, Setup(), draws=64)  # by its own setup
    assert again.setup == session.setup
    assert again.turns == session.turns
    assert again.left == 1.5
    assert again.next().to_json() == session.next().to_json()
    for other in (Setup(about=("age",)), Setup(budget=4.0), Setup(reward="error")):
        with pytest.raises(UserError, match="leave the option out"):
            resumed(path, session.model, other)
    facts = json.loads(path.read_text())
    for damage in (
        "not json",
        json.dumps({"format": "x"}),
        json.dumps({**facts, "turns": [{"name": 3}]}),
        json.dumps({**facts, "variables": ["age"]}),
        json.dumps({**facts, "setup": {"about": ["risk"]}}),
    ):
        path.write_text(damage)
        with pytest.raises(UserError):
            resumed(path, session.model, Setup())


def test_wrong_answers_are_refused_and_strange_ones_remarked(session: Interview) -> None:
    with pytest.raises(UserError, match="smokes"):
        session.check({"smokes": "perhaps"})
    with pytest.raises(UserError):
        session.check({"age": "old"})
    assert session.strange("age", "50") is None
    assert "outside" in str(session.strange("age", "1000"))
    with pytest.raises(UserError, match="what this interview is about"):
        session.tell({"risk": "3"})
    assert not session.turns
    session.setup = Setup(about=("risk",), look_ahead=2)
    with pytest.raises(UserError, match="exact values"):
        session.answer("age", {"age": "30..40"})
    assert not session.turns


def test_a_range_narrows_too(session: Interview) -> None:
    session.setup = Setup(about=("risk",), candidates=("age", "smokes"))
    before = float(session.posterior()["risk"].std())
    session.answer("age", {"age": "60..65"})
    assert float(session.posterior()["risk"].std()) < before
    assert session.next().best == "smokes"


def test_a_group_is_paid_for_once(model_file: Path) -> None:
    model = ao.load(model_file)
    assert isinstance(model, ao.TableModel)
    setup = Setup(about=("risk",), groups={"visit": ["age", "smokes"]}, costs={"visit": 2.0, "dose": 0.1}, budget=2.1)
    session = Interview(model.core, setup, draws=64)
    session.answer("visit", {"age": "60"})
    session.skip("visit")
    assert session.columns("visit") == ["smokes"]
    session.answer("visit", {"smokes": "yes"})
    assert session.spent == 2.0
    assert session.left == pytest.approx(0.1)
    assert session.measurements.within(session.left, "dose")  # though 2.1 - 2.0 is less than 0.1 in floating point


def test_a_line_of_blocks() -> None:
    assert spark([0, 1, 2, 0.01]) == " ▄█▁"
    assert spark([0.0, 0.0]) == "  "


class Terminal:
    """The command in a pseudo-terminal, as a person would use it."""

    def __init__(self, *words: str) -> None:
        self.master, slave = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "anyorder", "interview", *words]
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
        )
        os.close(slave)
        self.seen = ""

    def until(self, text: str, patience: float = 90.0) -> str:
        """Read until ``text`` appears; gives what came since the last call."""
        deadline = time.monotonic() + patience
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{text!r} did not come; there was: {self.seen[-500:]}"
            try:
                more = os.read(self.master, 4096)
            except OSError:  # the other side is closed
                more = b""
            assert more, f"ended before {text!r}; there was: {self.seen[-500:]}"
            self.seen += more.decode()
        found, _, self.seen = self.seen.partition(text)
        return found + text

    def say(self, line: str) -> None:
        os.write(self.master, (line + "\n").encode())

    def ended(self) -> int:
        return self.process.wait(timeout=60)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)


def test_an_interview_in_a_terminal(model_file: Path, tmp_path: Path) -> None:
    talk = tmp_path / "talk.json"
    kept = [str(model_file), "--transcript", str(talk), "--draws", "64"]
    options = [*kept, "--about", "risk", "--least", "0.05"]
    with Terminal(*options) as terminal:
        terminal.until("age: ")
        terminal.say("old")
        terminal.until("'old'")
        terminal.until("age: ")
        terminal.say("5000")
        terminal.until("keep it? [y/N] ")
        terminal.say("n")
        terminal.until("age: ")
        terminal.say("why")
        terminal.until("ask for")
        terminal.until("age: ")
        terminal.say("60")
        terminal.until("smokes (no / yes): ")
        terminal.say("perhaps")
        assert "perhaps" in terminal.until("smokes (no / yes): ").partition("\n")[2]  # not only the echo
        terminal.say("skip")
        terminal.until("smokes (no / yes): ")  # dose is not worth a question, so it comes back
        terminal.say("undo")
        terminal.until("forgotten: smokes (skipped)")
        terminal.until("smokes (no / yes): ")
        terminal.say("tell dose=nothing")
        terminal.until("smokes (no / yes): ")
        terminal.say("tell dose=0.2")
        terminal.until("smokes (no / yes): ")
        terminal.say("quit")
        terminal.until("known: age=60, dose=0.2")
        assert terminal.ended() == 0
    turns = json.loads(talk.read_text())["turns"]
    assert turns == [
        {"name": "age", "outcome": "answered", "told": {"age": "60"}},
        {"name": "", "outcome": "told", "told": {"dose": "0.2"}},
    ]

    with Terminal(*options) as again:
        assert "exists" in again.until("--resume")
        assert again.ended() == 2

    with Terminal(*kept, "--resume") as resumed_:  # what it is about and its rules are in the transcript
        resumed_.until("resumed after 2 turns: age=60, dose=0.2")
        resumed_.until("smokes (no / yes): ")
        resumed_.say("yes")
        resumed_.until("stop: nothing is left to ask for")
        resumed_.say("undo")
        resumed_.until("smokes (no / yes): ")
        resumed_.say("unknown")
        resumed_.until("stop: nothing is left to ask for")
        resumed_.say("")
        resumed_.until("known: age=60, dose=0.2")
        assert resumed_.ended() == 0
    assert [turn["outcome"] for turn in json.loads(talk.read_text())["turns"]] == ["answered", "told", "unknown"]


def test_groups_and_costs_in_a_terminal(model_file: Path, tmp_path: Path) -> None:
    costs = tmp_path / "costs.csv"
    costs.write_text("name,cost\nvisit,2\ndose,1\n")
    words = ["--about", "risk", "--group", "visit=age, smokes", "--costs", str(costs), "--budget", "2.5"]
    with Terminal(str(model_file), *words, "--draws", "64") as terminal:
        assert "costs 2 of 2.5 left" in terminal.until("age: ")
        terminal.say("60")
        terminal.until("smokes (no / yes): ")
        terminal.say("undo")  # within a group: the answer just given
        terminal.until("age: ")
        terminal.say("unknown")  # of this column only
        terminal.until("smokes (no / yes): ")
        terminal.say("undo")
        terminal.until("age: ")
        terminal.say("61")
        terminal.until("smokes (no / yes): ")
        terminal.say("yes")
        terminal.until("stop: the budget that is left, 0.5, pays for nothing")
        terminal.say("")
        terminal.until("known: age=61, smokes=yes")
        terminal.until("spent: 2")
        assert terminal.ended() == 0


def test_one_column_of_a_group_may_be_unknown(model_file: Path, tmp_path: Path) -> None:
    talk = tmp_path / "talk.json"
    words = ["--about", "risk", "--group", "visit=age, smokes", "--least", "0.05", "--transcript", str(talk)]
    with Terminal(str(model_file), *words, "--draws", "64") as terminal:
        terminal.until("age: ")
        terminal.say("unknown")
        terminal.until("smokes (no / yes): ")
        terminal.say("yes")
        terminal.until("stop: ")
        terminal.say("hello")
        terminal.until("'hello' answers nothing")
        terminal.say("")
        terminal.until("known: smokes=yes")
        assert terminal.ended() == 0
    turns = json.loads(talk.read_text())["turns"]
    assert [(turn["name"], turn["outcome"]) for turn in turns] == [("visit", "answered"), ("visit", "unknown")]


def test_the_end_of_input_stops_an_interview(model_file: Path) -> None:
    command = [sys.executable, "-m", "anyorder", "interview", str(model_file), "--about", "risk", "--given", "age=40"]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0
    assert "known: age=40" in done.stdout
