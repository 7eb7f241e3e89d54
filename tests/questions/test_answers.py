"""Several variables asked in one pass: what each of them would have been answered alone."""

from __future__ import annotations

from typing import Any

import pytest

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.questions.answer import Answer
from anyorder.questions.conditional import Conditional
from anyorder.questions.evidence import Between


def facts(answer: Answer) -> list[Any]:
    return list(answer.probs().values()) if answer.variable.levels else list(answer.quantile([0.1, 0.9]))


def check(model: AnyOrderModel, evidence: dict[str, Any]) -> None:
    known = Conditional(model, evidence)
    found = known.answers()
    assert list(found) == [one for one in model.schema.names if one not in evidence]
    for one, answer in found.items():
        assert facts(answer) == pytest.approx(facts(known[one]), rel=1e-6)


def test_all_are_answered_as_one_by_one(gaussian: AnyOrderModel, table: AnyOrderModel, bounded: AnyOrderModel) -> None:
    check(gaussian, {"v0": 1.0})
    check(table, {})
    check(bounded, {"other": 4.0})


def test_some_are_asked_for_by_name(gaussian: AnyOrderModel) -> None:
    known = Conditional(gaussian, {"v0": 1.0})
    assert list(known.answers("v1")) == ["v1"]
    assert list(known.asking("v1").answers()) == ["v1"]
    with pytest.raises(UserError, match="'v0' is given"):
        known.answers("v0")
    with pytest.raises(UserError, match="v9"):
        known.answers("v9")


def test_under_ranges_they_are_estimates_too(gaussian: AnyOrderModel) -> None:
    known = Conditional(gaussian, {"v0": Between(0, 1)}, draws=64)
    assert known.answers("v1")["v1"].mean().standard_error > 0
