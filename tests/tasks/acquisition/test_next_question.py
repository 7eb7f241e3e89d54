"""Which question to ask next: rankings, costs, budgets, several at once, two steps ahead, and when to stop."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.errors import UserError
from anyorder.modalities.tables.model import TableModel
from anyorder.questions.gains import answered

from models import gaussian_model, joint_table_model

LOG2 = float(np.log(2))


def _selector(choices: int = 3) -> TableModel:
    """s says which of the fair bits x0, x1, ... the target y copies: s alone tells nothing of y."""
    table = np.zeros((choices, *(2,) * choices, 2))
    for s, *bits in itertools.product(range(choices), *(range(2) for _ in range(choices))):
        table[(s, *bits, bits[s])] = 1 / choices / 2**choices
    return TableModel(joint_table_model(table, ["s", *(f"x{j}" for j in range(choices)), "y"]), {})


@pytest.fixture(scope="module")
def selector() -> TableModel:
    return _selector()


def _gaussian() -> TableModel:
    covariance = np.array([[1.0, 0.8, 0.5, 0.0], [0.8, 1.0, 0.4, 0.0], [0.5, 0.4, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    return TableModel(gaussian_model(np.zeros(4), covariance, scale=2.0), {})


@pytest.fixture(scope="module")
def numbers() -> TableModel:
    return _gaussian()


def test_the_ranking_is_that_of_the_closed_form(numbers: TableModel) -> None:
    found = numbers.next_question({}, about="v0")
    assert found.best == "v1"
    truth = {"v1": -0.5 * np.log(1 - 0.64), "v2": -0.5 * np.log(1 - 0.25), "v3": 0.0}
    for one in found.candidates:
        assert float(one.gain) == pytest.approx(truth[one.name], abs=5e-3)
        assert abs(float(one.gain) - truth[one.name]) <= 2 * one.gain.standard_error + 1e-6
    assert [one.worth for one in found.candidates] == [True, True, False]
    assert numbers.next_question({"v1": 0.3}, "v0").best == "v2"


def test_rows_may_be_mappings_series_and_frames(numbers: TableModel) -> None:
    cells = {"v1": 0.3, "v2": np.nan}
    for row in (cells, pd.Series(cells), pd.DataFrame([cells])):
        assert [one.name for one in numbers.next_question(row, "v0").candidates] == ["v2", "v3"]
    with pytest.raises(UserError, match="one case"):
        numbers.next_question(pd.DataFrame([cells, cells]), "v0")


def test_greedy_misses_the_selector_and_two_steps_find_it(selector: TableModel) -> None:
    greedy = selector.next_question({}, "y")
    assert greedy.best != "s"
    assert {one.name: float(one.gain) for one in greedy.candidates}["s"] == pytest.approx(0, abs=1e-9)
    ahead = selector.next_question({}, "y", look_ahead=2)
    assert ahead.best == "s"
    first = ahead.candidates[0]
    assert first.ahead is not None
    assert float(first.ahead) == pytest.approx(LOG2, abs=1e-9)  # the bit that it names tells everything
    assert selector.next_question({"s": "2"}, "y").best == "x2"


def test_two_steps_weigh_both_costs(selector: TableModel) -> None:
    cheap = selector.next_question({}, "y", look_ahead=2, costs={"s": 1.0, "x0": 1.0, "x1": 1.0, "x2": 1.0})
    assert cheap.best == "s"
    first = cheap.candidates[0]
    assert first.cost_ahead == pytest.approx(2.0)
    assert first.value == pytest.approx(LOG2 / 2, abs=1e-9)
    # Where the bits cost too much to follow, nothing does: s is then worth nothing, and no bit is either.
    dear = selector.next_question({}, "y", look_ahead=2, costs={"s": 1, "x0": 9, "x1": 9, "x2": 9}, price=0.08)
    assert dear.best is None
    # The budget pays for one question only: the greedy answer.
    one = selector.next_question({}, "y", look_ahead=2, budget=1.0)
    assert one.best != "s"


def test_a_first_step_may_stand_alone() -> None:
    """a tells half of the target for 1; b hardly anything for 100: looking ahead must not spoil a."""
    table = np.zeros((2, 2, 2))
    for a, b, y in itertools.product(range(2), repeat=3):
        table[a, b, y] = 0.25 * (0.9 if a == y else 0.1) * (0.55 if b == y else 0.45) * 2
    model = TableModel(joint_table_model(table / table.sum(), "aby"), {})
    found = model.next_question({}, "y", look_ahead=2, costs={"a": 1, "b": 100}, price=0.05)
    assert found.best == "a"
    assert found.candidates[0].cost_ahead == pytest.approx(1.0)


def test_noise_is_not_asked_for_before_a_good_question(numbers: TableModel) -> None:
    """z and w tell nothing, a nearly everything: two steps that begin with noise add up to as much."""
    table = np.zeros((2, 2, 2, 2))
    for z, w, a, y in itertools.product(range(2), repeat=4):
        table[z, w, a, y] = 0.9 if a == y else 0.1
    model = TableModel(joint_table_model(table / table.sum(), "zway"), {})
    found = model.next_question({}, "y", look_ahead=2)
    assert found.best == "a"
    assert {one.name: one.worth for one in found.candidates} == {"a": True, "z": False, "w": False}
    assert numbers.next_question({}, "v0", look_ahead=2).best == "v1"


def test_what_is_cheap_and_worthless_hides_nothing() -> None:
    """c has the best rate of what is left, and is not worth a question; b is."""
    table = np.zeros((2, 2, 2, 2))
    for a, b, c, y in itertools.product(range(2), repeat=4):
        table[a, b, c, y] = (0.8 if a == y else 0.2) * (0.85 if b == y else 0.15) * (0.53 if c == y else 0.47)
    model = TableModel(joint_table_model(table / table.sum(), "abcy"), {})
    costs = {"a": 1.0, "b": 8.0, "c": 0.01}
    assert model.next_question({}, "y", at_once=2, costs=costs).chosen == ("a", "b")
    ahead = {one.name: one for one in model.next_question({}, "y", look_ahead=2, costs=costs).candidates}
    assert ahead["a"].cost_ahead == pytest.approx(9.0)


def test_contradictions_are_told_apart_from_gains(numbers: TableModel) -> None:
    found = numbers.next_question({}, about="v0")
    assert found.contradiction == pytest.approx(0, abs=1e-3)
    worse = [dataclasses.replace(found.candidates[-1], contradiction=0.05), *found.candidates]
    assert dataclasses.replace(found, candidates=tuple(worse)).contradiction == pytest.approx(0.05)
    assert found.to_json()["candidates"][0]["contradiction"] >= 0


def test_noise_of_a_look_ahead_is_owned_to() -> None:
    """The selector's answers are listed, but what follows them is drawn: the sum is not exact."""
    chance = np.random.default_rng(3).beta(0.3, 0.3, (2, 40, 1))  # of y = 1 given s and x; z is noise
    table = np.stack([1 - chance, chance], axis=-1) * np.ones((2, 40, 20, 2))
    model = TableModel(joint_table_model(table / table.sum(), "sxzy"), {})
    first = {one.name: one for one in model.next_question({}, "y", look_ahead=2).candidates}["s"]
    assert first.gain.exact
    assert first.ahead is not None
    assert first.ahead.standard_error > 0


