"""Spiked, bounded and ordinal heads against enumeration, scipy and very fine grids."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import torch

from anyorder.errors import UserError
from anyorder.heads import Categorical, DiscretizedLogisticMixture, Gaussian, GaussianMixture, Head, heads
from anyorder.heads.binned import Binned
from anyorder.heads.bounded import Bounded
from anyorder.heads.energy import Energy
from anyorder.heads.ordinal import Ordinal
from anyorder.heads.spiked import Spiked
from anyorder.heads.spline import Spline
from anyorder.heads.student_mixture import StudentMixture
from anyorder.support.registry import describe
from anyorder.testing import check_head
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp

COUNTS = Lattice(0.0, 1.0, None, Warp.affine(3.0, 2.0))
BASES: list[Head] = [
    Gaussian(),
    GaussianMixture(3),
    Spline(8),
    StudentMixture(3),
    Energy(2, latent=4, hidden=8).double().eval(),
]


def features(head: Head, rows: int = 4, size: float = 0.7, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return size * torch.randn(rows, head.size, generator=generator, dtype=torch.float64)


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)[:, None]


# Bounded


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.name)
@pytest.mark.parametrize(("low", "high"), [(-0.5, None), (None, 0.8), (-0.5, 0.8)])
def test_bounded_integrates_to_one_inside(base: Head, low: float | None, high: float | None) -> None:
    head = Bounded(base, low, high).double()
    distribution = head(features(head))
    left, right = -0.5 if low is not None else -40.0, 0.8 if high is not None else 40.0
    if base.name == "student_mixture" and (low is None or high is None):
        left, right = (left, 3e4) if high is None else (-3e4, right)
    steps = torch.linspace(0, 1, 100_001, dtype=torch.float64)[:, None]
    bent = steps**4 if high is None else 1 - (1 - steps) ** 4 if low is None else steps
    grid = left + (right - left) * bent
    with torch.no_grad():
        density = distribution.log_prob(grid).exp()
    torch.testing.assert_close(torch.trapezoid(density, grid, dim=0), torch.ones(4).double(), rtol=1e-4, atol=1e-4)
    moments = torch.trapezoid(density * grid.tanh(), grid, dim=0)
    torch.testing.assert_close(distribution.expect(torch.tanh), moments, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(distribution.expect(torch.tanh, fine=False), moments, rtol=0.0, atol=0.03)
    entropy = torch.trapezoid(-density * density.clamp(min=1e-300).log(), grid, dim=0)
    torch.testing.assert_close(distribution.entropy(), entropy, rtol=1e-3, atol=2e-3)
    levels = column(0.001, 0.3, 0.8, 0.999)
    quantiles = distribution.quantile(levels)
    torch.testing.assert_close(distribution.cdf(quantiles), levels.expand(-1, 4), rtol=1e-6, atol=1e-6)
    outside = column(*([] if low is None else [low - 0.1]), *([] if high is None else [high + 0.1]))
    assert (distribution.log_prob(outside) == -math.inf).all()
    assert ((quantiles >= left) & (quantiles <= right)).all()


@pytest.mark.parametrize("base", [Gaussian(), GaussianMixture(3), Spline(8)], ids=lambda base: base.name)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_little_mass_inside_is_still_a_distribution(base: Head, dtype: torch.dtype) -> None:
    """The bulk is thirty scales outside: what is left is nearly exponential, as scipy's truncated normal says."""
    head = Bounded(base, low=0.0).to(dtype)
    above = Bounded(base, high=0.0).to(dtype)
    row = torch.zeros(1, head.size, dtype=dtype)
    row[:, list(base.locations)] = -30.0
    row.requires_grad_()
    distribution = head(row)
    value = torch.tensor([0.0, 0.01, 0.05, 0.3], dtype=dtype)[:, None]
    found = distribution.log_prob(value)
    oracle = scipy.stats.truncnorm(30.0, np.inf, loc=-30.0)
    expected = torch.as_tensor(oracle.logpdf(value.detach().double().numpy()))
    torch.testing.assert_close(
        found.detach().double(), expected, rtol=1e-3, atol=2e-3 if dtype == torch.float32 else 1e-6
    )
    found.sum().backward()
    assert row.grad is not None and row.grad.isfinite().all()
    mirrored = row.detach().clone()
    mirrored[:, list(base.locations)] = 30.0
    mirrored.requires_grad_()
    other = above(mirrored).log_prob(-value)
    torch.testing.assert_close(other.detach(), found.detach(), rtol=1e-3, atol=2e-3)
    other.sum().backward()
    assert mirrored.grad is not None and mirrored.grad.isfinite().all()
    drawn = head(row.detach().expand(300, -1)).sample(torch.Generator().manual_seed(0))
    assert drawn.isfinite().all() and (drawn >= 0).all()
    assert scipy.stats.kstest(drawn.double().numpy(), oracle.cdf).pvalue > 1e-3
    assert float(distribution.mean().detach()) == pytest.approx(oracle.mean(), rel=2e-2)


