"""Every head is a normalised distribution: against quadrature, enumeration and scipy."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import integrate, special, stats

from anyorder.heads import Bernoulli, Categorical, DiscretizedLogisticMixture, Gaussian, GaussianMixture, Head
from anyorder.variables.lattice import Lattice

from head_cases import CONTINUOUS, DISCRETE, ENDLESS, FINE, FINITE, LOCATION_SCALE, features, label, points


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


@pytest.mark.parametrize("head", LOCATION_SCALE, ids=label)
def test_coarse_expectation_is_close_to_the_fine_one(head: Head) -> None:
    distribution = head(features(head, 40))
    fine, coarse = (distribution.expect(torch.tanh, fine=which) for which in (True, False))
    torch.testing.assert_close(coarse, fine, rtol=0, atol=0.04)