def test_costs_divide_gains_and_a_budget_rules_out(numbers: TableModel) -> None:
    costs = {"v1": 10.0, "v2": 1.0, "v3": 1.0}
    assert numbers.next_question({}, "v0", costs=costs).best == "v2"
    assert [one.name for one in numbers.next_question({}, "v0", costs=costs, budget=5).candidates] == ["v2", "v3"]
    broke = numbers.next_question({}, "v0", costs=costs, budget=0.5)
    assert broke.best is None
    assert "0.5" in str(broke.stop)


def test_the_rule_when_to_stop(numbers: TableModel) -> None:
    dear = numbers.next_question({}, "v0", price=10.0)
    assert dear.best is None
    assert "worth its cost" in str(dear.stop)
    assert not any(one.worth for one in dear.candidates)
    assert numbers.next_question({"v1": 0.0, "v2": 0.0}, "v0").best is None  # v3 tells nothing
    done = numbers.next_question({"v1": 0.0, "v2": 0.0, "v3": 0.0}, "v0")
    assert done.stop == "nothing is left to ask for"
    assert numbers.next_question({}, "v0", least=0.2).table()["worth"].tolist() == [True, False, False]


def test_groups_are_measured_together(selector: TableModel) -> None:
    groups = {"panel": ["s", "x0", "x1", "x2"]}
    found = selector.next_question({}, "y", groups=groups)
    assert found.best == "panel"
    assert float(found.candidates[0].gain) == pytest.approx(LOG2, abs=1e-9)
    part = selector.next_question({"s": "1"}, "y", groups=groups)  # what is known of a group stays known
    assert float(part.candidates[0].gain) == pytest.approx(LOG2, abs=1e-9)


