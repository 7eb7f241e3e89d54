"""One table of Gauss-Legendre rules."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from anyorder.support.legendre import legendre


@pytest.mark.parametrize("count", [1, 4, 5, 24])
def test_the_table_is_scipys_and_made_once(count: int) -> None:
    nodes, weights = legendre(count)
    expected, shares = special.roots_legendre(count)
    np.testing.assert_allclose(nodes, expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(weights, shares, rtol=0, atol=1e-14)
    assert legendre(count)[0] is nodes
