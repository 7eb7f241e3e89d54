"""The binned head against quadrature, and its bins against the law that its docstring states."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats

from anyorder.errors import UserError
from anyorder.heads import Binned, Bounded, Spiked, heads
from anyorder.heads.blend import Blend
from anyorder.support.registry import describe
from anyorder.testing import check_head
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(0).gamma(2.0, size=500) - 1


def logits(head: Binned, rows: int = 4) -> torch.Tensor:
    return torch.randn(rows, head.size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


BLURS = (0.0, 0.3, 1.0)


@pytest.mark.parametrize("blur", BLURS)
def test_keeps_the_contract(values: np.ndarray, blur: float) -> None:
    check_head(Binned.fit(values, 16).blurred(blur))
    check_head(Binned.fit(np.round(values), 16, lattice=Lattice(0.0, 1.0, None, Warp.affine(0.0, 1.0))).blurred(blur))


def test_every_bin_holds_what_its_logit_says(values: np.ndarray) -> None:
    head = Binned.fit(values, 8)
    features = logits(head)
    distribution = head(features)
    edges = torch.tensor([-math.inf, *head.edges, math.inf], dtype=torch.float64)
    held = distribution.log_between(edges[:-1, None], edges[1:, None]).exp().T
    torch.testing.assert_close(held, features.softmax(-1), atol=1e-12, rtol=0)


@pytest.mark.parametrize("blur", BLURS)
def test_without_knowledge_it_is_the_marginal(values: np.ndarray, blur: float) -> None:
    head = Binned.fit(values, 12).blurred(blur)
    distribution = head(head.start().double()[None])
    grid = torch.linspace(-1.5, 6, 200, dtype=torch.float64)[:, None]
    warp = head.bins.warp
    expected = stats.norm.logpdf(warp.forward(grid).numpy()) + warp.log_slope(grid).numpy()
    np.testing.assert_allclose(distribution.log_prob(grid).numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("blur", BLURS)
def test_mean_and_entropy_by_quadrature(values: np.ndarray, blur: float) -> None:
    head = Binned.fit(values, 10).blurred(blur)
    distribution = head(logits(head))
    # Simpson between the edges, where the density is smooth.
    bounds = [-30.0, *head.bins.kinks, 60.0]
    total = mean = entropy = torch.zeros(4, dtype=torch.float64)
    for low, high in pairwise(bounds):
        inner = torch.linspace(low + 1e-9, high - 1e-9, 20_001, dtype=torch.float64)[:, None]
        density = distribution.log_prob(inner).exp()
        total = total + torch.trapezoid(density, inner, dim=0)
        mean = mean + torch.trapezoid(density * inner, inner, dim=0)
        entropy = entropy - torch.trapezoid(density * density.clamp(min=1e-300).log(), inner, dim=0)
    torch.testing.assert_close(total, torch.ones_like(total), atol=2e-5, rtol=0)
    torch.testing.assert_close(distribution.mean(), mean, atol=1e-4, rtol=0)
    torch.testing.assert_close(distribution.entropy(), entropy, atol=1e-3, rtol=0)


@pytest.mark.parametrize("blur", BLURS)
def test_on_a_lattice_points_share_all_probability(blur: float) -> None:
    counts = np.random.default_rng(0).poisson(4, size=400).astype(float)
    head = Binned.fit((counts - 4) / 2, 6, lattice=Lattice(0.0, 1.0, None, Warp.affine(4.0, 2.0))).blurred(blur)
    distribution = head(logits(head))
    points = torch.arange(-30, 60, dtype=torch.float64)
    mass = distribution.log_prob(((points - 4) / 2)[:, None]).exp()
    torch.testing.assert_close(mass.sum(0), torch.ones(4, dtype=torch.float64), atol=1e-9, rtol=0)
    torch.testing.assert_close(distribution.cdf(((points - 4) / 2)[:, None]), mass.cumsum(0), atol=1e-9, rtol=0)
    torch.testing.assert_close(distribution.mean(), (mass * (points[:, None] - 4) / 2).sum(0), atol=1e-6, rtol=0)
    entropy = -(mass * mass.clamp(min=1e-300).log()).sum(0)
    torch.testing.assert_close(distribution.entropy(), entropy, atol=1e-6, rtol=0)


@pytest.mark.parametrize("blur", BLURS)
def test_draws_follow_the_cdf(values: np.ndarray, blur: float) -> None:
    head = Binned.fit(values, 8).blurred(blur)
    features = logits(head, rows=1).expand(5000, -1)
    drawn = head(features).sample(torch.Generator().manual_seed(3))
    levels = head(features[:1]).cdf(drawn[:, None])[:, 0].numpy()
    assert stats.kstest(levels, "uniform").pvalue > 1e-3


def test_far_tails_keep_their_digits(values: np.ndarray) -> None:
    head = Binned(warp=Warp.affine(0.0, 1.0))
    distribution = head(head.start().double()[None])
    far = torch.tensor([[8.0]], dtype=torch.float64)
    nats = distribution.log_between(far, torch.full_like(far, math.inf))
    assert float(nats) == pytest.approx(stats.norm.logsf(8.0), rel=1e-5)


def test_is_described_and_built_again(values: np.ndarray) -> None:
    head = Binned.fit(values, 8, lattice=Lattice(0.0, 1.0, None, Warp.affine(4.0, 2.0)))
    again = heads.build(describe(head))
    features = logits(head)
    assert torch.equal(head(features).cdf(features[:, 0]), again(features).cdf(features[:, 0]))


def test_bins_hold_equal_counts(values: np.ndarray) -> None:
    head = Binned.fit(values, 10, shift=0.0)
    counts = np.bincount(head.classes(torch.as_tensor(values))[0].numpy())
    assert len(counts) == head.size == 10
    assert counts.max() - counts.min() <= 2


def test_blended_entropy_is_exact_across_the_knots_of_a_bent_column() -> None:
    generator = np.random.default_rng(0)
    values = np.exp(generator.normal(size=400))
    members = [Binned.fit(values, 8, shift) for shift in (0.25, 0.75)]
    head = Blend(tuple(members), (0.4, 0.6), (0, members[0].size))
    distribution = head(torch.as_tensor(generator.normal(size=head.size)))
    ends = distribution.quantile(torch.tensor([1e-9, 1 - 1e-9], dtype=torch.float64))
    # Even in log x: the column is narrow below and has a long tail above.
    low = float(ends[0].clamp(max=-1e-6))
    z = torch.cat([torch.linspace(low, 0.01, 200_001), torch.logspace(-2, float(ends[1].log10()), 400_001)]).double()
    p = distribution.log_prob(z).double()
    truth = torch.trapezoid(-p.exp() * p, z)
    assert float(torch.trapezoid(p.exp(), z)) == pytest.approx(1.0, abs=1e-5)
    assert float(distribution.entropy()) == pytest.approx(float(truth), abs=2e-5)


@pytest.mark.parametrize("warp", [Warp.affine(7.5, 4.6), Warp.normal_scores(np.repeat(np.arange(16.0), 20))])
def test_few_whole_numbers_have_a_bin_each(warp: Warp) -> None:
    numbers = torch.arange(16, dtype=torch.float64)
    places = warp.forward(numbers).float()  # as a table holds them: rounded
    head = Binned.fit(places.double().numpy(), 16, lattice=Lattice(0.0, 1.0, None, warp), warp=Warp.affine(0.0, 1.0))
    bins = head.classes(places)[0]
    assert bins.tolist() == list(range(1, 17))  # and one at either end for what was never seen
    # A bin that holds everything holds it at its own number.
    features = torch.full((16, head.size), -100.0, dtype=torch.float64)
    features[torch.arange(16), bins] = 0.0
    torch.testing.assert_close(
        head(features).log_prob(places.double()).exp(), torch.ones(16).double(), atol=1e-6, rtol=0
    )


def test_a_single_value_at_the_end_of_its_lattice() -> None:
    lattice = Lattice(5.0, 1.0, 1, Warp.affine(5.0, 1.0))
    head = Binned.fit(np.zeros(20), 16, lattice=lattice)
    assert float(head(logits(head)).log_prob(torch.zeros(4, dtype=torch.float64)).exp().mean()) == pytest.approx(1.0)


@pytest.mark.parametrize("blur", BLURS)
def test_draws_and_density_agree(values: np.ndarray, blur: float) -> None:
    """Chi-squared over forty cells, whose probabilities are integrals of the density."""
    head = Binned.fit(values, 8).blurred(blur)
    features = logits(head, rows=1)
    drawn = head(features.expand(20_000, -1)).sample(torch.Generator().manual_seed(5)).numpy()
    edges = np.quantile(drawn, np.linspace(0, 1, 41)[1:-1])
    grid = [torch.linspace(low, high, 4001, dtype=torch.float64) for low, high in pairwise([-30.0, *edges, 60.0])]
    mass = np.array([float(torch.trapezoid(head(features).log_prob(part[:, None])[:, 0].exp(), part)) for part in grid])
    assert mass.sum() == pytest.approx(1, abs=2e-3)
    counts = np.bincount(np.searchsorted(edges, drawn), minlength=40)
    assert stats.chisquare(counts, mass / mass.sum() * len(drawn)).pvalue > 1e-4


@pytest.mark.parametrize("blur", BLURS)
def test_quantiles_invert_the_cdf_in_both_tails(values: np.ndarray, blur: float) -> None:
    head = Binned.fit(values, 8).blurred(blur)
    levels = torch.tensor([1e-12, 1e-6, 1e-3, *np.linspace(0.01, 0.99, 99), 1 - 1e-6, 1 - 1e-12])[:, None].double()
    distribution = head(logits(head))
    torch.testing.assert_close(distribution.cdf(distribution.quantile(levels)), levels.expand(-1, 4), rtol=1e-7, atol=0)


def test_a_soft_edge_is_no_step(values: np.ndarray) -> None:
    hard = Binned.fit(values, 8)
    features = logits(hard)
    beside = torch.tensor([[hard.edges[3] - 1e-9], [hard.edges[3] + 1e-9]], dtype=torch.float64)
    step = hard(features).log_prob(beside).diff(dim=0).abs().max()
    assert float(step) > 0.1
    assert float(hard.blurred(0.2)(features).log_prob(beside).diff(dim=0).abs().max()) < 1e-5


@pytest.mark.parametrize("blur", [-0.1, 1.5, float("nan"), "wide", True])
def test_a_blur_is_a_share(blur: object) -> None:
    with pytest.raises(UserError, match="blur"):
        heads.build({"name": "binned", "blur": blur})


@pytest.mark.parametrize("blur", BLURS)
def test_a_limit_is_never_exceeded_and_a_recognised_one_not_impossible(values: np.ndarray, blur: float) -> None:
    base = Binned.fit(values, 8).blurred(blur)
    head = Spiked((2.0,), Bounded(base, -0.5, 2.0, firm=False))
    features = torch.randn(1, head.size, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    drawn = head(features.expand(100_000, -1)).sample(torch.Generator().manual_seed(3))
    assert float(drawn.min()) >= -0.5 and float(drawn.max()) == 2.0
    outside = torch.tensor([[-0.6], [2.5]], dtype=torch.float64)
    nats = head(features).log_prob(outside)
    assert bool(((nats > -60) & (nats < -25)).all())
    assert head(features).cdf(outside)[:, 0].tolist() == pytest.approx([0.0, 1.0], abs=1e-12)
    firm = Bounded(base, -0.5, 2.0)
    assert bool(firm(features[:, 1:]).log_prob(outside).isneginf().all())
