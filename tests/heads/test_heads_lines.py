"""Spline, energy and Student heads against quadrature on a very fine grid, scipy and closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import scipy.stats
import torch

from anyorder.errors import UserError
from anyorder.heads import GaussianMixture, Head, heads
from anyorder.heads.ace_energy import AceEnergy
from anyorder.heads.energy import Energy
from anyorder.heads.spline import Spline
from anyorder.heads.student_mixture import StudentMixture
from anyorder.support.registry import describe
from anyorder.testing import check_head

LEVELS = torch.tensor([1e-9, 1e-4, 0.05, 0.5, 0.93, 1 - 1e-6], dtype=torch.float64)[:, None]


def features(head: Head, rows: int = 4, size: float = 0.7, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return size * torch.randn(rows, head.size, generator=generator, dtype=torch.float64)


def sharp_energy(**options: object) -> Energy:
    """An energy with steep walls, as after long training, on a float64 network."""
    head = Energy(components=3, latent=4, hidden=8, **options).double().eval()  # type: ignore[arg-type]
    with torch.no_grad():
        head.network.read_value.weight.mul_(4)
        head.network.leave.weight.mul_(60)
    return head


def sharp_ace(**options: object) -> AceEnergy:
    """ACE's own form with the same kind of walls."""
    chosen = {"components": 3, "latent": 4, "hidden": 8, "blocks": 2, "limit": 10.0, "normaliser": "quadrature"}
    head = AceEnergy(**(chosen | options)).double().eval()  # type: ignore[arg-type]
    with torch.no_grad():
        head.network.leave.weight.mul_(60)
    return head


LINES: list[Head] = [Spline(16), Spline(1), sharp_energy(), sharp_ace(), StudentMixture(5), GaussianMixture(3)]


@pytest.mark.parametrize("head", LINES, ids=lambda head: head.name)
def test_contract(head: Head) -> None:
    if head.name != "student_mixture":  # its 1e-10 quantiles are too far apart for an even grid; see below
        check_head(head)
    again = heads.build(describe(head))
    assert describe(again) == describe(head)
    assert again.start().shape == (head.size,)
    assert bool(again(again.start()).log_prob(torch.zeros(())).isfinite())


@pytest.mark.parametrize("head", LINES, ids=lambda head: head.name)
def test_cdf_and_quantile_undo_each_other_out_to_the_tails(head: Head) -> None:
    distribution = head.double()(features(head))
    reached = distribution.cdf(distribution.quantile(LEVELS))
    torch.testing.assert_close(reached, LEVELS.expand_as(reached), rtol=1e-4, atol=1e-12)
    assert distribution.quantile(torch.tensor([0.0, 1.0]).double()[:, None]).isinf().all()


@pytest.mark.parametrize("head", LINES, ids=lambda head: head.name)
def test_mean_entropy_and_intervals_against_a_fine_grid(head: Head) -> None:
    distribution = head.double()(features(head))
    # Bounded test function: the grid need not follow heavy tails to infinity.
    edges = distribution.quantile(torch.tensor([[1e-9], [1 - 1e-9]], dtype=torch.float64)).detach()
    steps = torch.linspace(0, 1, 100_001, dtype=torch.float64)[:, None]
    if head.name == "student_mixture":  # its range is a million scales: condense the grid in the middle
        steps = 0.5 + (12 * (2 * steps - 1)).sinh() / (2 * math.sinh(12))
    grid = edges[0] + (edges[1] - edges[0]) * steps
    with torch.no_grad():
        log_density = distribution.log_prob(grid)
    density = log_density.exp()
    for found, oracle in (
        (torch.ones_like(density[0]), density),
        (distribution.expect(torch.tanh), density * grid.tanh()),
        (distribution.entropy(), -density * log_density),
    ):
        torch.testing.assert_close(found, torch.trapezoid(oracle, grid, dim=0), rtol=2e-5, atol=2e-5)
    low, high = torch.full((4,), -0.3).double(), torch.full((4,), 0.4).double()
    inside = torch.linspace(-0.3, 0.4, 20_001, dtype=torch.float64)[:, None]
    with torch.no_grad():
        mass = torch.trapezoid(distribution.log_prob(inside).exp(), inside, dim=0)
    torch.testing.assert_close(distribution.log_between(low, high).exp(), mass, rtol=1e-5, atol=1e-7)
    coarse = distribution.expect(torch.tanh, fine=False)
    torch.testing.assert_close(coarse, distribution.expect(torch.tanh), rtol=0.0, atol=0.06)


