"""Evidence in the units of the data: what a range means for each kind of column, and what typed text means."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

from anyorder.distributions.cut import Cut
from anyorder.distributions.region import Interval, Points, intersection
from anyorder.distributions.weighted import Weighted
from anyorder.errors import UserError
from anyorder.heads import Categorical, DiscretizedLogisticMixture, Gaussian, Spiked
from anyorder.modalities.tables.heads import head_for
from anyorder.modalities.tables.model import TableModel
from anyorder.model import AnyOrderModel
from anyorder.protocols import Canonical
from anyorder.questions.answer import Answer
from anyorder.questions.conditional import Conditional
from anyorder.questions.events import event_region, region_of, understand
from anyorder.questions.evidence import MISSING, Between, OneOf, read_evidence
from anyorder.questions.range_answer import RangedAnswer
from anyorder.variables.codecs import LatticeCodec, LineCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

from models import gaussian_model

FRAME = pd.DataFrame(
    {
        "size": np.linspace(-3.0, 3.0, 40),
        "count": np.arange(40) % 9,
        "half": (np.arange(40) % 5) / 2,
        "colour": [["red", "blue", "5..6"][k % 3] for k in range(40)],
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(40), unit="D"),
    }
)


SCHEMA = Schema(
    (
        Variable("size", Kind.CONTINUOUS),
        Variable("count", Kind.INTEGER, dtype="int64"),
        Variable("half", Kind.ATOMS, levels=(0.0, 0.5, 1.0, 1.5, 2.0)),
        Variable("colour", Kind.CATEGORICAL, levels=("red", "blue", "5..6"), dtype="str"),
        Variable("day", Kind.DATETIME, resolution="day", dtype="datetime64[us]"),
    )
)


@pytest.fixture(scope="module")
def encoding() -> Encoding:
    return Encoding.fit(FRAME, SCHEMA, "standard")


@pytest.fixture(scope="module")
def model(encoding: Encoding) -> AnyOrderModel:
    """Untrained, so that every column is independent of the others and has a broad law."""
    codecs = {codec.variable.name: codec for codec in encoding.codecs}
    heads = [
        Gaussian(),
        DiscretizedLogisticMixture(3, codecs["count"].lattice),  # type: ignore[attr-defined]
        Categorical(5),
        Categorical(3),
        DiscretizedLogisticMixture(3, codecs["day"].lattice),  # type: ignore[attr-defined]
    ]
    built = AnyOrderModel.build(encoding, heads, {"name": "residual_mlp", "width": 16}, Canonical(), seed=0).eval()
    with torch.no_grad():
        built.network.leave.weight.zero_()  # type: ignore[union-attr,operator]
    return built


def total(model: AnyOrderModel, name: str, values: list[object]) -> float:
    """The sum of the probabilities of single values."""
    return float(sum(Conditional(model)[name].pdf(value) for value in values))


@pytest.mark.parametrize(
    ("event", "values"),
    [
        ("count=2..5", [2, 3, 4, 5]),
        ("count > 2, ", None),
        ("2 < count <= 5", [3, 4, 5]),
        ("count=1.5..4.5", [2, 3, 4]),
        ("count={1, 3, 8}", [1, 3, 8]),
        ("count=3", [3]),
        ("half=0.5..1.5", [0.5, 1.0, 1.5]),
        ("half > 0.5", [1.0, 1.5, 2.0]),
        ("half <= 0.6", [0.0, 0.5]),
        ("colour={red, '5..6'}", ["red", "5..6"]),
        ("colour=5..6", ["5..6"]),
        ("day=2024-01-30..2024-02-02", ["2024-01-30", "2024-01-31", "2024-02-01", "2024-02-02"]),
        ("day={2024-01-05}", ["2024-01-05"]),
    ],
)
def test_both_ends_belong_to_a_range(model: AnyOrderModel, event: str, values: list[object] | None) -> None:
    if values is None:
        with pytest.raises(UserError):
            Conditional(model).prob(event)
        return
    name = event.replace("2 < ", "").split()[0].split("=")[0]
    found = Conditional(model).prob(event)
    assert found.standard_error == 0
    assert found.value == pytest.approx(total(model, name, values), rel=1e-5)


def test_a_half_open_range_and_its_rest(model: AnyOrderModel) -> None:
    c = Conditional(model)
    for name, place in (("count", 4), ("half", 1.0), ("size", 0.3), ("day", "2024-01-20")):
        below, above = c.prob({name: f"<{place}"}), c.prob({name: f">={place}"})
        assert below.value + above.value == pytest.approx(1, abs=1e-9)
        assert 0 < below.value < 1


def test_text_is_a_value_first(encoding: Encoding) -> None:
    assert understand(encoding, "colour", "5..6") == (3, 2.0)
    assert understand(encoding, "count", "5..6")[1] == region_of(encoding, "count", Between(5, 6))
    assert understand(encoding, "colour", "{red}") == (3, 0.0)
    assert understand(encoding, "colour", OneOf("blue")) == (3, 1.0)
    assert understand(encoding, "size", "1.5")[1] == pytest.approx(encoding.encode_value("size", 1.5))
    region = understand(encoding, "size", "-2..-1")[1]
    assert isinstance(region, Interval)
    assert region.least == pytest.approx(encoding.encode_value("size", -2))
    assert read_evidence("30") is None
    assert read_evidence("missing") == MISSING


def test_what_is_refused(encoding: Encoding) -> None:
    for name, said, match in (
        ("size", OneOf(1.0, 2.0), "probability 0"),
        ("count", Between(2.2, 2.8), "no value lies"),
        ("half", Between(0.6, 0.9), "its values: 0.0"),
        ("colour", Between("blue", "red"), "no order"),
        ("colour", OneOf("red", "blu"), "did you mean 'blue'"),
        ("day", Between("2024-02-01", "2024-01-01"), "no value lies"),
        ("size", MISSING, "missingness='joint'"),
        ("size", "a..b", "expected a number"),
        ("size", "tall", "expected a number"),
    ):
        with pytest.raises(UserError, match=match):
            understand(encoding, name, said)
    with pytest.raises(UserError, match="a single value has probability 0"):
        event_region(encoding, "size", 1.0)
    with pytest.raises(UserError, match="at least one end"):
        Between()
    with pytest.raises(UserError, match="at least one value"):
        OneOf()


def test_missing_speaks_through_its_indicator() -> None:
    variables = (Variable("income", Kind.CONTINUOUS), Variable("missing(income)", Kind.BOOLEAN, levels=(False, True)))
    frame = pd.DataFrame({"income": [1.0, 2.0, 4.0, 3.0], "missing(income)": [False, True, False, False]})
    encoding = Encoding.fit(frame, Schema(variables))
    assert understand(encoding, "income", MISSING) == (1, 1.0)
    assert understand(encoding, "income", "missing") == (1, 1.0)
    place, region = event_region(encoding, "income", MISSING)
    assert (place, region) == (1, Points((1.0,)))


def test_evidence_reads_back_from_its_text() -> None:
    for said in (Between(30, 40), Between(None, 5.5), Between(-3, None), OneOf("red", "a, b"), MISSING):
        again = read_evidence(str(said))
        assert str(again) == str(said)
    assert read_evidence(str(Between(3, 4, low_open=True))) == Between("3", "4", low_open=True)


def test_intersections() -> None:
    a, b = Interval(0, 2, 0, 2), Interval(1, 5, 1, 5)
    assert intersection(a, b) == Interval(1, 2, 1, 2)
    assert intersection(Interval(0, 1, 0, 1), Interval(2, 3, 2, 3)) is None
    assert intersection(Points((0.0, 1.0, 3.0)), b) == Points((1.0, 3.0))
    assert intersection(Points((0.0,)), Points((1.0,))) is None


def test_sampling_under_ranges_gives_rows_inside(model: AnyOrderModel) -> None:
    c = Conditional(
        model,
        {"count": "2..4", "day": Between("2024-01-10", "2024-01-12"), "colour": OneOf("red", "blue"), "size": 0.5},
    )
    rows = c.sample(200, seed=1)
    assert rows["count"].between(2, 4).all()
    assert rows["day"].between("2024-01-10", "2024-01-12").all()
    assert set(rows["colour"]) <= {"red", "blue"}
    assert (rows["size"] == 0.5).all()
    assert rows["count"].dtype == np.int64
    assert c.sample(50, seed=2).equals(c.sample(50, seed=2))


def test_answers_of_every_kind_under_ranges(model: AnyOrderModel) -> None:
    """Every column is independent here, so a range on others changes nothing but the method."""
    plain, ranged = Conditional(model), Conditional(model, {"size": "0..", "count": "2..6"}, draws=50)
    for name in ("half", "day"):
        one, other = plain[name], ranged[name]
        assert other.quantile([0.25, 0.5, 0.9]).tolist() == one.quantile([0.25, 0.5, 0.9]).tolist()
        assert other.std() == pytest.approx(one.std(), rel=1e-4)
    assert list(ranged["colour"].probs()) == ["red", "blue", "5..6"]
    assert ranged["colour"].probs()["red"] == pytest.approx(plain["colour"].probs()["red"], rel=1e-5)
    assert isinstance(ranged["day"].mean(), pd.Timestamp)
    assert abs(ranged["day"].mean() - plain["day"].mean()) < pd.Timedelta(minutes=5)
    assert ranged["half"].entropy() == pytest.approx(plain["half"].entropy(), rel=1e-4)
    assert ranged["colour"].mode() == plain["colour"].mode()
    within = Conditional(model, {"count": "2..4"})["count"]
    weights = np.array([plain["count"].pdf(k) for k in (2, 3, 4)])
    assert within.mean() == pytest.approx((weights / weights.sum()) @ [2, 3, 4], rel=5e-3)
    assert within.pdf(3) == pytest.approx(weights[1] / weights.sum(), rel=1e-6)
    assert within.pdf(7) == 0


def test_a_spike_on_an_end_counts_whole() -> None:
    """P(X = 0) = w and w_0 N(0, 1) elsewhere: both ends of a closed range take the spike, an open end leaves it out."""
    variable = Variable("rain", Kind.SPIKED, atoms=(0.0,))
    frame = pd.DataFrame({"rain": [0.0, 0.0, 0.0, 1.0, 2.0, -2.5]})
    encoding = Encoding.fit(frame, Schema((variable,)), "standard")
    zero, one = encoding.encode_value("rain", 0.0), encoding.encode_value("rain", 1.0)
    law = Spiked((zero,), Gaussian())(torch.tensor([[0.4, 0.3, -0.2]], dtype=torch.float64))
    weight = 1 / (1 + math.exp(-0.4))
    line = norm(0.3, math.exp(-0.2))
    rest = (1 - weight) * (line.cdf(one) - line.cdf(zero))

    def mass(said: Between) -> float:
        return float(region_of(encoding, "rain", said).log_mass(law).exp())

    assert mass(Between(0, 1)) == pytest.approx(weight + rest, rel=1e-9)
    assert mass(Between(0, 1, low_open=True)) == pytest.approx(rest, rel=1e-9)
    assert mass(Between(None, 0)) == pytest.approx(weight + (1 - weight) * line.cdf(zero), rel=1e-9)
    assert mass(Between(None, 0, high_open=True)) == pytest.approx((1 - weight) * line.cdf(zero), rel=1e-9)
    assert mass(Between(0, 0)) == pytest.approx(weight, rel=1e-9)
    levels = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)[:, None]
    drawn = region_of(encoding, "rain", Between(0, 1)).draw(law, levels)[:, 0]
    assert bool((drawn >= zero).all() & (drawn <= one).all())
    assert float((drawn == zero).double().mean()) == pytest.approx(weight / (weight + rest), abs=0.02)


@pytest.mark.parametrize("mixed", [False, True])
def test_an_atom_outside_the_range_is_no_mode(mixed: bool) -> None:
    """Beyond the spike a normal is left, cut to the range: its mode and its least sets are known."""
    variable = Variable("rain", Kind.SPIKED, atoms=(0.0,))
    frame = pd.DataFrame({"rain": [0.0, 0.0, 0.0, 4.0, 8.0, 30.0, -3.0]})
    encoding = Encoding.fit(frame, Schema((variable,)), "standard")
    law = Spiked((encoding.encode_value("rain", 0.0),), Gaussian())(
        torch.tensor([[3.0, 1.0, -0.4]] * 2, dtype=torch.float64)
    )
    low, high, middle = (float(encoding.encode_value("rain", x)) for x in (2.0, 30.0, 2.5))
    slope = (30.0 - 2.0) / (high - low)  # the codec is straight as far as the data reach

    def units(z: float) -> float:
        return 2.0 + slope * (z - low)

    cut = Cut(law, region_of(encoding, "rain", Between(2.0, 30.0)))
    answer = Answer(variable, encoding, cut)
    if mixed:
        answer = RangedAnswer(variable, encoding, Weighted(cut, torch.tensor([0.5, 0.5]).double()), "by hand")
    assert low < middle < 1.0 < high
    assert float(answer.mode()) == pytest.approx(units(1.0), abs=0.1)
    (found,) = answer.hdi(0.5)
    line = norm(1.0, math.exp(-0.4))
    inside = line.cdf(high) - line.cdf(low)
    reach = -line.ppf(0.5 - inside / 4) + 1.0  # symmetric about the mode, as both ends lie inside
    assert [float(end) for end in found] == pytest.approx([units(1 - reach), units(1 + reach)], abs=0.1)
    around = Cut(law, region_of(encoding, "rain", Between(-1.0, 30.0)))
    assert Answer(variable, encoding, around).mode() == 0.0
    assert Answer(variable, encoding, around).hdi(0.5) == [(0.0, 0.0)]


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (None, 1.0), (0.0, None)])
def test_up_to_a_bound_there_is_nothing(low: float | None, high: float | None) -> None:
    variable = Variable("share", Kind.CONTINUOUS, bounds=(low, high), declared=True)
    encoding = Encoding.fit(pd.DataFrame({"share": np.linspace(0.02, 0.97, 50)}), Schema((variable,)))
    head = head_for(encoding.codecs[0], 2, {})
    network = {"name": "residual_mlp", "width": 8, "blocks": 1}
    core = AnyOrderModel.build(encoding, [head], network, Canonical(), seed=0).eval()
    below = [] if low is None else ["share <= 0", "share=-5..0", "share < 0", "share=..0"]
    above = [] if high is None else ["share >= 1", "share=1..5", "share > 1", "share=1.."]
    for event in (*below, *above):
        found = Conditional(core).prob(event)
        assert (found.value, found.standard_error, found.method) == (0.0, 0.0, "exact"), event
        with pytest.raises(UserError, match="probability 0 under the model"):
            Conditional(core, {"share": event.removeprefix("share").removeprefix("=")})["share"].mean()
    with pytest.raises(UserError, match="is a single point"):
        Conditional(core).prob("share=0..0")


def test_a_fraction_among_whole_numbers_is_evidence_but_no_answer() -> None:
    """E[other | whole = w] of a Gaussian is linear in w, between the lattice points too."""
    mean, covariance = np.array([0.5, -1.0]), np.array([[1.0, 0.6], [0.6, 2.0]])
    core = gaussian_model(mean, covariance)
    whole, other = Variable("whole", Kind.INTEGER, dtype="int64"), Variable("other", Kind.CONTINUOUS)
    warp = Warp.affine(10.0, 4.0)
    codecs = (LatticeCodec(whole, warp, 0, 20), LineCodec(other, Warp.affine(0.0, 1.0)))
    core.encoding = Encoding(Schema((whole, other)), codecs)
    model = TableModel(core, {})

    def truth(given: float) -> float:
        return float(mean[1] + 0.6 * ((given - 10) / 4 - mean[0]))

    for given in (4.5, "4.5"):
        with pytest.warns(
            UserWarning, match=r"'whole': 4\.5 is not a whole number.*kinds=\{'whole': 'continuous'\}"
        ) as said:
            conditional = model.given(whole=given)
        assert len(said) == 1
        assert conditional["other"].mean() == pytest.approx(truth(4.5), abs=1e-5)
        assert conditional.sample(3)["whole"].tolist() == [4.5] * 3
    holes = pd.DataFrame({"whole": [4.5, 7.0, 8.25], "other": [np.nan] * 3})
    with pytest.warns(UserWarning, match=r"'whole': 2 cells have fractions, the first \(4\.5\) in row 0") as said:
        filled = model.fill(holes)
    assert len(said) == 1
    assert filled["other"].tolist() == pytest.approx([truth(4.5), truth(7), truth(8.25)], abs=1e-2)
    assert filled["whole"].tolist() == [4.5, 7.0, 8.25]
    with pytest.warns(UserWarning, match="fractions"):
        scored = model.log_prob(holes.assign(other=1.0), given=["whole"])
    spread = math.sqrt(2.0 - 0.36)
    assert scored.tolist() == pytest.approx([norm(truth(w), spread).logpdf(1.0) for w in (4.5, 7, 8.25)], abs=1e-5)
    mask = pd.DataFrame({"whole": [True] * 3, "other": [False] * 3})
    with pytest.warns(UserWarning, match="fractions"):
        assert model.log_prob(holes.assign(other=1.0), given=mask).tolist() == scored.tolist()
    mask.loc[1, "whole"] = False  # one of its cells is asked
    for wrong in (
        lambda: model.log_prob(holes.assign(other=1.0), given=mask),
        lambda: model.log_prob(holes),
        lambda: model.given().log_prob(whole=4.5),
        lambda: model["whole"].cdf(4.5),
    ):
        with pytest.raises(UserError, match="expected a whole number"):
            wrong()
    with pytest.raises(UserError, match="expected a number"):
        model.given(whole="many")
