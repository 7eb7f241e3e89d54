"""Gauss-Legendre rules: integrals of smooth functions over an interval from a few values, made once for each size."""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Float


@cache
def legendre(count: int) -> tuple[Float[np.ndarray, " nodes"], Float[np.ndarray, " nodes"]]:
    """Nodes and weights on [-1, 1]. Shared by all callers: not to be written to."""
    # Arrays, not tensors: one that is made in inference mode could never meet a gradient again.
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights
