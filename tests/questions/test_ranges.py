"""Ranges as evidence and as events, against closed forms: the multivariate normal and tables that can be summed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

from anyorder.distributions.region import Interval, Points
from anyorder.errors import UserError
from anyorder.modalities.tables.heads import head_for
from anyorder.model import AnyOrderModel
from anyorder.protocols import Canonical, Random
from anyorder.query import Query
from anyorder.questions.conditional import Conditional
from anyorder.questions.estimate import Estimate
from anyorder.questions.evidence import Between, OneOf
from anyorder.questions.information import mutual_information
from anyorder.questions.particles import ranged_draws
from anyorder.variables.codecs import LatticeCodec, LineCodec
from anyorder.variables.codecs.spiked import SpikedCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

from models import LEVELS, categorical_model, gaussian_model

SCALE = 2.0  # of the units of the data, so that a forgotten Jacobian shows
MEAN = np.array([0.3, -0.5, 1.0, 0.2])
ROOT = np.array([[1.0, 0.0, 0.0, 0.0], [0.7, 0.8, 0.0, 0.0], [-0.4, 0.5, 0.9, 0.0], [0.6, -0.3, 0.4, 0.7]])
COVARIANCE = ROOT @ ROOT.T


@pytest.fixture(scope="module")
def gaussian() -> AnyOrderModel:
    return gaussian_model(MEAN, COVARIANCE, scale=SCALE)


@pytest.fixture(scope="module")
def table() -> AnyOrderModel:
    return categorical_model({"name": "residual_mlp", "width": 32, "blocks": 1}, steps=60)


def box(low: dict[int, float], high: dict[int, float], given: dict[int, float]) -> float:
    """P(low < x < high | given) of the normal, in the units of the data, by inclusion and exclusion of its cdf."""
    places = sorted(low | high)
    known = sorted(given)
    mean, covariance = SCALE * MEAN, SCALE**2 * COVARIANCE
    location, spread = mean[places], covariance[np.ix_(places, places)]
    if known:
        gain = covariance[np.ix_(places, known)] @ np.linalg.inv(covariance[np.ix_(known, known)])
        location = location + gain @ (np.array([given[i] for i in known]) - mean[known])
        spread = spread - gain @ covariance[np.ix_(known, places)]
    law = multivariate_normal(location, spread, seed=0, abseps=1e-7, maxpts=200_000)  # random points: seeded, and many
    total = 0.0
    for ends in itertools.product((0, 1), repeat=len(places)):
        corner = [high.get(p, 50.0) if end else low.get(p, -50.0) for p, end in zip(places, ends, strict=True)]
        total += (-1) ** (len(places) - sum(ends)) * float(law.cdf(corner))
    return total


def close(found: float, truth: float, extra: float = 1e-9) -> None:
    """Within four standard errors (and the error of the oracle itself)."""
    assert isinstance(found, Estimate)
    assert abs(found.value - truth) <= 4 * found.standard_error + extra, (found, truth)


def test_one_range_is_exact(gaussian: AnyOrderModel) -> None:
    c = Conditional(gaussian, {"v0": 1.0})
    found = c.prob(v1=Between(-1, 2))
    assert found.standard_error == 0
    assert found.method == "exact"
    assert found.value == pytest.approx(box({1: -1.0}, {1: 2.0}, {0: 1.0}), abs=1e-7)
    assert c.prob("v1 > 2").value + c.prob("v1 <= 2").value == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("draws", [500, 8000])
def test_joint_events_agree_with_the_normal_cdf(gaussian: AnyOrderModel, draws: int) -> None:
    c = Conditional(gaussian, {"v0": 1.0}, draws=draws)
    found = c.prob("v1 > -1, 0 < v2 < 4, v3 < 1")
    close(found, box({1: -1.0, 2: 0.0}, {2: 4.0, 3: 1.0}, {0: 1.0}), 1e-4)
    assert 0 < found.standard_error < 0.3 * found.value / math.sqrt(draws / 100)
    assert found.method == f"truncated draws ({draws})"


def test_answers_under_ranges_are_ratios_of_boxes(gaussian: AnyOrderModel) -> None:
    c = Conditional(gaussian, {"v0": 1.0, "v1": Between(-1, None), "v2": "0..4"}, draws=4000)
    below = box({1: -1.0, 2: 0.0}, {2: 4.0}, {0: 1.0})
    for place in (-1.0, 0.5, 2.0):
        truth = box({1: -1.0, 2: 0.0}, {2: 4.0, 3: place}, {0: 1.0}) / below
        close(c["v3"].cdf(place), truth, 1e-4)
        close(c.prob(v3=Between(None, place)), truth, 1e-4)
    # The density is the derivative of that cdf; the mean its integral.
    grid = np.linspace(-9, 9, 61)
    cdf = np.array([box({1: -1.0, 2: 0.0}, {2: 4.0, 3: x}, {0: 1.0}) / below for x in grid])
    close(c["v3"].pdf(0.5), (cdf[32] - cdf[31]) / (grid[1] - grid[0]) if grid[31] == 0.5 else _slope(0.5, below), 1e-3)
    close(c["v3"].mean(), float(grid[-1] - np.trapezoid(cdf, grid)), 5e-3)
    close(c["v3"].quantile(0.5), float(np.interp(0.5, cdf, grid)), 5e-3)
    close(c.log_prob(v3=0.5), math.log(_slope(0.5, below)), 2e-3)


def _slope(place: float, below: float) -> float:
    ends = [box({1: -1.0, 2: 0.0}, {2: 4.0, 3: place + step}, {0: 1.0}) / below for step in (-0.05, 0.05)]
    return (ends[1] - ends[0]) / 0.1


def test_an_event_about_a_range_variable_itself(gaussian: AnyOrderModel) -> None:
    c = Conditional(gaussian, {"v0": 1.0, "v1": Between(-1, 3), "v2": Between(0, None)}, draws=4000)
    below = box({1: -1.0, 2: 0.0}, {1: 3.0}, {0: 1.0})
    close(c.prob("v1 > 1"), box({1: 1.0, 2: 0.0}, {1: 3.0}, {0: 1.0}) / below, 1e-4)
    close(c.prob("v1 > 1, v3 < 0"), box({1: 1.0, 2: 0.0}, {1: 3.0, 3: 0.0}, {0: 1.0}) / below, 1e-4)
    close(c["v1"].cdf(1.0), 1 - box({1: 1.0, 2: 0.0}, {1: 3.0}, {0: 1.0}) / below, 1e-4)
    assert c.prob("v1 > 5").value == 0
    one = Conditional(gaussian, {"v1": Between(-1, 3)})
    exact = one.prob("v1 > 1")
    assert exact.standard_error == 0
    assert exact.value == pytest.approx(box({1: 1.0}, {1: 3.0}, {}) / box({1: -1.0}, {1: 3.0}, {}), abs=1e-7)


def test_a_variable_inside_its_own_range(gaussian: AnyOrderModel) -> None:
    """The truncated normal has its moments and entropy in closed form."""
    from scipy.stats import truncnorm

    location, scale = SCALE * MEAN[1], SCALE * math.sqrt(COVARIANCE[1, 1])
    for low, high in ((-1.0, 2.0), (3.0, None), (None, -6.0)):
        ends = [(-80.0 if low is None else low) - location, (80.0 if high is None else high) - location]
        law = truncnorm(ends[0] / scale, ends[1] / scale, location, scale)
        answer = Conditional(gaussian, {"v1": Between(low, high)})["v1"]
        assert answer.mean() == pytest.approx(law.mean(), rel=1e-6)
        assert answer.std() == pytest.approx(law.std(), rel=1e-5)
        assert answer.entropy() == pytest.approx(float(law.entropy()), abs=1e-5)
        assert answer.quantile([0.1, 0.5, 0.9]) == pytest.approx(law.ppf([0.1, 0.5, 0.9]), rel=1e-7)
        inside = float(law.mean())
        assert answer.pdf(inside) == pytest.approx(law.pdf(inside), rel=1e-8)
        assert answer.cdf(inside) == pytest.approx(law.cdf(inside), rel=1e-8)
        assert answer.pdf(-1.5 if low is not None else 0.0) == 0


@pytest.mark.parametrize("far", [4.0, 6.0, 7.5])
def test_rare_events_keep_their_digits(gaussian: AnyOrderModel, far: float) -> None:
    location, scale = SCALE * MEAN[2], SCALE * math.sqrt(COVARIANCE[2, 2])
    below = Conditional(gaussian).prob(v2=Between(None, location - far * scale))
    assert below.value == pytest.approx(norm.cdf(-far), rel=1e-8)
    above = Conditional(gaussian).prob(v2=Between(location + far * scale, None))
    assert above.value == pytest.approx(norm.sf(far), rel=1e-2 if far > 7 else 1e-6)
    # A joint event of that size, and an answer given it: every draw lies inside.
    c = Conditional(gaussian, {"v2": Between(None, location - far * scale), "v3": Between(0, None)}, draws=2000)
    drawn = c.sample(200, seed=1)
    assert (drawn["v2"] <= location - far * scale + 1e-9).all()
    assert (drawn["v3"] >= 0).all()


def test_a_rare_joint_event(gaussian: AnyOrderModel) -> None:
    found = Conditional(gaussian, draws=4000).prob("v0 > 6, v1 > 6, v2 < 2.2")
    # The normal cdf of three variables is itself estimated by random points, to some 1e-5: too coarse for a rare event.
    truth = _by_quadrature(6.0, 6.0, 2.2)
    assert 0 < found.standard_error < 0.1 * found.value
    assert abs(found.value - truth) < 4 * found.standard_error + 1e-3 * truth


def _by_quadrature(first: float, second: float, third: float) -> float:
    """P(x0 > first, x1 > second, x2 < third) by two nested Gauss rules over the Cholesky coordinates."""
    nodes, weights = np.polynomial.legendre.leggauss(200)

    def above(low: float) -> tuple[np.ndarray, np.ndarray]:
        return low + 4 * (1 + nodes), 4 * weights

    total = 0.0
    for a, wa in zip(*above((first / SCALE - MEAN[0]) / ROOT[0, 0]), strict=True):
        for b, wb in zip(*above((second / SCALE - MEAN[1] - ROOT[1, 0] * a) / ROOT[1, 1]), strict=True):
            c = norm.cdf((third / SCALE - MEAN[2] - ROOT[2, 0] * a - ROOT[2, 1] * b) / ROOT[2, 2])
            total += wa * wb * norm.pdf(a) * norm.pdf(b) * c
    return float(total)


def test_weights_are_unbiased_and_errors_honest(gaussian: AnyOrderModel) -> None:
    truth = box({1: 0.0, 3: 1.0}, {2: 2.0}, {})
    found = [Conditional(gaussian, draws=100, seed=s).prob("v1 > 0, v2 < 2, v3 > 1") for s in range(120)]
    values = np.array([estimate.value for estimate in found])
    assert abs(values.mean() - truth) < 4 * values.std() / math.sqrt(120) + 1e-5
    stated = np.array([estimate.standard_error for estimate in found])
    assert 0.8 < values.std() / stated.mean() < 1.25
    z = (values - truth) / stated
    assert 0.9 <= (np.abs(z) < 1.96).mean() <= 0.99


def test_a_random_order_gives_the_same_answer(gaussian: AnyOrderModel) -> None:
    model = gaussian_model(MEAN, COVARIANCE, Random(), scale=SCALE)
    close(Conditional(model, draws=2000).prob("v1 > 0, v2 < 2"), box({1: 0.0}, {2: 2.0}, {}), 1e-5)


# Tables: every event is a sum.


def joint(model: AnyOrderModel) -> np.ndarray:
    """The chain's own joint distribution over all cells, by enumeration."""
    cells = torch.tensor(list(itertools.product(*map(range, LEVELS))), dtype=torch.float64)
    everything = torch.ones(cells.shape, dtype=torch.bool)
    chain = model.chain(Query(~everything, everything))
    with torch.no_grad():
        nats = model.step_log_prob(cells, chain).double().sum(1)
    return np.asarray(nats.exp().reshape(LEVELS))


