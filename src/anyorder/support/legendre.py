"""The one table of Gauss-Legendre rules."""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Float


@cache
def legendre(count: int) -> tuple[Float[np.ndarray, " nodes"], Float[np.ndarray, " nodes"]]:
    """The Gauss-Legendre rule on [-1, 1]: nodes and weights. Shared by all callers: not to be written to."""
    # Arrays, not tensors: one that is made in inference mode could never meet a gradient again.
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights
