"""Panels of Gauss-Legendre rules: exact for polynomials, in any order of the breaks, cut to an interval."""

from __future__ import annotations

import math

import pytest
import torch
from scipy import integrate

from anyorder.distributions.quadrature import composite
from anyorder.support.legendre import legendre


@pytest.mark.parametrize("count", [2, 4, 5])
def test_a_panel_is_exact_up_to_its_degree(count: int) -> None:
    nodes, weights = composite(torch.tensor([3.0, -1.0, 0.5]).double(), count=count)
    assert len(nodes) == 2 * count
    for power in range(2 * count):
        exact = (3.0 ** (power + 1) - (-1.0) ** (power + 1)) / (power + 1)
        assert float((weights * nodes**power).sum()) == pytest.approx(exact, rel=1e-12)
    over = float((weights * nodes ** (2 * count)).sum())
    exact = (3.0 ** (2 * count + 1) + 1) / (2 * count + 1)
    assert over != pytest.approx(exact, rel=1e-6)  # one degree more is beyond it


def test_an_interval_cuts_the_panels() -> None:
    nodes, weights = composite(torch.linspace(-9, 9, 37).double(), 0.25, 2.0)
    assert bool(((nodes >= 0.25) & (nodes <= 2.0)).all())
    found = float((weights * torch.exp(-(nodes**2))).sum())
    assert found == pytest.approx(integrate.quad(lambda x: math.exp(-(x**2)), 0.25, 2.0)[0], rel=1e-6)


def test_a_table_made_without_gradients_serves_with_them() -> None:
    legendre.cache_clear()
    with torch.inference_mode():
        composite(torch.tensor([0.0, 1.0]).double())
    breaks = torch.tensor([0.0, 2.0], dtype=torch.float64, requires_grad=True)
    nodes, weights = composite(breaks)
    (weights * nodes**2).sum().backward()
    assert breaks.grad is not None
    torch.testing.assert_close(breaks.grad, torch.tensor([0.0, 4.0]).double())  # the integrand at the ends
