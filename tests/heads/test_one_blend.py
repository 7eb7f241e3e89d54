"""The law of a blend for one question against the mixture that it stands for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from anyorder.heads.base import Head
from anyorder.heads.beyond import BeyondDistribution
from anyorder.heads.binned import Binned
from anyorder.heads.blend import Blend
from anyorder.heads.bounded import Bounded
from anyorder.heads.discretized_logistic_mixture import DiscretizedLogisticMixture
from anyorder.heads.gaussian_mixture import GaussianMixture
from anyorder.heads.one_blend import OneBlend
from anyorder.heads.spiked import Spiked
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp

WARP = Warp.normal_scores(np.random.default_rng(0).gamma(2.0, size=200))
LATTICE = Lattice(0.0, 1.0, None, Warp.affine(4.0, 2.0))
SHORT = Lattice(0.0, 1.0, 12, Warp.affine(4.0, 2.0))
LEVELS = np.array([1e-6, 0.001, 0.03, 0.2, 0.5, 0.77, 0.99, 0.9999])


def blend(members: list[Head], ends: tuple[float, ...] = (), beyond: tuple[float, ...] = ()) -> Blend:
    starts = np.cumsum([0, *(head.size for head in members)]).tolist()
    weights = np.random.default_rng(1).dirichlet(np.ones(len(members)))
    gates = tuple(starts[-1] + number for number in range(len(members)))
    return Blend(tuple(members), tuple(weights.tolist()), tuple(starts[:-1]), gates, ends=ends, beyond=beyond)


def numbers(low: float | None = None, high: float | None = None) -> list[Head]:
    mixtures = [GaussianMixture(4, reach=8.0), GaussianMixture(4, reach=8.0), GaussianMixture(2)]
    bins = [Binned((-1.0, 0.0, 1.0), WARP, blur=0.3), Binned((-0.5, 0.4), WARP, blur=0.3)]
    every: list[Head] = [*mixtures, *bins]
    return every if low is None and high is None else [Bounded(head, low, high, firm=False) for head in every]


def points(lattice: Lattice) -> list[Head]:
    each = [DiscretizedLogisticMixture(3, lattice=lattice) for _ in range(2)]
    return [*each, Binned((-1.0, 0.0, 1.0), None, lattice), Binned((-0.5, 0.5), None, lattice)]


HEADS = {
    "numbers": blend(numbers()),
    "numbers with factors": blend(numbers(), (-1.2, 1.4), (0.4, 3.0)),
    "bounded": blend(numbers(-1.0, 2.5)),
    "bounded with factors": blend(numbers(-1.0), (-0.8, 1.4), (2.0, 0.3)),
    "ends at the bounds": blend(numbers(-1.0, 2.0), (-1.5, 2.5), (2.0, 0.3)),
    "whole numbers": blend(points(LATTICE)),
    "whole numbers with factors": blend(points(LATTICE), (-1.25, 1.25), (0.5, 2.0)),
    "whole numbers with an end": blend(points(SHORT), (-1.75, 1.25), (0.5, 2.0)),
    "mixtures alone": blend(numbers()[:3], (-1.2, 1.4), (0.4, 3.0)),
    "histograms alone": blend(numbers()[3:], (-1.2, 1.4), (0.4, 3.0)),
}


def features(head: Head, seed: int = 0) -> torch.Tensor:
    return torch.randn(1, head.size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("seed", [0, 1])
@torch.no_grad()
def test_its_curve_has_the_cdf_of_the_mixture(name: str, seed: int) -> None:
    law = HEADS[name](features(HEADS[name], seed))
    assert isinstance(law, OneBlend)
    curve, mixture = law.curve(), law.base
    assert curve is not None and not isinstance(mixture, OneBlend)
    assert isinstance(mixture, BeyondDistribution) == ("factors" in name or "end" in name or "alone" in name)
    at = torch.linspace(-3, 3, 97, dtype=torch.float64)
    if law.lattice is not None:  # the curve is that of the line: it is the mixture where cells end
        at = law.lattice.edge(torch.arange(-1, 12, dtype=torch.float64))[1:-1]
        below = mixture.cdf(law.lattice.at(torch.arange(0, 11, dtype=torch.float64))[:, None])[:, 0]
    else:
        below = mixture.cdf(at[:, None])[:, 0]
    np.testing.assert_allclose(curve.cdf(at.numpy()), below.numpy(), atol=1e-10)
    np.testing.assert_allclose(curve.at(at.numpy())[0], below.numpy(), atol=1e-10)
    if law.lattice is None:
        inside = at[(at > -0.95) & (at < 1.95)]
        density = mixture.log_prob(inside[:, None])[:, 0].exp()
        np.testing.assert_allclose(curve.at(inside.numpy())[1], density.numpy(), atol=1e-10)


@pytest.mark.parametrize("name", HEADS)
@torch.no_grad()
def test_its_quantiles_are_those_of_the_mixture(name: str) -> None:
    law = HEADS[name](features(HEADS[name]))
    levels = torch.from_numpy(LEVELS)[:, None]
    torch.testing.assert_close(law.quantile(levels), law.base.quantile(levels), atol=1e-9, rtol=1e-9)
    nothing = law.quantile(torch.tensor([[math.nan]], dtype=torch.float64))
    assert bool(nothing.isnan().all())


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("function", [torch.exp, torch.square, lambda value: (value > 0.3).double()])
def test_its_means_are_those_of_the_mixture(name: str, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    head = HEADS[name]
    with torch.no_grad():
        law = head(features(head))
    assert isinstance(law, OneBlend)
    tolerance = 1e-2 if function(torch.tensor(0.4)) == 1 else 1e-7  # a step that no panel ends at
    for fine in (True, False):
        torch.testing.assert_close(
            law.expect(function, fine=fine), law.base.expect(function, fine=fine), atol=tolerance, rtol=tolerance
        )


@torch.no_grad()
def test_what_has_no_curve_is_answered_by_the_mixture() -> None:
    spiked = blend([Spiked((0.0,), head) for head in numbers()])
    assert not isinstance(spiked(features(spiked)), OneBlend)
    # Next to nothing lies between the bounds: a difference of cdfs would have no digits.
    far = blend(numbers(1.0, 1.0005))
    said = features(far)
    said[:, 4:8] = -20.0
    law = far(said)
    assert isinstance(law, OneBlend) and law.curve() is None
    levels = torch.from_numpy(LEVELS)[:, None]
    torch.testing.assert_close(law.quantile(levels), law.base.quantile(levels))


def test_gradients_reach_the_features() -> None:
    head = HEADS["numbers with factors"]
    said = features(head).requires_grad_()
    head(said).log_prob(torch.zeros(1, dtype=torch.float64)).sum().backward()
    assert said.grad is not None and bool((said.grad != 0).any())