@pytest.mark.parametrize("head", LINES, ids=lambda head: head.name)
def test_draws_follow_the_cdf(head: Head) -> None:
    row = features(head, rows=1)
    count = 500 if head.name.endswith("energy") else 4000
    distribution = head.double()(row.expand(count, -1))
    drawn = distribution.sample(torch.Generator().manual_seed(3))
    place = distribution.cdf(drawn).detach().numpy()
    assert scipy.stats.kstest(place, "uniform").pvalue > 1e-3
    assert len(set(drawn.tolist())) == count


@pytest.mark.parametrize("head", [Spline(8), GaussianMixture(3)], ids=lambda head: head.name)
def test_far_tails_keep_their_logarithm(head: Head) -> None:
    """P(X > far) where the cdf is 1 in floats: the ratio of two tails is the mean excess of a normal tail."""
    row = head.start()[None]
    distribution = head.float()(row)
    scale = 1.0 if head.name == "spline" else 0.7
    centre = 0.0 if head.name == "spline" else 1.0
    far = torch.tensor([12.0])
    found = distribution.log_between(far, torch.tensor([math.inf]))
    weight = 0.0 if head.name == "spline" else math.log(1 / 3)
    expected = scipy.stats.norm.logsf((12.0 - centre) / scale) + weight
    assert float(found) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    "head",
    [Spline(16), StudentMixture(6), Energy(3), AceEnergy(3, normaliser="quadrature")],
    ids=lambda head: head.name,
)
def test_single_precision_is_safe(head: Head) -> None:
    head = head.float().eval()
    rows = features(head, size=2.0).float().requires_grad_()
    values = torch.tensor([-300.0, -20.0, -3.0, 0.0, 1.0, 9.0, 300.0])[:, None]
    log_prob = head(rows).log_prob(values)
    log_prob.sum().backward()
    assert log_prob.isfinite().all() and rows.grad is not None and rows.grad.isfinite().all()
    with torch.no_grad():
        exact = head.double()(rows.double()).log_prob(values.double())
    torch.testing.assert_close(log_prob.double(), exact, rtol=1e-3, atol=1e-3)
    head.float()


def test_untrained_spline_is_the_normal() -> None:
    row = Spline(16).start().double()
    row[0], row[1] = 0.7, math.log(2.0)
    value = torch.linspace(-30, 30, 50, dtype=torch.float64)
    expected = torch.as_tensor(scipy.stats.norm(0.7, 2.0).logpdf(value.numpy()))
    torch.testing.assert_close(Spline(16)(row).log_prob(value), expected)


@pytest.mark.parametrize(("component", "degrees"), [(0, 2), (1, 4), (2, math.inf)])
def test_student_components(component: int, degrees: float) -> None:
    head = StudentMixture(3)
    row = torch.zeros(9, dtype=torch.float64)
    row[:3] = -60.0
    row[component] = 0.0
    distribution = head(row)
    oracle = scipy.stats.norm() if math.isinf(degrees) else scipy.stats.t(degrees)
    value = torch.tensor([-7.0, -3.0, -0.2, 0.0, 1.0, 6.0], dtype=torch.float64)
    torch.testing.assert_close(
        distribution.log_prob(value), torch.as_tensor(oracle.logpdf(value.numpy())), atol=1e-9, rtol=1e-9
    )
    torch.testing.assert_close(
        distribution.cdf(value), torch.as_tensor(oracle.cdf(value.numpy())), atol=1e-12, rtol=1e-9
    )
    drawn = head(row.expand(4000, -1)).sample(torch.Generator().manual_seed(0))
    assert scipy.stats.kstest(drawn.numpy(), oracle.cdf).pvalue > 1e-3


@pytest.mark.parametrize("made", [sharp_energy, sharp_ace])
def test_importance_normaliser_is_unbiased_for_z_and_near_in_many_draws(made: Callable[..., Head]) -> None:
    exact = made(normaliser="quadrature")
    rows = features(exact)
    value = torch.zeros(4, dtype=torch.float64)
    drawn = made(normaliser="importance", evaluation_draws=20_000)
    first, second = (drawn(rows).log_prob(value) for _ in range(2))
    assert torch.equal(first, second), "an answer after training must not change from call to call"
    torch.testing.assert_close(first, exact(rows).log_prob(value), rtol=0.0, atol=0.1)
    few = made(normaliser="importance").train()
    passes = torch.stack([few(rows).log_prob(value) for _ in range(300)])
    assert not torch.equal(passes[0], passes[1]), "training needs fresh draws in every pass"
    # E[Z^] = Z, so E[exp(-log p^)] = exp(-log p).
    inverse = (-passes).exp()
    error = inverse.std(0) / math.sqrt(300)
    assert ((inverse.mean(0) - (-exact(rows).log_prob(value)).exp()).abs() < 4 * error).all()


@pytest.mark.parametrize("head", [Energy(components=1), AceEnergy(components=1, latent=16)], ids=lambda head: head.name)
def test_energy_and_proposal_both_learn(head: Energy | AceEnergy) -> None:
    head = head.train()
    rows = (head.start() + 0.1)[None].requires_grad_()
    head(rows).log_prob(torch.tensor([1.3])).sum().backward()
    assert rows.grad is not None
    proposal = GaussianMixture(1)
    own = (head.start() + 0.1)[16:][None].requires_grad_()
    proposal(own).log_prob(torch.tensor([1.3])).sum().backward()
    torch.testing.assert_close(rows.grad[:, 16:], own.grad)  # maximum likelihood of its own, as in ACE
    for name, parameter in head.network.named_parameters():
        assert parameter.grad is not None and bool((parameter.grad != 0).any()), name


@pytest.mark.parametrize(
    "options",
    [
        {"name": "spline", "bins": 0},
        {"name": "energy", "normaliser": "magic"},
        {"name": "energy", "draws": 0},
        {"name": "ace_energy", "blocks": 0},
        {"name": "ace_energy", "blocks": 10**9},
        {"name": "ace_energy", "normaliser": "magic"},
    ],
)
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(UserError):
        heads.build(options)


def test_without_the_proposal_only_the_energy_is_the_density() -> None:
    """log p(a) - log p(b) = e(b) - e(a) within the proposal's reach, wherever its components are."""
    head = sharp_ace()
    rows = features(head)
    moved = rows.clone()
    moved[:, head.latent :] += 0.3 * torch.randn(rows[:, head.latent :].shape, dtype=torch.float64)
    values = torch.tensor([-2.0, 0.3, 1.7], dtype=torch.float64)[:, None]
    one, other = (head(part).log_prob(values.expand(3, len(rows))) for part in (rows, moved))
    torch.testing.assert_close(one - one[0], other - other[0])
    energy = head.network(values.T.expand(len(rows), 3), None, rows[:, : head.latent])
    torch.testing.assert_close(one - one[0], (energy[:, :1] - energy).T)


def test_far_tails_of_an_energy_alone_are_bounded_from_below() -> None:
    """Beyond the grid of the normaliser: at most twice the greatest energy below the truth, never above it."""
    head = sharp_ace()
    distribution = head(features(head))
    low, high = torch.tensor([200.0]).double(), torch.tensor([203.0]).double()
    grid = torch.linspace(200, 203, 30_001, dtype=torch.float64)[:, None]
    with torch.no_grad():
        truth = (distribution.log_prob(grid) + math.log(1e-4)).logsumexp(0)
    found = distribution.log_between(low, high)
    assert (found <= truth + 0.05).all() and (found >= truth - 2 * head.limit - 0.05).all()
