"""Rules between columns: how they are read, and answers under them against the normal and by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import multivariate_normal

from anyorder.errors import UserError
from anyorder.heads import Categorical
from anyorder.model import AnyOrderModel, layout_of
from anyorder.model.likelihood import log_prob
from anyorder.protocols import Canonical
from anyorder.query import Query
from anyorder.questions.conditional import Conditional
from anyorder.questions.rules import Rules, parse_rule, parse_rules
from anyorder.variables.codecs import LevelCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.ranges import Between
from anyorder.variables.schema import Kind, Schema, Variable

from models import JointTable
from range_oracles import COVARIANCE, MEAN, SCALE, close

SCHEMA = Schema(
    (
        *(Variable(name, Kind.CONTINUOUS) for name in ("a", "b", "total weight", "x-y", "2020")),
        Variable("day", Kind.DATETIME, resolution="day"),
        Variable("colour", Kind.CATEGORICAL, levels=("red", "blue")),
    )
)


def test_rules_become_sums_of_columns() -> None:
    (rule,) = parse_rule("total weight = 2*a + b/4 - 3", SCHEMA)
    assert (rule.coefficients, rule.compare, rule.bound) == ({"total weight": 1, "a": -2, "b": -0.25}, "=", -3)
    (rule,) = parse_rule(" a>=1e-2 * 'x-y' ", SCHEMA)
    assert (rule.coefficients, rule.compare, rule.bound) == ({"a": -1, "x-y": 0.01}, "<=", 0)
    (rule,) = parse_rule("-a + b - a < .5", SCHEMA)
    assert (rule.coefficients, rule.compare, rule.bound) == ({"a": -2, "b": 1}, "<", 0.5)
    (rule,) = parse_rule("day > '1970-01-11'", SCHEMA)
    assert (rule.coefficients, rule.bound) == ({"day": -1}, -10)
    (rule,) = parse_rule('"2020" <= 2020', SCHEMA)
    assert (rule.coefficients, rule.bound) == ({"2020": 1}, 2020)
    low, high = parse_rule("0 <= a < b", SCHEMA)
    assert (low.coefficients, low.compare, high.coefficients, high.compare) == ({"a": -1}, "<=", {"a": 1, "b": -1}, "<")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a + b",
        "a <",
        "< b",
        "a * b = 3",
        "a / b = 3",
        "3 / a < 1",
        "a / 0 < 1",
        "a = a",
        "1 < 2",
        "a + = b",
        "a ! b",
        "nothing > a",
        "colour > a",
        "a > 'b",
        "(a) > b",
        "a ** 2 > b",
        "a > 1e999",
        "__import__('os') > a",
        7,
        None,
        "a > " + "1 + " * 3_000 + "1",
    ],
    ids=str,
)
def test_what_is_no_linear_rule_is_refused(text: object) -> None:
    with pytest.raises(UserError):
        parse_rules([text], SCHEMA)  # type: ignore[list-item]


def under(model: AnyOrderModel, *texts: str, **evidence: object) -> Conditional:
    rules = Rules(parse_rules(texts, model.schema), model.encoding)
    return Conditional(model, evidence, rules=rules, draws=4000)


def test_an_inequality_is_conditioned_on(gaussian: AnyOrderModel) -> None:
    """E[v2 | v0 > v1] and P(v3 > 1 | v0 > v1 + 1) of a normal, in the units of the data."""
    mean, covariance = SCALE * MEAN, SCALE**2 * COVARIANCE
    direction = np.array([1.0, -1.0, 0.0, 0.0])
    middle, spread = direction @ mean, math.sqrt(direction @ covariance @ direction)
    hazard = math.exp(-0.5 * (middle / spread) ** 2) / math.sqrt(2 * math.pi)
    hazard /= 0.5 * math.erfc(-middle / spread / math.sqrt(2))
    for index in range(4):
        truth = mean[index] + (covariance[index] @ direction) / spread * hazard
        close(under(gaussian, "v0 > v1")[f"v{index}"].mean(), truth, extra=2e-3)
    law = multivariate_normal(
        np.array([-middle, -mean[3]]),
        np.array([[spread**2, covariance[3] @ direction], [covariance[3] @ direction, covariance[3, 3]]]),
    )
    both, one = law.cdf([-1.0, -1.0]), 0.5 * math.erfc((1 - middle) / spread / math.sqrt(2))
    close(under(gaussian, "v0 > v1 + 1").prob("v3 > 1"), both / one, extra=1e-3)
    ruled = under(gaussian, "v0 > v1")
    assert ruled.answers("v2")["v2"].mean() == ruled["v2"].mean()
    inside = under(gaussian, "v0 > v1 + 1").prob("v0 > 2")
    drawn = np.random.default_rng(0).multivariate_normal(mean, covariance, 400_000)
    drawn = drawn[drawn[:, 0] > drawn[:, 1] + 1]
    close(inside, float((drawn[:, 0] > 2).mean()), extra=0.01)


def test_an_equality_is_conditioned_on(gaussian: AnyOrderModel) -> None:
    """v0 - 2 v1 + v3 = 2: a normal on the plane, in closed form."""
    mean, covariance = SCALE * MEAN, SCALE**2 * COVARIANCE
    direction = np.array([1.0, -2.0, 0.0, 1.0])
    gain = covariance @ direction / (direction @ covariance @ direction)
    location = mean + gain * (2.0 - direction @ mean)
    spread = np.sqrt(np.diagonal(covariance - np.outer(gain, direction @ covariance)))
    asked = under(gaussian, "v0 - 2 * v1 + v3 = 2")
    for index in range(4):
        close(asked[f"v{index}"].mean(), location[index], extra=0.01)
        assert asked[f"v{index}"].std() == pytest.approx(spread[index], rel=0.08)
    rows = asked.sample(3000, seed=1)
    np.testing.assert_allclose(rows["v0"] - 2 * rows["v1"] + rows["v3"], 2.0, atol=1e-9)
    np.testing.assert_allclose(rows.mean(), location, atol=0.15)
    known = under(gaussian, "v0 - 2 * v1 + v3 = 2", v0=1.0, v1=0.5)
    assert known["v3"].mean() == pytest.approx(2.0) and known.sample(1)["v3"][0] == pytest.approx(2.0)


def test_every_draw_obeys_rare_rules_too(gaussian: AnyOrderModel) -> None:
    texts = ("v0 > v1 + 9", "v2 <= v3", "v1 + v2 + v3 = 4")
    rows = under(gaussian, *texts, v2=Between(0, None)).sample(200, seed=0)
    assert bool((rows["v0"] > rows["v1"] + 9).all() and (rows["v2"] <= rows["v3"]).all() and (rows["v2"] >= 0).all())
    np.testing.assert_allclose(rows[["v1", "v2", "v3"]].sum(axis=1), 4.0, atol=1e-9)


@pytest.fixture(scope="module")
def numbers() -> AnyOrderModel:
    """Three columns of few numbers, with every conditional of a joint table."""
    levels = [(0, 1, 2, 5), (1, 2, 3), (0, 2, 4)]
    variables = tuple(
        Variable(name, Kind.ATOMS, levels=values, dtype="int64") for name, values in zip("xyz", levels, strict=True)
    )
    schema = Schema(variables)
    encoding = Encoding(schema, tuple(LevelCodec(variable) for variable in variables))
    heads = [Categorical(len(values)) for values in levels]
    table = np.random.default_rng(7).gamma(0.7, size=(4, 3, 3)) + 0.02
    network = JointTable(layout_of(schema, heads)).hold(table / table.sum())
    return AnyOrderModel(encoding, network, heads, Canonical()).eval()


@pytest.mark.parametrize("rules", [["x > y"], ["x + y >= z + 2"], ["x = y"], ["x + y = z"], ["x < y", "y <= z"]])
def test_numbers_with_levels_are_enumerated(numbers: AnyOrderModel, rules: list[str]) -> None:
    names, levels = "xyz", [variable.levels for variable in numbers.schema.variables]
    codes = torch.tensor(list(itertools.product(*(range(len(one)) for one in levels)))).float()
    nats = log_prob(numbers, codes, Query.marginal(torch.ones_like(codes, dtype=torch.bool)))
    rows = pd.DataFrame({name: np.array(levels[i])[codes[:, i].long()] for i, name in enumerate(names)})
    obeys = np.ones(len(rows), dtype=bool)
    for rule in rules:
        obeys &= rows.eval(rule.replace(" = ", " == ")).to_numpy()
    weight = np.exp(nats) * obeys
    weight /= weight.sum()
    asked = under(numbers, *rules).using(draws=500)
    for name in names:
        for level, probability in asked[name].probs().items():
            close(probability, float(weight[rows[name] == level].sum()), extra=1e-3)
    drawn = asked.sample(400, seed=0)
    counts = drawn.value_counts()
    for number in np.flatnonzero(weight > 0.02):
        assert counts.get(tuple(rows.loc[number]), 0) / 400 == pytest.approx(weight[number], abs=0.08)
    assert all(drawn.eval(rule.replace(" = ", " == ")).all() for rule in rules)


def test_contradictions_are_refused(gaussian: AnyOrderModel) -> None:
    with pytest.raises(UserError, match="breaks the rule 'v0 > v1'"):
        under(gaussian, "v0 > v1", v0=1.0, v1=2.0)
    with pytest.raises(UserError, match="probability 0"):
        under(gaussian, "v0 > v1", "v1 > v0")["v2"].mean()
    with pytest.raises(UserError, match="'v0' appears in a rule"):
        under(gaussian, "v0 > v1").log_prob(v0=1.0)
    # Of columns that rules do not name the density is known as ever.
    assert math.isfinite(under(gaussian, "v0 > v1").log_prob(v2=1.0))


def test_rules_about_what_is_known_change_nothing(gaussian: AnyOrderModel) -> None:
    known = Conditional(gaussian, {"v0": 3.0, "v1": 1.0})
    ruled = under(gaussian, "v0 > v1", v0=3.0, v1=1.0)
    assert not ruled.ranged and ruled["v2"].mean() == known["v2"].mean()
    assert ruled.given(v1=Between(0, 9)).ranged
