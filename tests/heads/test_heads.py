"""Every head is a normalised distribution: against quadrature, enumeration, scipy and its own draws."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats
from torch import Tensor

import anyorder.heads as heads_package
from anyorder.distributions.base import Distribution
from anyorder.errors import UserError
from anyorder.heads import Bernoulli, Categorical, DiscretizedLogisticMixture, Gaussian, GaussianMixture, Head, heads
from anyorder.support.registry import describe
from anyorder.support.roots import increasing_root
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp

CURVED = Warp((-1.0, 0.5, 2.0, 6.0), (-1.5, -0.2, 0.7, 1.5), (0.5, 0.9, 0.4, 0.15))
FINITE = Lattice(-2.0, 0.5, 17, CURVED)
ENDLESS = Lattice(0.0, 1.0, None, CURVED)
FINE = Lattice(0.0, 1e-3, None, CURVED)

CONTINUOUS: list[Head] = [Gaussian(), GaussianMixture(1), GaussianMixture(4)]
DISCRETE: list[Head] = [
    Bernoulli(),
    Categorical(5),
    DiscretizedLogisticMixture(3, FINITE),
    DiscretizedLogisticMixture(3, ENDLESS),
]
ALL = [*CONTINUOUS, *DISCRETE, DiscretizedLogisticMixture(2, FINE)]
LOCATION_SCALE = [head for head in ALL if not head.levels]


def label(head: object) -> str:
    return f"{describe(head)['name']}-{getattr(head, 'size', '')}" if isinstance(head, Head) else str(head)


def features(head: Head, *shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    noise = torch.randn(*shape, head.size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (head.start().double() + 0.7 * noise).to(dtype)


def points(head: Head, dtype: torch.dtype = torch.float64) -> Tensor:
    """Every value a discrete head can take, all but a vanishing part of an endless lattice."""
    if head.levels:
        return torch.arange(head.levels, dtype=dtype)
    assert isinstance(head, DiscretizedLogisticMixture)
    count = head.lattice.count
    index = torch.arange(count) if count is not None else torch.arange(-400, 401)
    return head.lattice.at(index.double()).to(dtype)


# Normalisation and the methods that follow from the density


@pytest.mark.parametrize("head", CONTINUOUS, ids=label)
def test_density_cdf_mean_entropy_by_quadrature(head: Head) -> None:
    distribution = head(features(head, 6))
    line = np.linspace(-60, 60, 480_001)
    log_density = distribution.log_prob(torch.from_numpy(line)[:, None]).numpy()
    density = np.exp(log_density)
    assert integrate.simpson(density, x=line, axis=0) == pytest.approx(np.ones(6), abs=1e-8)
    assert distribution.mean().numpy() == pytest.approx(
        integrate.simpson(line[:, None] * density, x=line, axis=0), abs=1e-7
    )
    assert distribution.entropy().numpy() == pytest.approx(
        integrate.simpson(-density * log_density, x=line, axis=0), abs=2e-5
    )
    square = distribution.expect(lambda x: x**2).numpy()
    assert square == pytest.approx(integrate.simpson(line[:, None] ** 2 * density, x=line, axis=0), rel=1e-5)
    totals = integrate.cumulative_simpson(density, x=line, axis=0, initial=0)
    cdf = distribution.cdf(torch.from_numpy(line)[:, None]).numpy()
    assert np.abs(cdf - totals).max() < 1e-7


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("head", DISCRETE, ids=label)
def test_masses_by_enumeration(head: Head, dtype: torch.dtype) -> None:
    distribution = head(features(head, 6, dtype=dtype))
    assert distribution.discrete
    values = points(head, dtype)
    log_mass = distribution.log_prob(values[:, None]).double()
    mass = log_mass.exp()
    near = 1e-8 if dtype == torch.float64 else 1e-5
    torch.testing.assert_close(mass.sum(0), torch.ones(6, dtype=torch.float64), rtol=0, atol=near)
    torch.testing.assert_close(distribution.cdf(values[:, None]).double(), mass.cumsum(0), rtol=0, atol=near)
    mean = (mass * values.double()[:, None]).sum(0)
    torch.testing.assert_close(distribution.mean().double(), mean, rtol=0, atol=30 * near)
    torch.testing.assert_close(distribution.entropy().double(), -(mass * log_mass).sum(0), rtol=0, atol=30 * near)
    square = (mass * values.double()[:, None] ** 2).sum(0)
    torch.testing.assert_close(distribution.expect(lambda x: x**2).double(), square, rtol=10 * near, atol=30 * near)
    for left, right in pairwise(values):  # the cdf is flat between the points
        assert torch.equal(distribution.cdf((left + right) / 2), distribution.cdf(left))


def test_float32_density_integrates_to_one() -> None:
    head = GaussianMixture(10)
    distribution = head(features(head, 5, dtype=torch.float32))
    line = torch.linspace(-60, 60, 240_001)
    density = distribution.log_prob(line[:, None]).exp()
    assert density.dtype == torch.float32
    total = torch.trapezoid(density.double(), line.double()[:, None], dim=0)
    torch.testing.assert_close(total, torch.ones(5).double(), rtol=0, atol=1e-5)


def test_gaussian_against_scipy() -> None:
    head = Gaussian()
    f = features(head, 7)
    value = torch.linspace(-3, 3, 7, dtype=torch.float64)
    oracle = stats.norm(f[:, 0].numpy(), f[:, 1].exp().numpy())
    distribution = head(f)
    assert distribution.log_prob(value).numpy() == pytest.approx(oracle.logpdf(value.numpy()))
    assert distribution.cdf(value).numpy() == pytest.approx(oracle.cdf(value.numpy()))
    assert distribution.entropy().numpy() == pytest.approx(oracle.entropy())
    # One component is a Gaussian, whatever its logit.
    single = GaussianMixture(1)(torch.cat([torch.full((7, 1), 3.0), f], dim=1))
    torch.testing.assert_close(single.log_prob(value), distribution.log_prob(value))


def test_mixture_against_its_formula() -> None:
    head = GaussianMixture(4)
    f = features(head, 9)
    value = torch.linspace(-4, 4, 9, dtype=torch.float64)
    logits, means, log_scales = (part.numpy() for part in f.chunk(3, -1))
    expected = np.log(
        (special.softmax(logits, -1) * stats.norm(means, np.exp(log_scales)).pdf(value.numpy()[:, None])).sum(-1)
    )
    assert head(f).log_prob(value).numpy() == pytest.approx(expected)


@pytest.mark.parametrize("lattice", [FINITE, ENDLESS], ids=["finite", "endless"])
def test_cells_against_differences_of_sigmoids(lattice: Lattice) -> None:
    head = DiscretizedLogisticMixture(3, lattice)
    f = features(head, 1)
    weights, means, scales = f[0, :3].softmax(-1), f[0, 3:6], f[0, 6:].exp()
    z = points(head)[:17]
    lower, upper = lattice.cell(z)
    expected = (
        (torch.sigmoid((upper[:, None] - means) / scales) - torch.sigmoid((lower[:, None] - means) / scales)) * weights
    ).sum(-1)
    torch.testing.assert_close(head(f[0]).log_prob(z).exp(), expected, rtol=1e-9, atol=1e-13)


def test_narrow_beside_broad_entropy() -> None:
    """A spike of mass one half on a broad Gaussian: where a rule tied to one component would miss it."""
    f = torch.tensor([0.0, 0.0, 0.1, 0.0, -5.0, 0.5], dtype=torch.float64)
    scale = math.exp(-5.0)

    def density(x: float) -> float:
        return 0.5 * float(stats.norm(0.1, scale).pdf(x)) + 0.5 * float(stats.norm(0, math.exp(0.5)).pdf(x))

    breaks = [-16, -3, 0.1 - 12 * scale, 0.1 - 3 * scale, 0.1, 0.1 + 3 * scale, 0.1 + 12 * scale, 3, 16]
    parts = [integrate.quad(lambda x: -density(x) * math.log(density(x)), a, b)[0] for a, b in pairwise(breaks)]
    assert float(GaussianMixture(2)(f).entropy()) == pytest.approx(sum(parts), abs=1e-5)


@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_fine_lattice_by_quadrature(spread: float) -> None:
    """More cells than are summed one by one: the integral must agree with brute force over 10^5 cells."""
    head = DiscretizedLogisticMixture(2, FINE)
    f = torch.tensor([[0.3, -0.3, 0.2, 1.0, -2.0 - spread, -2.0 + spread / 2]], dtype=torch.float64)
    distribution = head(f)
    z = FINE.at(torch.arange(-60_000, 60_001, dtype=torch.float64))
    log_mass = distribution.log_prob(z)
    assert float(log_mass.exp().sum()) == pytest.approx(1, abs=1e-8)
    assert float(distribution.entropy()) == pytest.approx(
        float(-(log_mass.exp() * log_mass).sum()), abs=2e-3 if spread else 5e-4
    )
    assert float(distribution.mean()) == pytest.approx(float((log_mass.exp() * z).sum()), abs=5e-5)  # cells: 5e-4


# Quantiles


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("head", CONTINUOUS, ids=label)
def test_quantile_inverts_cdf(head: Head, dtype: torch.dtype) -> None:
    distribution = head(features(head, 50, dtype=dtype))
    level = torch.tensor([1e-6, 0.01, 0.3, 0.5, 0.77, 0.99], dtype=dtype)[:, None]
    value = distribution.quantile(level)
    assert value.dtype == dtype
    near = 1e-12 if dtype == torch.float64 else 3e-6
    torch.testing.assert_close(
        distribution.cdf(value), level.expand(6, 50), rtol=1e-9 if dtype == torch.float64 else 1e-3, atol=near
    )
    if dtype == torch.float64:
        torch.testing.assert_close(distribution.quantile(distribution.cdf(value)), value, rtol=1e-7, atol=1e-7)
    ends = distribution.quantile(torch.tensor([[0.0], [1.0], [1.5]], dtype=dtype))
    assert (ends[0] == -math.inf).all()
    assert (ends[1] == math.inf).all()
    assert ends[2].isnan().all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("head", DISCRETE, ids=label)
def test_quantile_is_the_least_point_that_reaches(head: Head, dtype: torch.dtype) -> None:
    distribution = head(features(head, 8, dtype=dtype))
    values = points(head, dtype)
    cdf = distribution.cdf(values[:, None])
    levels = torch.cat([torch.linspace(0.001, 0.999, 101, dtype=dtype), cdf[(cdf > 1e-4) & (cdf < 0.9999)]])
    found = distribution.quantile(levels[:, None])
    for column in range(8):
        place = torch.searchsorted(cdf[:, column].contiguous(), levels)
        torch.testing.assert_close(found[:, column], values[place], rtol=0, atol=1e-6)
    assert distribution.quantile(torch.tensor(-0.1, dtype=dtype).expand(8)).isnan().all()
    if not (isinstance(head, DiscretizedLogisticMixture) and head.lattice.count is None):
        assert torch.equal(distribution.quantile(torch.ones(8, dtype=dtype)), values[-1].expand(8))
        assert torch.equal(distribution.quantile(torch.zeros(8, dtype=dtype)), values[0].expand(8))


def test_quantile_of_far_apart_components() -> None:
    """A flat cdf between two modes, where Newton alone fails."""
    f = torch.tensor([0.0, 0.0, -1000.0, 1000.0, -4.0, -4.0], dtype=torch.float64)
    level = torch.tensor([0.25, 0.75, 1e-9, 0.4999999], dtype=torch.float64)
    expected = np.array([-1000.0, 1000.0, -1000.0, -1000.0]) + math.exp(-4) * special.ndtri([0.5, 0.5, 2e-9, 0.9999998])
    assert GaussianMixture(2)(f).quantile(level).numpy() == pytest.approx(expected, abs=1e-9)


def test_increasing_root_is_exact() -> None:
    target = torch.linspace(-3, 3, 61, dtype=torch.float64)
    root = increasing_root(
        lambda x: (x**3 + x - target, 3 * x**2 + 1), torch.full_like(target, -9), torch.full_like(target, 5)
    )
    torch.testing.assert_close(root**3 + root, target, rtol=0, atol=1e-14)


# Draws


@pytest.mark.parametrize("head", CONTINUOUS, ids=label)
def test_draws_follow_the_cdf(head: Head) -> None:
    f = features(head)
    draws = head(f.expand(20_000, -1)).sample(torch.Generator().manual_seed(3))
    assert stats.kstest(head(f).cdf(draws).numpy(), "uniform").pvalue > 1e-3
    assert torch.equal(draws, head(f.expand(20_000, -1)).sample(torch.Generator().manual_seed(3)))


@pytest.mark.parametrize("head", DISCRETE, ids=label)
def test_draws_follow_the_masses(head: Head) -> None:
    f = features(head)
    draws = head(f.expand(20_000, -1)).sample(torch.Generator().manual_seed(4))
    values = points(head)
    place = (draws[:, None] - values).abs().argmin(-1)
    assert (draws - values[place]).abs().max() < 1e-9  # on the points, never between
    counts = torch.bincount(place, minlength=len(values)).numpy()
    expected = head(f).log_prob(values).exp().numpy() * 20_000
    often = expected > 5
    seen = np.append(counts[often], counts[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    keep = wanted > 1e-3
    assert stats.chisquare(seen[keep], wanted[keep] * seen[keep].sum() / wanted[keep].sum()).pvalue > 1e-3


def test_impossible_levels_are_never_drawn() -> None:
    logits = torch.tensor([-math.inf, 0.0, 1.0, -math.inf, -math.inf]).expand(100_000, 5)
    distribution = Categorical(5)(logits)
    assert set(distribution.sample(torch.Generator().manual_seed(0)).tolist()) == {1.0, 2.0}
    p = 1 / (1 + math.e)
    assert float(distribution.entropy()[0]) == pytest.approx(-p * math.log(p) - (1 - p) * math.log(1 - p), abs=1e-6)


@pytest.mark.parametrize("head", [Bernoulli(), Categorical(5)], ids=label)
def test_codes_outside_have_no_probability(head: Head) -> None:
    distribution = head(features(head, 3))
    probs = distribution.probs()
    assert probs.shape == (3, head.levels)
    torch.testing.assert_close(probs.sum(-1), torch.ones(3, dtype=torch.float64))
    codes = torch.arange(head.levels, dtype=torch.float64)
    torch.testing.assert_close(distribution.log_prob(codes[:, None]).exp(), probs.T)
    outside = torch.tensor([-1.0, 0.5, float(head.levels), math.nan], dtype=torch.float64)[:, None]
    assert (distribution.log_prob(outside) == -math.inf).all()


# Features


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("head", ALL, ids=label)
def test_shapes_and_dtypes(head: Head, dtype: torch.dtype) -> None:
    f = features(head, 2, 3, dtype=dtype)
    distribution: Distribution = head(f)
    value = distribution.sample(torch.Generator().manual_seed(0))
    level = torch.full((2, 3), 0.4, dtype=dtype)
    results = [value, distribution.log_prob(value), distribution.cdf(value), distribution.quantile(level),
               distribution.mean(), distribution.entropy()]  # fmt: skip
    assert distribution.shape == (2, 3)
    for result in results:
        assert result.shape == (2, 3)
        assert result.dtype == dtype
        assert torch.isfinite(result).all()
    stacked = distribution.log_prob(value.expand(4, 2, 3))
    torch.testing.assert_close(stacked, distribution.log_prob(value).expand(4, 2, 3))
    assert head(f[:0]).entropy().shape == (0, 3)
    torch.testing.assert_close(head(f[1, 2]).log_prob(value[1, 2]), distribution.log_prob(value)[1, 2])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("head", ALL, ids=label)
def test_every_feature_gets_a_gradient(head: Head, dtype: torch.dtype) -> None:
    if head.size == 3:
        pytest.skip("the logit of a single component has no effect, as it should")
    f = features(head, 40, dtype=dtype).requires_grad_()
    value = head(f).sample(torch.Generator().manual_seed(0))
    (slope,) = torch.autograd.grad(head(f).log_prob(value).sum(), f)
    assert torch.isfinite(slope).all()
    assert (slope.abs().sum(0) > 0).all()
    (slope,) = torch.autograd.grad(head(f).entropy().sum(), f)
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("head", ALL, ids=label)
def test_gradients_are_the_derivatives(head: Head) -> None:
    f = features(head, 2).requires_grad_()
    value = head(f).sample(torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(lambda g: head(g).log_prob(value), f)
    if not (isinstance(head, DiscretizedLogisticMixture) and head.lattice is FINE):  # differences of steps are noise
        assert torch.autograd.gradcheck(lambda g: head(g).mean(), f, atol=1e-6)


@pytest.mark.parametrize("head", ALL, ids=label)
@given(data=st.data())
def test_extreme_features_never_nan(head: Head, data: st.DataObject) -> None:
    extreme = st.sampled_from([-1e4, -50.0, -7.0, 0.0, 0.3, 7.0, 50.0, 1e4])
    numbers = data.draw(st.lists(extreme, min_size=head.size, max_size=head.size))
    f = torch.tensor([numbers], dtype=torch.float32).requires_grad_()
    code = float(data.draw(st.integers(0, head.levels - 1))) if head.levels else data.draw(extreme)
    distribution = head(f)
    log_prob = distribution.log_prob(torch.tensor([code]))
    lattice = getattr(distribution, "lattice", None)
    if lattice is not None and not bool(lattice.reaches(torch.tensor(code))):
        assert float(log_prob.detach()) == -math.inf, "there is no such point"
    else:
        assert torch.isfinite(log_prob).all()
    assert not distribution.discrete or (log_prob <= 1e-5).all()
    (slope,) = torch.autograd.grad(log_prob.sum(), f)
    assert torch.isfinite(slope).all()
    level = torch.tensor([0.3])
    for result in (distribution.cdf(torch.tensor([code])), distribution.quantile(level), distribution.mean(),
                   distribution.entropy(), distribution.sample(torch.Generator().manual_seed(0))):  # fmt: skip
        assert torch.isfinite(result).all()


def test_a_collapsed_component_can_come_back() -> None:
    """Far below its floor a log scale still has a gradient, and the density stays bounded."""
    f = torch.tensor([0.0, 0.0, -40.0], requires_grad=True)
    log_prob = GaussianMixture(1)(f).log_prob(torch.tensor(0.5))
    (slope,) = torch.autograd.grad(log_prob, f)
    assert slope[2] > 0
    assert float(GaussianMixture(1)(f.detach()).log_prob(torch.tensor(0.0))) <= 7


@pytest.mark.parametrize("head", LOCATION_SCALE, ids=label)
def test_locations_and_log_scales_move_the_line(head: Head) -> None:
    f = features(head, 30)
    location = torch.linspace(-3, 3, 30, dtype=torch.float64)
    scale = torch.linspace(0.05, 20, 30, dtype=torch.float64)
    moved = f.clone()
    moved[:, list(head.locations)] = location[:, None] + scale[:, None] * f[:, list(head.locations)]
    moved[:, list(head.log_scales)] += scale.log()[:, None]
    if isinstance(head, DiscretizedLogisticMixture):
        # Before it is cut into cells: F'(location + scale x) = F(x), seen at the line's quantiles.
        level = torch.full((30,), 0.37, dtype=torch.float64)
        expected = location + scale * head(f)._line_quantile(level)
        torch.testing.assert_close(head(moved)._line_quantile(level), expected, rtol=1e-9, atol=1e-9)
    else:
        x = torch.linspace(-2, 2, 30, dtype=torch.float64)
        torch.testing.assert_close(head(moved).log_prob(location + scale * x), head(f).log_prob(x) - scale.log())


@pytest.mark.parametrize("head", LOCATION_SCALE, ids=label)
def test_start_is_broad(head: Head) -> None:
    distribution = head(head.start().double())
    assert abs(float(distribution.quantile(torch.tensor(0.5)))) < 0.6
    assert float(distribution.cdf(torch.tensor(1.0)) - distribution.cdf(torch.tensor(-1.0))) > 0.3
    assert float(distribution.cdf(torch.tensor(-1.6)) + 1 - distribution.cdf(torch.tensor(1.6))) > 0.02


# Registry


@pytest.mark.parametrize("head", ALL, ids=label)
def test_describe_and_build(head: Head) -> None:
    described = json.loads(json.dumps(describe(head)))
    again = heads.build(described)
    assert type(again) is type(head)
    assert describe(again) == describe(head)
    f = features(head, 3)
    value = head(f).sample(torch.Generator().manual_seed(0))
    assert torch.equal(again(f).log_prob(value), head(f).log_prob(value))


def test_mistakes_are_named() -> None:
    with pytest.raises(UserError, match="did you mean 'gaussian_mixture'"):
        heads.build({"name": "gaussian_mixtur"})
    with pytest.raises(UserError, match="component"):
        GaussianMixture(0)
    with pytest.raises(UserError, match="level"):
        Categorical(0)


def test_a_new_head_is_one_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        "from dataclasses import dataclass\n"
        "from typing import ClassVar\n"
        "from anyorder.heads.gaussian import GaussianDistribution\n"
        "from anyorder.heads.base import Head\n"
        "@dataclass(eq=False)\n"
        "class Unit(Head):\n"
        "    name: ClassVar[str] = 'dropped_in_unit'\n"
        "    shift: float = 0.0\n"
        "    @property\n"
        "    def size(self): return 1\n"
        "    def forward(self, features):\n"
        "        return GaussianDistribution(features[..., 0] + self.shift, 0 * features[..., 0])\n"
    )
    (tmp_path / "dropped_in.py").write_text(source)
    assert "dropped_in_unit" not in heads.names()
    monkeypatch.setattr(heads_package, "__path__", [*heads_package.__path__, str(tmp_path)])
    assert "dropped_in_unit" in heads.names()
    unit = heads.build({"name": "dropped_in_unit", "shift": 2.0})
    assert float(unit(torch.tensor([1.0])).mean()) == 3.0
    assert {"bernoulli", "categorical", "gaussian", "gaussian_mixture", "discretized_logistic_mixture"} <= set(
        heads.names()
    )


@pytest.mark.parametrize("head", LOCATION_SCALE, ids=label)
def test_coarse_expectation_is_close_to_the_fine_one(head: Head) -> None:
    distribution = head(features(head, 40))
    fine, coarse = (distribution.expect(torch.tanh, fine=which) for which in (True, False))
    torch.testing.assert_close(coarse, fine, rtol=0, atol=0.04)
