"""Transcripts made on purpose: refused by the file and the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anyorder.errors import UserError
from anyorder.tasks.acquisition import interview
from anyorder.tasks.acquisition.interview import Interview, Setup, resumed

from models import gaussian_model

MODEL = gaussian_model(np.zeros(3), np.eye(3) + 0.3)


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    session = Interview(MODEL, Setup(about=("v0",)), draws=16)
    session.answer("v1", {"v1": "0.5"})
    session.save(tmp_path / "case.json")
    assert resumed(tmp_path / "case.json", MODEL, Setup()).known == {"v1": "0.5"}
    return tmp_path / "case.json"


@pytest.mark.parametrize(
    "section, name, value, problem",
    [
        ("setup", "about", 3, "setup: "),
        ("setup", "about", ["nothing"], "setup: no variable 'nothing'"),
        ("setup", "groups", [1], "setup: "),
        ("setup", "groups", {"g": [["v1"]]}, "setup: "),
        ("setup", "costs", {"v1": 10**400}, "setup: "),
        ("setup", "costs", "free", "setup: "),
        ("setup", "budget", "much", "setup: budget must be"),
        ("setup", "price", [], "setup: price and least"),
        ("setup", "look_ahead", 10**9, "setup: look_ahead must be 1 or 2"),
        ("turns", 0, [], "turns.0: "),
        ("turns", 0, {"name": "v9", "outcome": "answered", "told": {}}, "turns.0: 'v9' cannot be measured"),
        ("turns", 0, {"name": "v1", "outcome": "answered", "told": {"v1": "high"}}, "turns.0: "),
        ("turns", 0, {"name": "v1", "outcome": ["answered"], "told": {"v1": "1"}}, "turns.0: "),
    ],
)
def test_the_field_is_named(transcript: Path, section: str, name: Any, value: Any, problem: str) -> None:
    facts = json.loads(transcript.read_text())
    facts[section][name] = value
    transcript.write_text(json.dumps(facts))
    with pytest.raises(UserError, match=problem) as error:
        resumed(transcript, MODEL, Setup())
    assert str(transcript) in str(error.value)


@pytest.mark.parametrize(
    "content, problem",
    [
        (b"[" * 100_000, "nested"),
        (b'{"format": "anyorder interview 1", "format": 3}', "twice"),
        (b"\xff\xfe", "cannot be read"),
        (b"", "no JSON"),
        (b"3", "no transcript"),
    ],
)
def test_other_files_are_refused(transcript: Path, content: bytes, problem: str) -> None:
    transcript.write_bytes(content)
    with pytest.raises(UserError, match=problem):
        resumed(transcript, MODEL, Setup())


def test_a_long_file_is_not_read(transcript: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interview, "LONGEST_TRANSCRIPT", 100)
    with pytest.raises(UserError, match="longer than 100 bytes"):
        resumed(transcript, MODEL, Setup())