def test_sets_of_levels_against_the_sum(table: AnyOrderModel) -> None:
    p = joint(table)
    c = Conditional(table, draws=4000)
    close(c.prob(a="0", b=OneOf("0", "2"), c="1", d="{1, 3}"), float(p[0][[0, 2]][:, 1][:, [1, 3]].sum()), 1e-7)
    # Evidence as sets of the first variables of the order, so the chain is the same.
    ranged = Conditional(table, {"a": "1", "b": "{0, 2}", "c": OneOf("0", "1")}, draws=4000)
    inside = p[1][[0, 2]]
    truth = inside.sum(axis=(0, 1)) / inside.sum()
    for level, probability in ranged["d"].probs().items():
        close(probability, float(truth[int(level)]), 1e-6)
    drawn = ranged.sample(2000, seed=3)
    assert set(drawn["b"]) == {"0", "2"}
    assert set(drawn["a"]) == {"1"}
    counts = drawn["d"].value_counts(normalize=True)
    for level, share in enumerate(truth):
        assert counts.get(str(level), 0.0) == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / 2000) + 1e-9)


def test_joint_entropy_and_information_against_the_sum(table: AnyOrderModel) -> None:
    p = joint(table).sum(axis=(2, 3))
    c = Conditional(table, draws=4000)
    close(c.entropy("a", "b"), float(-(p * np.log(p)).sum()), 1e-5)
    conditional = p / p.sum(axis=1, keepdims=True)
    inner = -(conditional * np.log(conditional)).sum(axis=1)
    marginal = np.array(list(c["b"].probs().values()))
    truth = float(-(marginal * np.log(marginal)).sum() - (p.sum(axis=1) * inner).sum())
    close(mutual_information(c, ["a"], ["b"]), truth, 1e-5)


