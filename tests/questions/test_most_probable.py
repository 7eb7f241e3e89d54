"""The most probable completion, against every completion there is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.model.likelihood import log_prob
from anyorder.protocols import Canonical
from anyorder.query import Query
from anyorder.questions import most_probable as search
from anyorder.questions.conditional import Conditional

from models import LEVELS, categorical_model, class_and_number_model, gaussian_model, joint_table_model
from range_oracles import COVARIANCE, MEAN, SCALE


@pytest.fixture(scope="module")
def levels() -> AnyOrderModel:
    return categorical_model({"name": "residual_mlp", "width": 16, "blocks": 1, "expert": False}, Canonical(), steps=40)


def enumerated(model: AnyOrderModel, given: dict[str, str], asked: str) -> tuple[dict[str, str], float]:
    names = model.schema.names
    rows = torch.tensor(list(itertools.product(*(range(count) for count in LEVELS)))).float()
    for name, value in given.items():
        rows = rows[rows[:, names.index(name)] == float(value)]
    evidence = torch.tensor([[name in given for name in names]]).expand(len(rows), -1)
    wanted = torch.tensor([[name in asked for name in names]]).expand(len(rows), -1)
    nats = log_prob(model, rows, Query(evidence, wanted))
    best = int(nats.argmax())
    return {name: str(int(rows[best, names.index(name)])) for name in asked}, float(nats[best])


@pytest.mark.parametrize(("given", "asked"), [({}, "abcd"), ({"b": "1"}, "acd"), ({"d": "2"}, "ab"), ({"a": "0"}, "d")])
@pytest.mark.parametrize("width", [4096, 1])
def test_levels_are_searched_to_the_end(
    levels: AnyOrderModel, given: dict[str, str], asked: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "WIDEST", width)
    monkeypatch.setattr(search, "NARROW", 1)
    found = Conditional(levels, given).most_probable(*asked)
    row, nats = enumerated(levels, given, asked)
    if found.exact:
        assert found.row == row and found.log_prob == pytest.approx(nats, abs=1e-4)
    assert found.log_prob == pytest.approx(Conditional(levels, given).log_prob(found.row, orders=1), abs=1e-4)
    assert found.log_prob <= nats + 1e-4 and (found.exact or width == 1)


def test_the_best_together_is_not_the_best_of_each() -> None:
    table = np.array([[0.0, 0.3, 0.3], [0.4, 0.0, 0.0]])
    model = joint_table_model(table + 1e-9, "ab")
    found = Conditional(model).most_probable()
    assert found.row == {"a": "1", "b": "0"} and found.exact
    assert Conditional(model)["a"].mode() == "0"


def test_numbers_come_close_to_the_mode_of_the_normal() -> None:
    model = gaussian_model(MEAN, COVARIANCE, scale=SCALE)
    found = Conditional(model, {"v0": 1.0}).most_probable()
    gain = COVARIANCE[1:, 0] / COVARIANCE[0, 0]
    mode = SCALE * (MEAN[1:] + gain * (1.0 / SCALE - MEAN[0]))
    spread = SCALE * np.sqrt(np.diagonal(COVARIANCE)[1:])
    assert not found.exact
    assert np.abs((np.array(list(found.row.values())) - mode) / spread).max() < 0.15
    top = Conditional(model, {"v0": 1.0}).log_prob({f"v{i + 1}": value for i, value in enumerate(mode)})
    assert top - 0.05 < found.log_prob <= top + 1e-6


def test_levels_and_numbers_together() -> None:
    """p(kind) N(x; mean of kind): the narrow class wins by its density."""
    found = Conditional(class_and_number_model()).most_probable()
    assert found.row["kind"] == "a" and found.row["x"] == pytest.approx(-1.0, abs=0.1) and not found.exact


def test_ranges_are_kept_to_and_mistakes_refused(levels: AnyOrderModel) -> None:
    for level in "12":
        asked = Conditional(levels, {"b": f"{{{level}}}", "d": "{0, 3}"}).most_probable("d")
        assert asked.row["d"] in ("0", "3")
    with pytest.raises(UserError, match="given as a range"):
        Conditional(levels, {"d": "{0, 3}"}).most_probable("a")
    with pytest.raises(UserError, match="is given"):
        Conditional(levels, {"a": "1"}).most_probable("a")
    with pytest.raises(UserError, match="nothing is left"):
        Conditional(levels, dict.fromkeys("abcd", "1")).most_probable()