def test_bounded_lattice_against_enumeration() -> None:
    base = DiscretizedLogisticMixture(2, COUNTS)
    head = Bounded(base, low=float(COUNTS.at(torch.tensor(0.0))), high=float(COUNTS.at(torch.tensor(7.0)))).double()
    rows = features(head)
    distribution = head(rows)
    points = COUNTS.at(torch.arange(8, dtype=torch.float64))[:, None]
    raw = base(rows).log_prob(points).exp()
    expected = raw / raw.sum(0)
    torch.testing.assert_close(distribution.log_prob(points).exp(), expected)
    torch.testing.assert_close(distribution.cdf(points), expected.cumsum(0))
    torch.testing.assert_close(distribution.mean(), (expected * points).sum(0), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(distribution.entropy(), -(expected * expected.log()).sum(0), rtol=1e-6, atol=1e-6)
    drawn = head(rows[:1].expand(3000, -1)).sample(torch.Generator().manual_seed(0))
    counts = torch.stack([(drawn - point).abs() < 1e-6 for point in points[:, 0]]).sum(1)
    assert int(counts.sum()) == 3000
    assert scipy.stats.chisquare(counts.numpy(), 3000 * expected[:, 0].detach().numpy()).pvalue > 1e-3


def test_a_lattice_with_bounds_of_its_own_is_normalised() -> None:
    lattice = Lattice(0.0, 1.0, 2**50, Warp.affine(3.0, 2.0))
    head = DiscretizedLogisticMixture(3, lattice)
    distribution = head(features(head))
    points = lattice.at(torch.arange(400, dtype=torch.float64))[:, None]
    mass = distribution.log_prob(points).exp()
    torch.testing.assert_close(mass.sum(0), torch.ones(4).double(), rtol=1e-6, atol=1e-6)
    assert (distribution.log_prob(lattice.warp.forward(column(-1.0, -5.0))) == -math.inf).all()
    torch.testing.assert_close(distribution.mean(), (mass * points).sum(0), rtol=1e-6, atol=1e-6)


# Spiked


@pytest.mark.parametrize("base", [*BASES[:3], Bounded(GaussianMixture(2), low=-1.0)], ids=lambda base: base.name)
def test_spiked_line(base: Head) -> None:
    atoms = (-1.0, 0.25)
    head = Spiked(atoms, base).double()
    rows = features(head)
    distribution = head(rows)
    weights = torch.cat([torch.zeros(4, 1), rows[:, :2]], dim=1).softmax(-1)
    torch.testing.assert_close(distribution.log_prob(column(*atoms)).exp(), weights[:, 1:].T)
    torch.testing.assert_close(distribution.atom_probs(), weights[:, 1:])
    inner = base(rows[:, 2:])
    near = column(-0.9, 0.250001, 2.0)
    torch.testing.assert_close(distribution.log_prob(near), weights[:, 0].log() + inner.log_prob(near))
    # The cdf jumps by the atom's probability and is otherwise the base's.
    for number, atom in enumerate(atoms):
        jump = distribution.cdf(column(atom)) - distribution.cdf(column(atom - 1e-9))
        torch.testing.assert_close(jump[0], weights[:, number + 1], rtol=1e-6, atol=1e-6)
    levels = torch.linspace(0.0005, 0.9995, 2001, dtype=torch.float64)[:, None]
    quantiles = distribution.quantile(levels)
    assert (distribution.cdf(quantiles) >= levels - 1e-9).all()
    assert (distribution.cdf(quantiles - 1e-7) <= levels + 1e-6).all()
    for number, atom in enumerate(atoms):
        share = (quantiles == atom).double().mean(0)
        torch.testing.assert_close(share, weights[:, number + 1], rtol=0.0, atol=2e-3)
    known = (weights[:, 1:] * torch.tensor(atoms).double().tanh()).sum(-1)
    torch.testing.assert_close(distribution.expect(torch.tanh), known + weights[:, 0] * inner.expect(torch.tanh))
    torch.testing.assert_close(distribution.mean(), distribution.expect(lambda x: x), rtol=1e-4, atol=1e-4)
    entropy = -(weights * weights.log()).sum(-1) + weights[:, 0] * inner.entropy()
    torch.testing.assert_close(distribution.entropy(), entropy)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_spiked_draws_hit_atoms_to_the_bit(dtype: torch.dtype) -> None:
    head = Spiked((0.1, 0.7), Gaussian()).to(dtype)  # neither is a float32
    distribution = head(torch.zeros(3000, 4, dtype=dtype))
    drawn = distribution.sample(torch.Generator().manual_seed(0))
    shares = [float((drawn == torch.tensor(atom, dtype=dtype)).double().mean()) for atom in head.atoms]
    assert shares == pytest.approx([1 / 3, 1 / 3], abs=0.035)
    at = (drawn == torch.tensor(0.1, dtype=dtype)) | (drawn == torch.tensor(0.7, dtype=dtype))
    assert distribution.log_prob(drawn)[at].exp().tolist() == pytest.approx([1 / 3] * int(at.sum()))


def test_spiked_lattice_against_enumeration() -> None:
    base = DiscretizedLogisticMixture(2, COUNTS)
    atom = float(COUNTS.at(torch.tensor(0.0)))
    head = Spiked((atom,), base).double()
    rows = features(head)
    distribution = head(rows)
    assert distribution.discrete
    points = COUNTS.at(torch.arange(-300, 300, dtype=torch.float64))[:, None]
    weight = torch.sigmoid(rows[:, 0])
    expected = (1 - weight) * base(rows[:, 1:]).log_prob(points).exp()
    expected[300] += weight
    torch.testing.assert_close(distribution.log_prob(points).exp(), expected)
    torch.testing.assert_close(
        distribution.entropy(), -torch.special.xlogy(expected, expected).sum(0), rtol=1e-5, atol=1e-5
    )
    torch.testing.assert_close(distribution.cdf(points), expected.cumsum(0), rtol=1e-7, atol=1e-7)
    levels = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)[:, None]
    code = (expected.cumsum(0)[None] < levels[..., None].movedim(-1, 1)).sum(1)
    torch.testing.assert_close(distribution.quantile(levels), points[:, 0][code])


