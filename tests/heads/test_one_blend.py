"""The law of a blend for one question against the mixture that it stands for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from anyorder.heads.base import Head
from anyorder.heads.beyond import BeyondDistribution
from anyorder.heads.one_blend import OneBlend
from anyorder.heads.spiked import Spiked
from blends import HEADS, blend, numbers

LEVELS = np.array([1e-6, 0.001, 0.03, 0.2, 0.5, 0.77, 0.99, 0.9999])


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
def test_its_own_cdf_is_that_of_the_mixture(name: str) -> None:
    law = HEADS[name](features(HEADS[name]))
    at = torch.tensor([-math.inf, -30.0, -1.3, -1.0, -0.2, 0.4, 1.4, 2.5, 30.0, math.inf], dtype=torch.float64)
    torch.testing.assert_close(law.cdf(at[:, None]), law.base.cdf(at[:, None]), atol=1e-10, rtol=0)
    torch.testing.assert_close(law.cdf(at[3]), law.base.cdf(at[3]), atol=1e-10, rtol=0)


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
