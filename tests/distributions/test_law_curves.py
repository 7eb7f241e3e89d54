"""Curves in NumPy against the laws that they stand for, and against their own definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from anyorder.distributions.base import Distribution
from anyorder.distributions.curves import Between, Components, Curve, Mixed
from anyorder.heads.binned import Binned
from anyorder.heads.bins import Histogram
from anyorder.heads.blended import BlendDistribution
from anyorder.heads.bounded import Bounded
from anyorder.heads.discretized_logistic_mixture import DiscretizedLogisticMixture
from anyorder.heads.gaussian_mixture import GaussianMixture
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp

LEVELS = np.array([1e-9, 1e-4, 0.02, 0.3, 0.5, 0.500001, 0.77, 0.99, 1 - 1e-6])
WARP = Warp.normal_scores(np.random.default_rng(0).gamma(2.0, size=200))
LATTICE = Lattice(0.0, 1.0, None, Warp.affine(4.0, 2.0))


def normals() -> Components:
    return Components(np.array([0.5, 0.2, 0.3]), np.array([-2.0, 0.0, 3.0]), np.array([0.5, 0.001, 1.0]))


def histogram(blur: float) -> Histogram:
    head = Binned((-1.0, -0.2, 0.1, 1.5), WARP, blur=blur)
    return Histogram(head.bins, np.array([0.1, 0.35, 0.05, 0.3, 0.2]))


CURVES: dict[str, Curve] = {
    "normals": normals(),
    "logistics": Components(np.array([0.6, 0.4]), np.array([0.0, 5.0]), np.array([0.1, 1.0]), logistic=True),
    "hard bins": histogram(0.0),
    "soft bins": histogram(0.5),
    "mixed": Mixed([normals(), histogram(0.5)], [0.3, 0.7]),
    "cut": Between(normals(), -1.9, math.inf, *(lambda at: (at, 1 - at))(float(normals().at(np.array([-1.9]))[0][0]))),
}


@pytest.mark.parametrize("name", CURVES)
def test_the_density_is_the_slope_of_the_cdf(name: str) -> None:
    curve = CURVES[name]
    ends = curve.quantile(np.linspace(0.001, 0.999, 400))
    for low, high in zip(ends[:-1:7], ends[1::7], strict=False):
        found, _ = integrate.quad(lambda x: float(curve.at(np.array([x]))[1][0]), low, high, limit=200)
        reached, _ = curve.at(np.array([low, high]))
        assert found == pytest.approx(float(np.diff(reached)[0]), abs=1e-7)


@pytest.mark.parametrize("name", sorted(set(CURVES) - {"logistics"}))
@pytest.mark.parametrize(("low", "high"), [(-math.inf, math.inf), (-1.3, 0.7), (0.5, math.inf)])
def test_the_points_of_its_rule_stand_for_the_law(name: str, low: float, high: float) -> None:
    curve = CURVES[name]
    rule = curve.rule(low, high, steps=(0.25, -0.4))
    assert rule is not None
    points, masses = rule
    assert ((points >= low - 1e-12) & (points <= high + 1e-12)).all()
    below, upto = curve.cdf(np.array([max(low, -50.0), min(high, 50.0)]))
    assert masses.sum() == pytest.approx(upto - below, abs=1e-7)
    if low < -0.4:  # where a function steps, a panel ends
        below, upto = curve.cdf(np.array([-0.4, 0.25]))
        assert masses[(points > -0.4) & (points < 0.25)].sum() == pytest.approx(upto - below, abs=1e-7)
    levels = (np.arange(200_000) + 0.5) / 200_000
    draws = curve.quantile(levels)
    inside = (draws > low) & (draws < high)
    assert (masses * np.sin(points)).sum() == pytest.approx((np.sin(draws) * inside).mean(), abs=1e-4)


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("count", [1, 1000])
def test_quantiles_invert_the_cdf(name: str, count: int) -> None:
    curve = CURVES[name]
    levels = np.concatenate([LEVELS, np.random.default_rng(0).random(count)])
    points = curve.quantile(levels)
    low, high = curve.bracket(levels)
    assert (low - 1e-12 <= points).all() and (points <= high + 1e-12).all()
    np.testing.assert_allclose(curve.at(points)[0], levels, atol=1e-9)
    np.testing.assert_allclose(points, np.concatenate([curve.quantile(levels[i : i + 1]) for i in range(len(levels))]))


def test_ends_of_the_line_and_levels_that_are_none() -> None:
    levels = np.array([0.0, 1.0, math.nan, -0.1, 1.1])
    np.testing.assert_array_equal(normals().quantile(levels), [-math.inf, math.inf, math.nan, math.nan, math.nan])
    cut = CURVES["cut"].quantile(levels)
    np.testing.assert_array_equal(cut, [-1.9, math.inf, math.nan, math.nan, math.nan])


def test_components_against_scipy() -> None:
    points = np.linspace(-4, 6, 41)
    parts = zip((0.5, 0.2, 0.3), (-2.0, 0.0, 3.0), (0.5, 0.001, 1.0), strict=True)
    laws = [(weight, stats.norm(mean, scale)) for weight, mean, scale in parts]
    reached, density = normals().at(points)
    np.testing.assert_allclose(reached, sum(weight * law.cdf(points) for weight, law in laws), atol=1e-14)
    np.testing.assert_allclose(density, sum(weight * law.pdf(points) for weight, law in laws), atol=1e-12)


def laws() -> dict[str, Distribution]:
    generator = torch.Generator().manual_seed(0)

    def said(head: torch.nn.Module, size: int) -> Distribution:
        found: Distribution = head(torch.randn(1, size, generator=generator, dtype=torch.float64))
        return found

    smooth, bins = GaussianMixture(4), Binned((-1.0, 0.0, 1.0), WARP, blur=0.3)
    other = Binned((-0.5, 0.4), WARP, blur=0.3)
    whole, cells = DiscretizedLogisticMixture(3, lattice=LATTICE), Binned((-1.0, 0.0, 1.0), None, LATTICE)
    weights = torch.tensor([[0.2, 0.5, 0.3]], dtype=torch.float64).log()
    parts = (said(smooth, 12), said(bins, 4), said(other, 3))
    cut = tuple(said(Bounded(head, -0.7, firm=False), size) for head, size in ((smooth, 12), (bins, 4), (other, 3)))
    points = (said(whole, 9), said(cells, 4), said(cells, 4))
    return {
        "numbers": BlendDistribution(parts, weights),
        "bounded": BlendDistribution(cut, weights),
        "whole numbers": BlendDistribution(points, weights),
    }


@pytest.mark.parametrize("name", ["numbers", "bounded", "whole numbers"])
@torch.no_grad()
def test_a_blend_is_searched_along_its_curve(name: str) -> None:
    law = laws()[name]
    levels = torch.from_numpy(LEVELS[1:])[:, None]
    assert law.curve() is not None
    points = law.quantile(levels)
    reached = law.cdf(points)
    if not law.discrete:
        torch.testing.assert_close(reached, levels, atol=1e-9, rtol=0.0)
        return
    # The least point whose cdf reaches the level.
    assert bool((reached >= levels).all())
    index = LATTICE.index(points)
    torch.testing.assert_close(LATTICE.at(index), points)
    assert bool((law.cdf(LATTICE.at(index - 1)) < levels).all())