def test_several_at_once_do_not_repeat_each_other() -> None:
    """b and c are copies of each other, d is weaker but new: two at once are b (or c) and d."""
    table = np.zeros((2, 2, 2, 2, 2, 2))  # y1, y2 -> target is both; b = c = y1, d copies y2 with noise
    for y1, y2, flip in itertools.product(range(2), repeat=3):
        table[y1, y2, y1, y1, y2 ^ flip, 0] += 0.25 * (0.2 if flip else 0.8)
    model = TableModel(joint_table_model(table, ["y1", "y2", "b", "c", "d", "e"]), {})
    found = model.next_question({}, ["y1", "y2"], at_once=2)
    assert set(found.chosen) in ({"b", "d"}, {"c", "d"})
    noise = LOG2 + 0.8 * np.log(0.8) + 0.2 * np.log(0.2)
    assert float(found.together or 0) == pytest.approx(LOG2 + noise, abs=1e-9)
    assert len(model.next_question({}, ["y1", "y2"], at_once=4).chosen) == 2  # nothing else adds anything


def test_several_at_once_may_need_each_other(selector: TableModel) -> None:
    """s tells nothing alone, but beside all bits it does."""
    assert set(selector.next_question({}, "y", at_once=4).chosen) == {"s", "x0", "x1", "x2"}


def test_a_column_known_to_be_missing_is_not_asked_for() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "y": rng.normal(size=200)})
    frame["z"] = frame["x"] + frame["y"]
    frame.loc[rng.random(200) < 0.3, "x"] = np.nan
    config = {"training": {"steps": 30, "minutes": 1.0}, "network": {"name": "residual_mlp", "width": 16}}
    model = ao.fit(frame, engine="neural", missingness="joint", config=config)
    found = model.next_question({"x": ao.MISSING}, "z", least=0.0, groups={"both": ["x", "y"]})
    assert [one.columns for one in found.candidates] == [("y",)]
    # A measurement of x leaves its indicator as it is, as evidence does.
    x = model.schema.index("x")
    futures = answered(model.core, *model.given({}).exact, (x,), 8)
    assert futures.known[:, x].all()
    assert not futures.known[:, model.schema.pairs[x]].any()


def test_marks_and_dropped_columns_of_a_row() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": range(60), "x": rng.normal(size=60).astype(str), "y": rng.normal(size=60)})
    frame.loc[:5, "x"] = "?"
    config = {"training": {"steps": 3, "minutes": 1.0}}
    model = ao.fit(frame, engine="neural", missing=["?"], drop=["id"], config=config)
    found = model.next_question(frame.iloc[0].drop("y"), "y", least=0.0)
    assert [one.name for one in found.candidates] == ["x"]
    with pytest.raises(UserError, match="yy"):
        model.next_question({"yy": 3.0}, "y")


