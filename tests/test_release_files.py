"""Model files of every release load, and answer as they did when they were saved."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import anyorder as ao

import release

FILES = Path(__file__).resolve().parent / "files"
SAVED = sorted(FILES.glob("v*/*.anyorder"))


def agree(answer: Any, then: Any, where: str) -> None:
    """Words and whole numbers to the letter, numbers up to what another processor's rounding may change."""
    if isinstance(then, dict):
        assert list(answer) == list(then), where
        for name in then:
            agree(answer[name], then[name], f"{where}/{name}")
    elif isinstance(then, list):
        assert len(answer) == len(then), where
        for index, (one, other) in enumerate(zip(answer, then, strict=True)):
            agree(one, other, f"{where}[{index}]")
    elif isinstance(then, float):
        same = (math.isnan(answer) and math.isnan(then)) or math.isclose(answer, then, rel_tol=1e-4, abs_tol=1e-4)
        assert same, f"{where}: {answer} now, {then} then"
    else:
        assert answer == then, f"{where}: {answer!r} now, {then!r} then"


def test_there_are_files_of_every_release() -> None:
    assert {path.stem for path in SAVED if path.parent.name == "v1"} == set(release.MODELS)


def test_they_are_small() -> None:
    for folder in {path.parent for path in SAVED}:
        assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000


@pytest.mark.parametrize("path", SAVED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_old_models_answer_as_they_did(path: Path) -> None:
    then = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    agree(release.MODELS[path.stem][1](ao.load(path)), then, path.stem)


@pytest.mark.parametrize("path", SAVED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_saved_again_they_answer_bit_for_bit(path: Path, tmp_path: Path) -> None:
    model, ask = ao.load(path), release.MODELS[path.stem][1]
    model.save(tmp_path / path.name)
    again = ao.load(tmp_path / path.name)
    assert type(again) is type(model)
    assert json.dumps(ask(again)) == json.dumps(ask(model))


def test_a_changed_answer_is_seen() -> None:
    with pytest.raises(AssertionError, match=r"2\.0 then"):
        agree({"mean": [1.0]}, {"mean": [2.0]}, "model")