def test_gaussian_information_is_closed_form(gaussian: AnyOrderModel) -> None:
    c = Conditional(gaussian, {"v0": 1.0}, draws=500)
    left = COVARIANCE[1:, 1:] - np.outer(COVARIANCE[1:, 0], COVARIANCE[0, 1:]) / COVARIANCE[0, 0]

    def entropy(*which: int) -> float:
        block = left[np.ix_(which, which)] * SCALE**2
        return 0.5 * float(np.linalg.slogdet(2 * math.pi * math.e * block)[1])

    assert c.entropy("v1", "v2", "v3") == pytest.approx(entropy(0, 1, 2), abs=1e-6)
    assert c.entropy("v2") == pytest.approx(entropy(1), abs=1e-6)
    pair = entropy(0) + entropy(1) - entropy(0, 1)
    assert mutual_information(c, ["v1"], ["v2"]) == pytest.approx(pair, abs=1e-6)
    sets = mutual_information(c.using(draws=2000), ["v1"], ["v2", "v3"])
    close(sets, entropy(0) + entropy(1, 2) - entropy(0, 1, 2), 1e-6)
    four = gaussian_model(MEAN, COVARIANCE)
    both = mutual_information(Conditional(four, draws=3000), ["v0", "v1"], ["v2", "v3"])
    dets = [np.linalg.slogdet(COVARIANCE[np.ix_(w, w)])[1] for w in ([0, 1], [2, 3], [0, 1, 2, 3])]
    close(both, 0.5 * (dets[0] + dets[1] - dets[2]), 1e-6)