# Ordinal


def test_ordinal_is_the_mixed_cumulative_logit() -> None:
    head = Ordinal(levels=4, components=2)
    rows = features(head)
    found = head(rows).probs()
    weights, means, scales = rows[:, :2].softmax(-1), rows[:, 2:4], rows[:, 4:6].exp()
    cuts = torch.stack([rows[:, 6], rows[:, 6] + rows[:, 7].exp(), rows[:, 6] + rows[:, 7].exp() + rows[:, 8].exp()])
    reached = (weights * torch.sigmoid((cuts[..., None] - means) / scales)).sum(-1)
    expected = torch.cat([reached[:1], reached.diff(dim=0), 1 - reached[-1:]])
    torch.testing.assert_close(found.T, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("levels", [1, 2, 3, 12])
def test_ordinal_contract(levels: int) -> None:
    head = Ordinal(levels)
    check_head(head)
    start = head(head.start().double()).probs()
    assert float(start.max() / start.min()) < 4, "training begins where no level is ruled out"


def test_ordinal_learns_order_from_fewer_rows_than_a_softmax() -> None:
    """One location moves all levels: a linear map to features reads it from few rows."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 1, generator=generator)
    code = ((2 * x[:, 0] + 0.5 * torch.randn(60, generator=generator)).clamp(-3.9, 3.9) + 4).floor()
    test_x = torch.randn(2000, 1, generator=generator)
    test = ((2 * test_x[:, 0] + 0.5 * torch.randn(2000, generator=generator)).clamp(-3.9, 3.9) + 4).floor()
    losses = {}
    for head in (Ordinal(8, 1), Categorical(8)):
        linear = torch.nn.Linear(1, head.size)
        with torch.no_grad():
            linear.weight.zero_()
            linear.bias.copy_(head.start())
        optimiser = torch.optim.Adam(linear.parameters(), lr=0.05)
        for _ in range(150):
            optimiser.zero_grad()
            (-head(linear(x)).log_prob(code)).mean().backward()
            optimiser.step()
        with torch.no_grad():
            losses[head.name] = float(-head(linear(test_x)).log_prob(test).mean())
    assert losses["ordinal"] < losses["categorical"]


WRAPPED: list[Head] = [
    Bounded(GaussianMixture(2), -0.3, None),
    Bounded(Spline(4), -0.3, 1.0),
    Spiked((0.0,), Bounded(GaussianMixture(2), 0.0)),
    Spiked((0.0, 0.5), DiscretizedLogisticMixture(2, COUNTS)),
    Ordinal(5),
]


@pytest.mark.parametrize("head", WRAPPED, ids=lambda head: head.name)
def test_descriptions_build_the_same_head(head: Head) -> None:
    again = heads.build(describe(head))
    assert describe(again) == describe(head)
    row = features(head, rows=1).to(torch.float32)
    value = torch.tensor([0.5 if head.levels == 0 else 2.0])
    assert torch.equal(again.float()(row).log_prob(value), head.float()(row).log_prob(value))
    assert again.start().shape == (head.size,)
    assert len(again.locations) == len(again.log_scales)


@pytest.mark.parametrize(
    "described",
    [
        {"name": "bounded", "base": {"name": "gaussian"}, "low": 1.0, "high": 0.0},
        {"name": "bounded", "base": {"name": "categorical", "levels": 3}},
        {"name": "spiked", "atoms": [], "base": {"name": "gaussian"}},
        {"name": "spiked", "atoms": [1.0, 0.0], "base": {"name": "gaussian"}},
        {"name": "ordinal", "levels": 0},
    ],
)
def test_wrong_options_are_refused(described: dict[str, object]) -> None:
    with pytest.raises(UserError):
        heads.build(described)


@pytest.mark.parametrize(("low", "high"), [(-1.0, None), (None, 1.0), (-1.0, 1.0)])
@pytest.mark.parametrize("bent", [False, True])
def test_a_bounded_histogram_keeps_the_probability_of_its_outer_bins(
    low: float | None, high: float | None, bent: bool
) -> None:
    """The outer bins end at the bounds: nothing of what the features say is lost beyond them."""
    seen = np.random.default_rng(0).uniform(-1, 1, 400)
    base = Binned.fit(seen, 8) if bent else Binned.fit(seen, 8, warp=Warp.affine(0.0, 1.0))
    head = Bounded(base, low, high).double()
    features = torch.randn(3, head.size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    distribution = head(features)
    ends = [-12.0 if low is None else low, 12.0 if high is None else high]
    edges = np.unique([*ends, *base.edges, *np.linspace(*ends, 300), *(x for x in base.bins.warp.x)])
    edges = edges[(edges >= ends[0]) & (edges <= ends[1])]
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = np.diff(edges)[:, None] / 2
    places = torch.as_tensor((edges[:-1, None] + half * (1 + nodes)).ravel())
    mass = distribution.log_prob(places[:, None]).exp() * torch.as_tensor((half * weights).ravel())[:, None]
    tail = 1e-4 if bent and (low is None or high is None) else 1e-9  # a bent tail reaches further than the panels
    assert mass.sum(0).tolist() == pytest.approx([1.0] * 3, abs=tail)
    bins = base.classes(places)[0]
    held = torch.stack([mass[bins == number].sum(0) for number in range(base.size)], dim=-1)
    assert held.flatten().tolist() == pytest.approx(features.softmax(-1).flatten().tolist(), abs=tail)
    if low is not None:
        assert (distribution.cdf(torch.full((3,), low, dtype=torch.float64)) == 0).all()
        assert (distribution.log_prob(torch.full((3,), low - 0.01, dtype=torch.float64)) == -math.inf).all()
    if high is not None:
        assert (distribution.cdf(torch.full((3,), high, dtype=torch.float64)) == 1).all()
        assert (distribution.log_prob(torch.full((3,), high + 0.01, dtype=torch.float64)) == -math.inf).all()


@pytest.mark.parametrize("end", ["0", {}, True, float("nan"), float("inf"), 1e39, 10**400])
def test_a_bound_is_a_finite_number(end: object) -> None:
    with pytest.raises(UserError, match="a bound must be a number"):
        Bounded(Gaussian(), end)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="a bound must be a number"):
        Bounded(Gaussian(), None, end)  # type: ignore[arg-type]


def test_bounds_may_be_far_away_but_not_beyond_all_that_is_learned() -> None:
    Bounded(Gaussian(), -1e12, 1e12)
    with pytest.raises(UserError, match="a bound must be a number"):
        Bounded(Gaussian(), 1e12)
    with pytest.raises(UserError, match="a bound must be a number"):
        Bounded(Gaussian(), None, -1e12)
