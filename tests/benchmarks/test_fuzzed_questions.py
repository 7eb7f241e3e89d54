"""A quick share of the fuzzed questions of ``benchmarks/reliability/questions.py``, and a short soak."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "reliability"))
from questions import FAMILIES, Case, check_reply, judge, make_models
from soak import trend


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models")
    make_models(made)
    return made


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "typed, huge"])
def test_questions_are_answered_or_refused(folder: Path, family: str) -> None:
    for number in range(12):
        outcome, _ = judge(folder, Case(1, number, family))
        assert outcome in ("answered", "refused"), (family, number)


def test_a_wrong_answer_is_noticed() -> None:
    for wrong in (float("nan"), 1.5, -0.1):
        with pytest.raises(AssertionError):
            check_reply(wrong, "P(price > 3)")
    check_reply(0.5, "P(price > 3)")


def test_a_leak_is_noticed() -> None:
    slope, spread = trend([(1000 * step, 400 + 0.1 * step) for step in range(100)])
    assert slope == pytest.approx(10.0)
    assert spread == pytest.approx(0.0, abs=1e-6)
    assert trend([(1000 * step, 400 - 50 * (step < 10)) for step in range(100)])[0] == pytest.approx(0.0, abs=1e-6)