def test_entropy_under_ranges(gaussian: AnyOrderModel) -> None:
    """A range as wide as the line changes nothing."""
    wide = Conditional(gaussian, {"v0": Between(-200, 200)})
    whole = 0.5 * float(np.linalg.slogdet(2 * math.pi * math.e * SCALE**2 * COVARIANCE[2:, 2:])[1])
    one = 0.5 * math.log(2 * math.pi * math.e * SCALE**2 * COVARIANCE[3, 3])
    close(wide["v3"].entropy(), one, 0.01)
    close(wide.entropy("v2", "v3"), whole, 0.03)


def test_highest_density_sets(gaussian: AnyOrderModel, table: AnyOrderModel) -> None:
    location, scale = SCALE * MEAN[3], SCALE * math.sqrt(COVARIANCE[3, 3])
    ((low, high),) = Conditional(gaussian)["v3"].hdi(0.9)
    assert (low, high) == pytest.approx((location - 1.6449 * scale, location + 1.6449 * scale), abs=0.02 * scale)
    # Under a one-sided range the set begins at the end of the range.
    ((low, high),) = Conditional(gaussian, {"v3": Between(location, None)})["v3"].hdi(0.5)
    assert low == pytest.approx(location, abs=0.02 * scale)
    assert high == pytest.approx(location + norm.ppf(0.75) * scale, abs=0.02 * scale)
    ((low, high),) = Conditional(gaussian, {"v0": Between(-200, 200)})["v3"].hdi(0.9)
    assert (low, high) == pytest.approx((location - 1.6449 * scale, location + 1.6449 * scale), abs=0.2 * scale)
    answer = Conditional(table)["d"]
    probabilities = answer.probs()
    chosen = answer.hdi(0.6)
    assert sum(probabilities[level] for level in chosen) >= 0.6
    assert min(probabilities[level] for level in chosen) >= max(
        [p for level, p in probabilities.items() if level not in chosen], default=0.0
    )
    assert sum(probabilities[level] for level in chosen[:-1]) < 0.6