def test_draws_grow_until_the_ranking_is_settled() -> None:
    """Two candidates that are hard to tell apart get more draws than one that is far behind."""
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(40 * 2)).reshape(40, 2)
    joint = np.einsum("ay,by,cy->abcy", *(t / t.sum(axis=0) for t in (table, table[::-1], np.ones((40, 2)))))
    joint = joint * 0.5 / joint.sum(axis=(0, 1, 2))
    model = TableModel(joint_table_model(joint, "abcy"), {})
    found = model.next_question({}, "y", draws=39)  # 40 answers cannot be listed
    draws = {one.name: one.gain.method for one in found.candidates}
    assert "39" in draws["a"]
    assert "39" in draws["b"]
    assert "39" not in draws["c"]
    # With more draws than answers all of them are listed from the beginning, and the numbers are exact.
    exact = model.next_question({}, "y", draws=256)
    assert all(one.gain.exact for one in exact.candidates)


def test_under_ranges_information_is_pooled(numbers: TableModel) -> None:
    found = numbers.next_question({"v3": "0..1"}, "v0")
    assert found.best == "v1"
    assert float(found.candidates[0].gain) == pytest.approx(-0.5 * np.log(1 - 0.64), abs=0.2)
    with pytest.raises(UserError, match="ranges"):
        numbers.next_question({"v3": "0..1"}, "v0", look_ahead=2)


def test_results_are_json_and_repeatable(selector: TableModel) -> None:
    one, two = (json.dumps(selector.next_question({}, "y", look_ahead=2, seed=4).to_json()) for _ in range(2))
    assert one == two
    assert selector.next_question({}, "y").table()["name"].iloc[0].startswith("x")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"about": ()}, "about"),
        ({"about": "nope"}, "nope"),
        ({"about": "y", "row": {"y": "1"}}, "is already known"),
        ({"about": ["y", "s"], "reward": "error"}, "one target"),
        ({"about": "y", "reward": "joy"}, "unknown reward"),
        ({"about": "y", "reward": ["joy"]}, "unknown reward"),
        ({"about": "y", "costs": {"s": np.int64(1)}}, "no cost is given"),
        ({"about": "y", "costs": {"s": -1.0}}, "above 0"),
        ({"about": "y", "costs": {"zz": 1.0}}, "zz"),
        ({"about": "y", "budget": -1.0}, "budget"),
        ({"about": "y", "candidates": ["y"]}, "cannot be a candidate"),
        ({"about": "y", "groups": {"g": ["y", "s"]}}, "which you want to know about"),
        ({"about": "y", "groups": {"g": []}}, "list of columns"),
        ({"about": "y", "groups": {"s": ["x0", "x1"]}}, "has the name of a column"),
        ({"about": "y", "look_ahead": 3}, "look_ahead"),
        ({"about": "y", "draws": 1}, "draws"),
    ],
)
def test_mistakes_are_told(selector: TableModel, options: dict[str, object], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        selector.next_question(options.pop("row", {}), **options)  # type: ignore[arg-type]


def test_half_a_surrogate_pair_is_no_value(numbers: TableModel) -> None:
    with pytest.raises(UserError, match="half a surrogate pair"):
        numbers.next_question({numbers.schema.names[0]: "\ud800"}, about=numbers.schema.names[1])


@pytest.mark.parametrize("about", [3, None, 1.5])
def test_what_is_no_name_is_refused(numbers: TableModel, about: Any) -> None:
    with pytest.raises(UserError, match="must be the name of a column or a list of them"):
        numbers.next_question({}, about=about)
    with pytest.raises(UserError, match="must be the name of a column or a list of them"):
        numbers.mutual_information("v0", about)
