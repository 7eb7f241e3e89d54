"""What a measurement is expected to tell, against closed forms, enumeration and fine quadrature."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.integrate import trapezoid
from scipy.stats import norm

from anyorder.model import AnyOrderModel
from anyorder.questions.gains import Goal, answered, expected_gains, uncertainty_now
from anyorder.questions.uncertainty import UNCERTAINTIES

from models import ClassAndNumber, categorical_model, class_and_number_model, gaussian_model, joint_table_model

INFORMATION = UNCERTAINTIES["information"]


def _row(model: AnyOrderModel, known: dict[int, float]) -> tuple[torch.Tensor, torch.Tensor]:
    values = torch.zeros(1, model.variables, dtype=torch.float64)
    mask = torch.zeros(1, model.variables, dtype=torch.bool)
    for place, value in known.items():
        values[0, place], mask[0, place] = value, True
    return values, mask


def test_gaussian_information_of_sixty_triples() -> None:
    rng = np.random.default_rng(0)
    for number in range(60):
        size = int(rng.integers(3, 8))
        root = rng.normal(size=(size, size))
        covariance = root @ root.T + 0.2 * np.eye(size)
        model = gaussian_model(rng.normal(size=size), covariance, scale=float(rng.uniform(0.1, 30)))
        order = rng.permutation(size).tolist()
        targets = tuple(order[: rng.integers(1, 3)])
        rest = order[len(targets) :]
        candidate = tuple(rest[: rng.integers(1, len(rest) + 1)])
        evidence = rest[len(candidate) :]
        goal = Goal(targets, INFORMATION)
        row, known = _row(model, {place: float(rng.normal()) for place in evidence})
        found = expected_gains(model, row, known, goal, [candidate], 32, seed=number)[0]

        def log_det(*parts: object, covariance: np.ndarray = covariance, evidence: list[int] = evidence) -> float:
            places = [*evidence, *(place for part in parts for place in part)]  # type: ignore[attr-defined]
            return float(np.linalg.slogdet(covariance[np.ix_(places, places)])[1])

        truth = 0.5 * (log_det(targets) + log_det(candidate) - log_det() - log_det(targets, candidate))
        assert abs(float(found.mean[0]) - truth) <= 3 * float(found.error[0]) + 1e-3
        assert float(found.mean[0]) >= 0


@pytest.fixture(scope="module", params=["residual_mlp", "causal_transformer"])
def table(request: pytest.FixtureRequest) -> AnyOrderModel:
    return categorical_model({"name": request.param, "width": 16})


def _probabilities(model: AnyOrderModel, known: dict[int, float], variable: int) -> np.ndarray:
    values, mask = _row(model, known)
    with torch.no_grad():
        features = model.features_of(values, mask, variable).double()
        distribution = model.heads.distribution(features, variable)
        levels = torch.arange(len(model.schema.variables[variable].levels), dtype=torch.float64)
        return distribution.log_prob(levels[:, None])[:, 0].exp().double().numpy()


def _chain_by_hand(
    model: AnyOrderModel, known: dict[int, float], group: tuple[int, ...]
) -> dict[tuple[int, ...], float]:
    """The probability of every combination of levels of a group, along the chain."""
    if not group:
        return {(): 1.0}
    p = _probabilities(model, known, group[0])
    return {
        (level, *rest): chance * below
        for level, chance in enumerate(p)
        for rest, below in _chain_by_hand(model, {**known, group[0]: float(level)}, group[1:]).items()
    }


def _one_way_by_hand(
    model: AnyOrderModel, known: dict[int, float], told: tuple[int, ...], asked: tuple[int, ...]
) -> tuple[float, float]:
    """Mutual information of the joint p(told) p(asked | told), and KL of its mean p(asked) to the direct one."""
    outer = _chain_by_hand(model, known, told)
    inner = {
        levels: _chain_by_hand(model, {**known, **dict(zip(told, map(float, levels), strict=True))}, asked)
        for levels in outer
    }
    mean = {cell: sum(outer[levels] * inner[levels][cell] for levels in outer) for cell in next(iter(inner.values()))}
    direct = _chain_by_hand(model, known, asked)
    information = sum(
        outer[levels] * p * np.log(p / mean[cell]) for levels in outer for cell, p in inner[levels].items() if p > 0
    )
    return information, sum(p * np.log(p / direct[cell]) for cell, p in mean.items() if p > 0)


def test_listed_answers_are_the_exact_sum(table: AnyOrderModel) -> None:
    for targets, candidates, known in [
        ((0,), [(1,), (2,), (3,), (1, 3)], {}),
        ((3,), [(0,), (1,), (0, 1)], {2: 1.0}),
        ((0, 3), [(1,), (2,), (2, 1)], {}),
    ]:
        row, mask = _row(table, known)
        found = expected_gains(table, row, mask, Goal(targets, INFORMATION), candidates, 256)
        for candidate, gain in zip(candidates, found, strict=True):
            assert gain.listed
            assert float(gain.error[0]) == 0
            one, contradiction = _one_way_by_hand(table, known, candidate, targets)
            other, _ = _one_way_by_hand(table, known, targets, candidate)
            assert float(gain.mean[0]) == pytest.approx((one + other) / 2, abs=1e-5)
            assert float(gain.apart[0]) == pytest.approx(abs(one - other) / 2, abs=1e-5)
            if len(targets) == 1:
                assert float(gain.contradiction[0]) == pytest.approx(contradiction, abs=1e-5)


def test_a_model_that_contradicts_itself_gains_nothing_below_zero() -> None:
    """An untrained network: its answers have nothing to do with each other, and the old difference falls below zero."""
    model = categorical_model({"name": "residual_mlp", "width": 16}, steps=1)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
    row, mask = _row(model, {})
    candidates = [(0,), (1,), (2,), (0, 1), (0, 1, 2)]
    for name, uncertainty in UNCERTAINTIES.items():
        for draws in (2, 3, 8, 256):
            found = expected_gains(model, row, mask, Goal((3,), uncertainty), candidates, draws, seed=draws)
            assert all(float(gain.mean[0]) >= 0 for gain in found), name
            assert all(float(gain.contradiction[0]) >= 0 for gain in found)
    before, after = (float(uncertainty_now(model, row, mask, Goal((3,), INFORMATION))[0]), 0.0)
    for level, chance in enumerate(_probabilities(model, {}, 0)):
        p = _probabilities(model, {0: float(level)}, 3)
        after -= chance * float((p * np.log(p)).sum())
    assert before - after < -0.05  # else there would be nothing to see here
    gain = expected_gains(model, row, mask, Goal((3,), INFORMATION), [(0,)], 256)[0]
    assert float(gain.contradiction[0]) > 0.05


def test_both_ways_round_are_one_number(table: AnyOrderModel) -> None:
    row, mask = _row(table, {2: 1.0})
    for one, other in (((0,), (3,)), ((1,), (3, 0)), ((0, 1), (3,))):
        for draws in (5, 256):
            there = expected_gains(table, row, mask, Goal(other, INFORMATION), [one], draws, seed=1)[0]
            back = expected_gains(table, row, mask, Goal(one, INFORMATION), [other], draws, seed=1)[0]
            assert float(there.mean[0]) == pytest.approx(float(back.mean[0]), abs=1e-9)
            assert float(there.apart[0]) == pytest.approx(float(back.apart[0]), abs=1e-9)


def test_draws_agree_with_the_list(table: AnyOrderModel) -> None:
    """Too few draws to list 12 answers: the stratified estimate stays within its errors, which are not idle."""
    row, mask = _row(table, {})
    goal = Goal((3,), INFORMATION)
    truth = float(expected_gains(table, row, mask, goal, [(0, 1, 2)], 256)[0].mean[0])
    drawn = [expected_gains(table, row, mask, goal, [(0, 1, 2)], 10, seed=seed)[0] for seed in range(60)]
    assert not drawn[0].listed
    means = np.array([float(gain.mean[0]) for gain in drawn])
    errors = np.array([float(gain.error[0]) for gain in drawn])
    assert abs(means.mean() - truth) < 4 * means.std() / 60**0.5
    assert means.std() < 1.3 * np.sqrt((errors**2).mean())
    assert (np.abs(means - truth) < 3 * errors + 1e-9).mean() > 0.9


def test_cases_of_a_batch_do_not_mix(table: AnyOrderModel) -> None:
    rows = [_row(table, known) for known in ({}, {1: 2.0}, {0: 1.0, 2: 0.0})]
    values, masks = (torch.cat(parts) for parts in zip(*rows, strict=True))
    goal = Goal((3,), INFORMATION)
    candidates = [(0,), (1,), (0, 1)]
    together = expected_gains(table, values, masks, goal, candidates, 64, seed=3)
    for case, (row, mask) in enumerate(rows):
        alone = expected_gains(table, row, mask, goal, candidates, 64, seed=3)
        for one, all_ in zip(alone, together, strict=True):
            assert float(all_.mean[case]) == pytest.approx(float(one.mean[0]), abs=1e-5)
    assert float(together[0].mean[2]) == pytest.approx(0, abs=1e-6)  # known already: nothing to gain


def test_unknown_values_do_not_leak(table: AnyOrderModel) -> None:
    row, mask = _row(table, {1: 2.0})
    other = row.clone()
    other[~mask] = 1.0
    goal = Goal((3, 0), INFORMATION)
    for one, two in zip(
        expected_gains(table, row, mask, goal, [(2,)], 64),
        expected_gains(table, other, mask, goal, [(2,)], 64),
        strict=True,
    ):
        torch.testing.assert_close(one.terms, two.terms, rtol=0, atol=0)


def test_weights_of_listed_futures_are_the_answers_probabilities(table: AnyOrderModel) -> None:
    row, mask = _row(table, {})
    futures = answered(table, row, mask, (0, 1), 64)
    assert futures.listed
    assert float(futures.weight.sum()) == pytest.approx(1, abs=1e-6)
    first = _probabilities(table, {}, 0)
    for level, chance in enumerate(first):
        share = futures.weight[futures.values[:, :, 0] == level].sum()
        assert float(share) == pytest.approx(chance, abs=1e-6)


def test_variance_and_error_of_an_exact_table() -> None:
    rng = np.random.default_rng(5)
    table = rng.random((3, 4, 2))
    table /= table.sum()
    model = joint_table_model(table, "abc")
    row, mask = _row(model, {})
    p = table.sum(axis=(0, 1))
    given = table.sum(axis=0) / table.sum(axis=(0, 2))[:, None]
    weight = table.sum(axis=(0, 2))
    expected = {
        "variance": (1 - (p**2).sum()) - (weight * (1 - (given**2).sum(axis=1))).sum(),
        "error": (1 - p.max()) - (weight * (1 - given.max(axis=1))).sum(),
        "information": -(p * np.log(p)).sum() + (weight[:, None] * given * np.log(given)).sum(),
    }
    for name, truth in expected.items():
        found = expected_gains(model, row, mask, Goal((2,), UNCERTAINTIES[name]), [(1,)], 64)[0]
        assert float(found.mean[0]) == pytest.approx(truth, abs=1e-9)


def test_variance_and_error_of_a_gaussian_in_the_units_of_the_data() -> None:
    covariance = np.array([[1.0, 0.6], [0.6, 2.0]])
    model = gaussian_model(np.zeros(2), covariance, scale=3.0)
    row, mask = _row(model, {})
    now = {
        name: float(uncertainty_now(model, row, mask, Goal((0,), UNCERTAINTIES[name]))[0])
        for name in ("variance", "error")
    }
    assert now["variance"] == pytest.approx(9.0, rel=1e-3)
    assert now["error"] == pytest.approx(3 * np.sqrt(2 / np.pi), rel=2e-2)
    gain = expected_gains(model, row, mask, Goal((0,), UNCERTAINTIES["variance"]), [(1,)], 64)[0]
    assert float(gain.mean[0]) == pytest.approx(9 * 0.36 / 2, rel=1e-2)
    # E|x - median| falls with the standard deviation: by 1 - sqrt(1 - rho^2) of it.
    error = expected_gains(model, row, mask, Goal((0,), UNCERTAINTIES["error"]), [(1,)], 64)[0]
    truth = 3 * np.sqrt(2 / np.pi) * (1 - np.sqrt(1 - 0.36 / 2))
    assert float(error.mean[0]) == pytest.approx(truth, rel=2e-2)


def test_levels_and_numbers_against_quadrature() -> None:
    """Each asked about the other: a list of answers one way, draws the other, and one truth."""
    model = class_and_number_model()
    network = model.network
    assert isinstance(network, ClassAndNumber)
    grid = np.linspace(-12, 14, 200_001)
    laws = zip(network.shares, network.means, network.deviations, strict=True)
    joint = np.array([share * norm(mean, deviation).pdf(grid) for share, mean, deviation in laws])
    marginal = joint.sum(axis=0)
    terms = np.where(joint > 0, joint * np.log(joint / (np.array(network.shares)[:, None] * marginal)), 0.0)
    truth = float(trapezoid(terms.sum(axis=0), grid))
    row, mask = _row(model, {})
    about_x = expected_gains(model, row, mask, Goal((1,), INFORMATION), [(0,)], 64)[0]
    assert float(about_x.mean[0]) == pytest.approx(truth, abs=1e-3)
    assert float(about_x.apart[0]) < 1e-3
    assert float(about_x.contradiction[0]) < 1e-4
    found = [expected_gains(model, row, mask, Goal((0,), INFORMATION), [(1,)], 32, seed=seed)[0] for seed in range(60)]
    means = np.array([float(gain.mean[0]) for gain in found])
    errors = np.array([float(gain.error[0]) for gain in found])
    assert (np.abs(means - truth) < 3 * errors).all()
    assert abs(means.mean() - truth) < 1e-3  # cells and few draws take a little away
    posterior = joint / marginal
    entropy = -(posterior * np.log(np.maximum(posterior, 1e-300))).sum(axis=0)
    spread = trapezoid(entropy**2 * marginal, grid) - trapezoid(entropy * marginal, grid) ** 2
    assert means.std() < 0.5 * np.sqrt(spread / 32)  # what stratification is for
    # The variance of x before and after the class is told.
    variance = expected_gains(model, row, mask, Goal((1,), UNCERTAINTIES["variance"]), [(0,)], 64)[0]
    between = np.average(np.square(network.means), weights=network.shares)
    between -= np.average(network.means, weights=network.shares) ** 2
    assert float(variance.mean[0]) == pytest.approx(between, rel=1e-4)


def test_drawn_answers_do_not_leak() -> None:
    model = class_and_number_model()
    row, mask = _row(model, {})
    other = torch.tensor([[2.0, 9.0]], dtype=torch.float64)
    goal = Goal((0,), INFORMATION)
    one, two = (expected_gains(model, values, mask, goal, [(1,)], 32)[0] for values in (row, other))
    torch.testing.assert_close(one.terms, two.terms, rtol=0, atol=0)


def test_pairs_of_candidates_tell_more_than_one() -> None:
    """An exclusive or: neither alone, both together."""
    table = np.zeros((2, 2, 2))
    for a, b in itertools.product(range(2), repeat=2):
        table[a, b, a ^ b] = 0.25
    model = joint_table_model(table, "abc")
    row, mask = _row(model, {})
    one, both = expected_gains(model, row, mask, Goal((2,), INFORMATION), [(0,), (0, 1)], 64)
    assert float(one.mean[0]) == pytest.approx(0, abs=1e-9)
    assert float(both.mean[0]) == pytest.approx(np.log(2), abs=1e-9)