def test_what_cannot_happen_is_said(gaussian: AnyOrderModel, table: AnyOrderModel) -> None:
    c = Conditional(gaussian)
    with pytest.raises(UserError, match="ends before it begins"):
        c.given(v1=Between(3, 1))
    with pytest.raises(UserError, match="probability 0"):
        c.given(v1=Between(1, 1))
    with pytest.raises(UserError, match="probability 0"):
        c.given(v1=Between(1e6, 2e6))["v2"].mean()
    assert c.prob(v1=Between(1e6, 2e6)).value == 0
    with pytest.raises(UserError, match="one value has probability 0"):
        c.prob(v1=3.0)
    with pytest.raises(UserError, match="given already"):
        c.given(v1=3.0).prob(v1=Between(0, 1))
    with pytest.raises(UserError, match="no order"):
        Conditional(table, {"a": "0..1"})
    with pytest.raises(UserError, match="not one of its values"):
        Conditional(table, {"b": OneOf("0", "seven")})
    with pytest.raises(UserError, match="needs an event"):
        c.prob()


def test_few_effective_draws_are_said() -> None:
    narrow = gaussian_model(np.zeros(2), np.array([[1.0, 0.995], [0.995, 1.0]]))
    c = Conditional(narrow, {"v0": Between(-3, 3), "v1": Between(1.9, 2.0)}, draws=500)
    with pytest.warns(UserWarning, match="effectively independent"):
        c.sample(400)


def test_regions_alone() -> None:
    """Points and intervals on a distribution whose mass is known: P(k) of four levels."""
    from anyorder.heads.categorical import CategoricalDistribution

    p = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    law = CategoricalDistribution(p.log().expand(3, -1))
    region = Points((1.0, 3.0))
    assert region.log_mass(law).exp().tolist() == pytest.approx([0.6] * 3)
    assert region.draw(law, torch.tensor([0.0, 0.33, 0.34], dtype=torch.float64)).tolist() == [1, 1, 3]
    between = Interval(1.0, 2.0, 0.5, 2.5)
    assert between.log_mass(law).exp().tolist() == pytest.approx([0.5] * 3)
    assert between.draw(law, torch.tensor([0.01, 0.39, 0.41], dtype=torch.float64)).tolist() == [1, 1, 2]
    assert Points((2.0,)).log_mass(CategoricalDistribution(torch.tensor([[0.0, 0.0]]))).tolist() == [-math.inf]


