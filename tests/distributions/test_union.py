"""Several regions of one variable: masses, draws, moments and entropy of a cut law, against quadrature and sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import norm

from anyorder.distributions.cut import Cut
from anyorder.distributions.region import Interval, Nothing, Points, Region, Union, intersection, union_of
from anyorder.heads.categorical import CategoricalDistribution
from anyorder.heads.gaussian import GaussianDistribution

BELOW, MIDDLE, ABOVE = (
    Interval(low, high, low, high) for low, high in ((-math.inf, -0.5), (0.2, 0.7), (1.5, math.inf))
)
REGION = union_of([ABOVE, BELOW, MIDDLE])
LOCATION = np.array([0.3, -1.0])


@pytest.fixture
def law() -> GaussianDistribution:
    return GaussianDistribution(torch.tensor(LOCATION), torch.zeros(2, dtype=torch.float64))


def inside(grid: np.ndarray) -> np.ndarray:
    return (grid < -0.5) | ((grid > 0.2) & (grid < 0.7)) | (grid > 1.5)


def test_mass_cdf_and_quantile(law: GaussianDistribution) -> None:
    edges = [norm.cdf(end - LOCATION) for end in (-0.5, 0.2, 0.7, 1.5)]
    mass = edges[0] + edges[2] - edges[1] + 1 - edges[3]
    assert REGION.log_mass(law).exp().numpy() == pytest.approx(mass, rel=1e-12)
    cut = Cut(law, REGION)
    levels = torch.linspace(0.003, 0.997, 301, dtype=torch.float64)[:, None].expand(-1, 2)
    at = cut.quantile(levels)
    assert bool(REGION.contains(at).all())
    assert bool((at.diff(dim=0) >= 0).all())
    assert cut.cdf(at).numpy() == pytest.approx(levels.numpy(), abs=1e-9)
    drawn = torch.stack([cut.sample(torch.Generator().manual_seed(seed)) for seed in range(400)])
    assert bool(REGION.contains(drawn).all())
    assert (drawn < -0.5).double().mean(0).numpy() == pytest.approx(edges[0] / mass, abs=0.08)


def test_moments_and_entropy_by_quadrature(law: GaussianDistribution) -> None:
    grid = np.linspace(-12, 12, 2_000_001)
    for number, location in enumerate(LOCATION):
        density = norm.pdf(grid - location) * inside(grid)
        density /= np.trapezoid(density, grid)
        cut = Cut(law, REGION)
        ours = np.exp(cut.log_prob(torch.tensor(grid)[:, None].expand(-1, 2)).numpy()[:, number])
        assert np.trapezoid(ours, grid) == pytest.approx(1, abs=1e-5)
        assert float(cut.mean()[number]) == pytest.approx(np.trapezoid(grid * density, grid), abs=1e-5)
        nats = -density * np.log(np.maximum(density, 1e-300))
        assert float(cut.entropy()[number]) == pytest.approx(np.trapezoid(nats, grid), abs=1e-5)


def test_levels_and_intervals_together() -> None:
    law = CategoricalDistribution(torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64).log().expand(2, -1))
    region = union_of([Points((0.0, 2.0)), Interval(2.0, 3.0, 1.5, 3.5)])  # 0, 2 and 3: 2 counts once
    assert isinstance(region, Union)
    assert region.log_mass(law).exp().tolist() == pytest.approx([0.8] * 2)
    level = torch.tensor([0.01, 0.99], dtype=torch.float64)
    assert region.draw(law, level).tolist() == [0, 3]


@pytest.mark.parametrize(
    ("regions", "joined"),
    [
        ([], Nothing()),
        ([Nothing(), BELOW], BELOW),
        ([Points((1.0,)), Points((0.0, 1.0))], Points((0.0, 1.0))),
        ([Interval(0.0, 2.0, 0.0, 2.0), Interval(1.0, 3.0, 1.0, 3.0)], Interval(0.0, 3.0, 0.0, 3.0)),
        ([Interval(0.0, 9.0, 0.0, 9.0), Interval(1.0, 3.0, 1.0, 3.0)], Interval(0.0, 9.0, 0.0, 9.0)),
        ([Points((0.5,)), MIDDLE], MIDDLE),
    ],
)
def test_what_overlaps_becomes_one(regions: list[Region], joined: Region) -> None:
    assert union_of(regions) == joined


def test_intersections() -> None:
    assert intersection(REGION, Interval(-3.0, 0.5, -3.0, 0.5)) == Union(
        (Interval(-3.0, -0.5, -3.0, -0.5), Interval(0.2, 0.5, 0.2, 0.5))
    )
    assert intersection(MIDDLE, REGION) == MIDDLE
    assert intersection(REGION, Points((0.0, 0.5))) == Points((0.5,))
    assert intersection(REGION, Interval(0.8, 1.0, 0.8, 1.0)) is None
