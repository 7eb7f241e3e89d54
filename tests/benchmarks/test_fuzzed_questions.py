"""A quick share of the fuzzed questions of ``benchmarks/reliability/questions.py``, and a short soak."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "reliability"))
import anyorder as ao

from questions import FAMILIES, Case, check_draws, check_reply, judge, make_models
from soak import bits, trend


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models")
    make_models(made)
    return made


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "typed, huge"])
def test_questions_are_answered_or_refused(folder: Path, family: str) -> None:
    outcomes = [judge(folder, Case(1, number, family))[0] for number in range(12)]
    assert set(outcomes) <= {"answered", "refused"}
    assert outcomes.count("answered") >= 2  # else nothing is asked of the answers


def test_a_wrong_answer_is_noticed() -> None:
    for wrong in (float("nan"), 1.5, -0.1):
        with pytest.raises(AssertionError):
            check_reply(wrong, "P(price > 3)")
    check_reply(0.5, "P(price > 3)")


def test_draws_outside_of_what_is_known_are_noticed() -> None:
    drawn = pd.DataFrame({"rooms": [2, 3], "größe": ["S", "M"]})
    for known in (2, ao.OneOf(2, 6), ao.Between(2, 3, high_open=True), ao.Between(3, 6)):
        with pytest.raises(AssertionError, match="drew rooms"):
            check_draws(drawn, {"rooms": known}, "")
    with pytest.raises(AssertionError, match="drew größe"):
        check_draws(drawn, {"größe": ao.Between("M", "L")}, "")
    with pytest.raises(AssertionError, match="an empty cell"):
        check_draws(drawn.assign(rooms=[2, None]), {}, "")
    check_draws(drawn, {"rooms": ao.Between(2, 3), "größe": ao.OneOf("S", "M")}, "")


def test_answers_are_compared_to_the_last_bit() -> None:
    assert bits(pd.DataFrame({"a": [0.1 + 0.2]})) != bits(pd.DataFrame({"a": [0.3]}))
    assert bits(pd.DataFrame({"a": [0.3], "b": ["x"]})) == bits(pd.DataFrame({"a": [0.3], "b": ["x"]}))


def test_a_leak_is_noticed() -> None:
    slope, spread = trend([(1000 * step, 400 + 0.1 * step) for step in range(100)])
    assert slope == pytest.approx(10.0)
    assert spread == pytest.approx(0.0, abs=1e-6)
    assert trend([(1000 * step, 400 - 50 * (step < 10)) for step in range(100)])[0] == pytest.approx(0.0, abs=1e-6)