def test_particles_lie_inside_and_carry_the_mass(gaussian: AnyOrderModel) -> None:
    regions = {1: Interval(0.0, 1.0, 0.0, 1.0), 2: Interval(-math.inf, 0.5, -math.inf, 0.5)}
    rows = torch.zeros(50, 4, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    drawn = ranged_draws(gaussian, rows, torch.zeros(4, dtype=torch.bool), regions, generator)
    assert bool(((drawn.values[:, 1] >= 0) & (drawn.values[:, 1] <= 1) & (drawn.values[:, 2] <= 0.5)).all())
    assert drawn.known.tolist() == [False, True, True, False]
    first = norm.cdf((1 - MEAN[1]) / math.sqrt(COVARIANCE[1, 1])) - norm.cdf(-MEAN[1] / math.sqrt(COVARIANCE[1, 1]))
    gain = COVARIANCE[2, 1] / COVARIANCE[1, 1]
    left = math.sqrt(COVARIANCE[2, 2] - gain * COVARIANCE[1, 2])
    second = norm.cdf((0.5 - MEAN[2] - gain * (drawn.values[:, 1].numpy() - MEAN[1])) / left)
    assert drawn.log_weights.exp().numpy() == pytest.approx(first * second, rel=1e-9)


def test_entropy_of_levels_knows_that_probabilities_add_up(table: AnyOrderModel) -> None:
    """The standard error is that of the spread of entropies over seeds, not of levels that vary by themselves."""
    names = table.schema.names
    said = {names[0]: OneOf(*table.schema.variables[0].levels[:2])}
    found = [Conditional(table, said, draws=50, seed=seed)[names[-1]].entropy() for seed in range(60)]
    spread = float(np.std([float(one) for one in found], ddof=1))
    claimed = float(np.mean([one.standard_error for one in found]))
    assert claimed == pytest.approx(spread, rel=0.35)


def test_mutual_information_of_a_variable_with_a_range_is_refused(gaussian: AnyOrderModel) -> None:
    names = gaussian.schema.names
    with pytest.raises(UserError, match="is given"):
        mutual_information(Conditional(gaussian, {names[0]: Between(0.0, 1.0)}), [names[0]], [names[1]])


@pytest.fixture(scope="module", params=[True, False], ids=["declared", "guessed"])
def bounded(request: pytest.FixtureRequest) -> AnyOrderModel:
    """Three normals: cut at 0 and 10, whole numbers from 0 to 10, and a spike at 0 with a continuum up to 10."""
    ends = {"bounds": (0.0, 10.0), "declared": request.param}
    line, whole = Variable("line", Kind.CONTINUOUS, **ends), Variable("whole", Kind.INTEGER, **ends)
    spike = Variable("spike", Kind.SPIKED, atoms=(0.0,), **ends)
    schema = Schema((line, whole, spike, Variable("other", Kind.CONTINUOUS)))
    warp = Warp.affine(5.0, 2.0)
    codecs = (
        LineCodec(line, warp),
        LatticeCodec(whole, warp, 0, 10),
        SpikedCodec(spike, LineCodec(spike, warp)),
        LineCodec(schema.variables[3], warp),
    )
    encoding = Encoding(schema, codecs)
    heads = [head_for(codec, 2, {"continuous": {"name": "gaussian"}}) for codec in codecs]
    return AnyOrderModel.build(
        encoding, heads, {"name": "residual_mlp", "width": 16, "blocks": 1}, Canonical(), seed=0
    ).eval()


@pytest.mark.parametrize("name", ["line", "whole", "spike"])
def test_events_outside_the_bounds_are_impossible(bounded: AnyOrderModel, name: str) -> None:
    c = Conditional(bounded)
    for event in (f"{name} > 200", f"{name} > 10", f"{name} < 0", f"{name} < -7", f"{name}=20..30"):
        assert c.prob(event).value == 0.0, event
        assert c.prob(f"{event}, other > 5").value == 0.0
        with pytest.raises(UserError, match="probability 0 under the model"):
            c.given({name: event.removeprefix(name).removeprefix("=")})["other"].mean()
        with pytest.raises(UserError, match="probability 0 under the model"):
            c.given({name: event.removeprefix(name).removeprefix("=")}).prob(f"{name} > 3")
    # What lies beyond a bound adds nothing to a range that reaches there.
    assert c.prob({name: Between(4, 200)}).value == pytest.approx(1 - c.prob(f"{name} < 4").value, abs=1e-9)
    assert c.prob({name: Between(-50, 200)}).value == pytest.approx(1, abs=1e-12)
    assert c.given({name: Between(4, 200)})[name].cdf(10) == pytest.approx(1, abs=1e-12)


def test_values_outside_the_bounds_are_impossible(bounded: AnyOrderModel) -> None:
    c = Conditional(bounded)
    assert c.prob("whole=60").value == 0.0
    assert c.prob(spike=-3).value == 0.0
    assert c.prob(whole=OneOf(60, 70)).value == 0.0
    assert c.prob(whole=OneOf(5, 60)).value == pytest.approx(c.prob(whole=5).value, rel=1e-9)


def _given_a_range(low: float, high: float, grid: np.ndarray) -> np.ndarray:
    """The density of v3 given low <= v0 <= high: its own normal times the probability of the range given v3."""
    mean, covariance = SCALE * MEAN, SCALE**2 * COVARIANCE
    slope = covariance[0, 3] / covariance[3, 3]
    location = mean[0] + slope * (grid - mean[3])
    rest = math.sqrt(covariance[0, 0] - slope * covariance[0, 3])
    held = norm.cdf((high - location) / rest) - norm.cdf((low - location) / rest)
    density = norm.pdf(grid, mean[3], math.sqrt(covariance[3, 3])) * held
    return np.asarray(density / np.trapezoid(density, grid))


def test_places_under_ranges_have_standard_errors(gaussian: AnyOrderModel) -> None:
    """Mode, interval and highest-density set against a fine grid of the true density; errors as their spread."""
    grid = np.linspace(-15, 15, 30_001)
    density = _given_a_range(1.5, 6.0, grid)
    cdf = np.cumsum(density) * (grid[1] - grid[0])
    order = np.argsort(-density)
    inside = np.sort(grid[order[: np.searchsorted(np.cumsum(density[order]) * (grid[1] - grid[0]), 0.8)]])
    truth = {
        "mode": grid[np.argmax(density)],
        "low": np.interp(0.1, cdf, grid),
        "high": np.interp(0.9, cdf, grid),
        "first": inside[0],
        "last": inside[-1],
    }
    found: dict[str, list[Estimate]] = {name: [] for name in truth}
    for seed in range(12):
        answer = Conditional(gaussian, {"v0": Between(1.5, 6.0)}, draws=400, seed=seed)["v3"]
        ((first, last),) = answer.hdi(0.8)
        low, high = answer.interval(0.8)
        for name, value in zip(found, (answer.mode(), low, high, first, last), strict=True):
            found[name].append(value)
    for name, values in found.items():
        errors = np.array([value.standard_error for value in values])
        assert (errors > 0).all()
        assert all("truncated draws (400)" in value.method for value in values)
        far = np.array([float(value) for value in values]) - truth[name]
        # An end of a highest-density set lies on a grid; a mode is flat, so its error is the least sure of all.
        assert abs(far.mean()) < 4 * errors.mean() / math.sqrt(len(far)) + 0.03, (name, far, errors)
        assert 0.4 < far.std() / errors.mean() < 2.2, (name, far.std(), errors.mean())


def test_quantiles_of_whole_numbers_under_ranges_have_standard_errors(bounded: AnyOrderModel) -> None:
    c = Conditional(bounded, {"line": Between(2, 6), "other": Between(3, None)}, draws=500)
    for name in ("whole", "spike"):
        for value in (c[name].median(), *c[name].interval(0.8), c[name].mode()):
            assert isinstance(value, float)
            if not (name == "spike" and value == 0.0):
                assert isinstance(value, Estimate), name
                assert "truncated draws (500)" in value.method
                assert 0 <= value.standard_error < 1


def test_an_atom_inside_its_own_range_keeps_its_probability(bounded: AnyOrderModel) -> None:
    c = Conditional(bounded, {"spike": Between(0, 5)})
    truth = Conditional(bounded).prob(spike=0).value / Conditional(bounded).prob(spike=Between(0, 5)).value
    assert c["spike"].probs()[0.0] == pytest.approx(truth, rel=1e-6)
    other = Conditional(bounded, {"spike": Between(0, 5), "other": Between(-500, 500)}, draws=400)
    # Nothing lies below the atom, so the cdf there is its probability.
    held = other["spike"].probs()[0.0]
    assert float(held) == pytest.approx(other["spike"].cdf(0.0).value, rel=1e-6)
    assert 0.3 < float(held) < 1
    assert held.standard_error > 0


@pytest.mark.parametrize("level", [0.9, 0.998, 0.999, 0.9999, 0.99999])
def test_highest_density_sets_of_high_levels(gaussian: AnyOrderModel, level: float) -> None:
    location, scale = SCALE * MEAN[3], SCALE * math.sqrt(COVARIANCE[3, 3])
    ((low, high),) = Conditional(gaussian)["v3"].hdi(level)
    reach = norm.ppf((1 + level) / 2) * scale
    assert (low, high) == pytest.approx((location - reach, location + reach), abs=0.01 * scale)
    held = norm.cdf(high, location, scale) - norm.cdf(low, location, scale)
    assert level <= held < level + 0.1 * (1 - level) + 5e-3 * level * (level < 0.99)
    ((low, high),) = Conditional(gaussian, {"v0": Between(-300, 300)})["v3"].hdi(level)
    assert (low, high) == pytest.approx((location - reach, location + reach), abs=0.3 * scale)


def test_highest_density_sets_too_near_to_everything_are_refused(gaussian: AnyOrderModel) -> None:
    with pytest.raises(UserError, match=r"up to the level 0\.99999"):
        Conditional(gaussian)["v3"].hdi(0.9999999)
