"""One column against another: against the normal, and by enumeration of a table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from anyorder.errors import UserError
from anyorder.heads import Categorical
from anyorder.model import AnyOrderModel, layout_of
from anyorder.protocols import Canonical
from anyorder.questions.comparisons import Comparison, by_levels, separated
from anyorder.questions.conditional import Conditional
from anyorder.variables.codecs import LevelCodec, LineCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.notations.number import NumberNotation
from anyorder.variables.ranges import Between
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

from models import JointTable
from range_oracles import COVARIANCE, MEAN, SCALE, close

DIFFERENCE = np.array([1.0, -1.0, 0.0, 0.0])


def greater(given: dict[int, float]) -> float:
    """P(v0 > v1 | given) of the normal."""
    mean, covariance = SCALE * MEAN, SCALE**2 * COVARIANCE
    known = sorted(given)
    if known:
        gain = covariance[:, known] @ np.linalg.inv(covariance[np.ix_(known, known)])
        mean = mean + gain @ (np.array([given[i] for i in known]) - mean[known])
        covariance = covariance - gain @ covariance[known]
    return float(norm.sf(0, DIFFERENCE @ mean, np.sqrt(DIFFERENCE @ covariance @ DIFFERENCE)))


def test_a_number_above_another(gaussian: AnyOrderModel) -> None:
    asked = Conditional(gaussian).using(draws=4000)
    found = asked.prob("v0 > v1")
    assert found.standard_error > 0
    close(found, greater({}))
    close(asked.prob("v1 >= v0"), 1 - greater({}))
    close(asked.given(v2=1.5).prob("v0 > v1"), greater({2: 1.5}))
    one = asked.given(v1=-1.0).prob("v0 > v1")  # one column is known: then it is a range, and exact
    assert one.exact
    assert float(one) == pytest.approx(float(asked.given(v1=-1.0).prob("v0 > -1")), rel=1e-9)
    assert float(asked.given(v1=-1.0).prob("v1 < v0")) == pytest.approx(float(one), rel=1e-9)


def test_among_other_events_and_ranges(gaussian: AnyOrderModel) -> None:
    rng = np.random.default_rng(0)
    rows = rng.multivariate_normal(SCALE * MEAN, SCALE**2 * COVARIANCE, 2_000_000)
    ahead = rows[:, 0] > rows[:, 1]
    asked = Conditional(gaussian).using(draws=4000)
    close(asked.prob("v0 > v1, v3 < 0"), float((ahead & (rows[:, 3] < 0)).mean()), 2e-3)
    some = rows[:, 2] > 1
    close(asked.given(v2=">1").prob("v0 > v1"), float(ahead[some].mean()), 2e-3)
    near = (rows[:, 0] > -1) & (rows[:, 0] < 1)
    close(asked.given(v0="-1..1").prob("v0 > v1"), float(ahead[near].mean()), 2e-3)
    close(asked.prob("v1 < v0 < 1"), float((ahead & (rows[:, 0] < 1)).mean()), 2e-3)


def test_as_evidence(gaussian: AnyOrderModel) -> None:
    mean, covariance = SCALE * MEAN, SCALE**2 * COVARIANCE
    spread = np.sqrt(DIFFERENCE @ covariance @ DIFFERENCE)
    at = DIFFERENCE @ mean / spread
    for name, number in (("v0", 0), ("v3", 3)):
        shift = (covariance @ DIFFERENCE)[number] / spread * norm.pdf(at) / norm.cdf(at)
        found = Conditional(gaussian, {"v0": ">v1"}).using(draws=4000)[name].mean()
        close(found, float(mean[number] + shift))
    drawn = Conditional(gaussian, {"v0": ">v1"}).sample(100, seed=0)
    assert bool((drawn["v0"] > drawn["v1"]).all())


@pytest.fixture(scope="module")
def table() -> tuple[AnyOrderModel, np.ndarray]:
    """Two columns of trees whose levels differ in one, and two of numbers."""
    levels = (("ash", "birch", "cedar"), ("birch", "ash", "oak"), (0.0, 1.0, 2.0), (0.0, 2.0))
    kinds = (Kind.CATEGORICAL, Kind.CATEGORICAL, Kind.ATOMS, Kind.ATOMS)
    names = ("first", "second", "x", "y")
    schema = Schema(
        tuple(
            Variable(name, kind, levels=own, dtype="str" if isinstance(own[0], str) else "float64")
            for name, kind, own in zip(names, kinds, levels, strict=True)
        )
    )
    encoding = Encoding(schema, tuple(LevelCodec(variable) for variable in schema.variables))
    heads = [Categorical(len(own)) for own in levels]
    held = np.random.default_rng(7).gamma(0.7, size=(3, 3, 3, 2)) + 0.02
    held /= held.sum()
    network = JointTable(layout_of(schema, heads)).hold(held)
    return AnyOrderModel(encoding, network, heads, Canonical()).eval(), held


def total(model: AnyOrderModel, held: np.ndarray, holds: str) -> float:
    levels = [variable.levels for variable in model.schema.variables]
    cells = itertools.product(*(enumerate(own) for own in levels))
    found = 0.0
    for cell in cells:
        row = dict(zip(model.schema.names, (level for _, level in cell), strict=True))
        if eval(holds, {}, row):
            found += float(held[tuple(code for code, _ in cell)])
    return found


@pytest.mark.parametrize(
    ("event", "holds"),
    [
        ("first = second", "first == second"),
        ("first != second", "first != second"),
        ("first = second, x > 0", "first == second and x > 0"),
        ("x > y", "x > y"),
        ("x <= y", "x <= y"),
        ("x = y", "x == y"),
        ("x != y", "x != y"),
        ("x = y, first != ash", "x == y and first != 'ash'"),
    ],
)
def test_levels_are_enumerated(table: tuple[AnyOrderModel, np.ndarray], event: str, holds: str) -> None:
    model, held = table
    found = Conditional(model).using(draws=2000).prob(event)
    close(found, total(model, held, holds), 1e-6)
    if event == "first = second":
        assert found.exact


def test_given_one_of_the_two(table: tuple[AnyOrderModel, np.ndarray]) -> None:
    model, held = table
    asked = Conditional(model, {"first": "ash"})
    assert float(asked.prob("first = second")) == pytest.approx(float(asked.prob("second = ash")))
    assert float(Conditional(model, {"first": "cedar"}).prob("first = second")) == 0
    both = total(model, held, "first == second and x > 0") / total(model, held, "x > 0")
    close(Conditional(model, {"x": ">0"}).prob("first = second"), both, 1e-3)


def mixed() -> Encoding:
    schema = Schema(
        (
            Variable("price", Kind.CONTINUOUS),
            Variable("cost", Kind.CONTINUOUS),
            Variable("total cost", Kind.CONTINUOUS),
            Variable("kind", Kind.CATEGORICAL, levels=("cost", "b"), dtype="str"),
            Variable("day", Kind.DATETIME, resolution="second"),
        )
    )
    codecs = [LevelCodec(one) if one.levels else LineCodec(one, Warp.affine(0.0, 1.0)) for one in schema.variables]
    return Encoding(schema, tuple(codecs))


def test_what_is_a_column_and_what_is_a_value() -> None:
    encoding = mixed()
    assert separated(encoding, {"price": ">cost"}) == ({}, [Comparison("price", ">", "cost")])
    assert separated(encoding, {"price": ">=cost <9"}) == (
        {"price": Between(None, "9", False, True)},
        [Comparison("price", ">=", "cost")],
    )
    assert separated(encoding, {"kind": "cost"}) == ({"kind": "cost"}, [])  # a level of that name
    assert separated(encoding, {"price": 3.0, "kind": "!=cost"}) == ({"price": 3.0, "kind": "!=cost"}, [])
    with pytest.raises(UserError, match="compares a time with a number"):
        by_levels(encoding, Comparison("day", ">", "price"))
    assert str(Comparison("price", "<", "total cost")) == 'price < "total cost"'


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ("v0 = v1", "never exactly equal"),
        ("v0 != v1, v2 > 0", "never exactly equal|asked on its own"),
        ("v0 > nothing", "nothing"),
    ],
)
def test_what_cannot_be_compared(gaussian: AnyOrderModel, event: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        Conditional(gaussian).prob(event)


def test_times_numbers_and_texts_do_not_compare(table: tuple[AnyOrderModel, np.ndarray]) -> None:
    model, _ = table
    for event, says in (
        ("first > second", "can only be equal"),
        ("x > first", "compares a number or time with a text"),
    ):
        with pytest.raises(UserError, match=says):
            Conditional(model).prob(event)
    with pytest.raises(UserError, match="cannot be evidence"):
        Conditional(model, {"first": "second"})
    with pytest.raises(UserError, match="both columns are already given"):
        Conditional(model, {"x": 1.0, "y": 2.0}).prob("x > y")


def test_columns_in_different_units_are_not_compared() -> None:
    def column(name: str, unit: str) -> LineCodec:
        return LineCodec(Variable(name, Kind.CONTINUOUS, notation=NumberNotation(suffix=unit)), Warp.affine(0.0, 1.0))

    codecs = (column("weight", " kg"), column("limit", " g"), column("spare", " kg"), column("plain", ""))
    encoding = Encoding(Schema(tuple(codec.variable for codec in codecs)), codecs)
    with pytest.raises(UserError, match="compares kg with g"):
        by_levels(encoding, Comparison("weight", ">", "limit"))
    assert not by_levels(encoding, Comparison("weight", ">", "spare"))
    assert not by_levels(encoding, Comparison("weight", ">", "plain"))
