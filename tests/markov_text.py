"""A text in which a symbol depends on the two before it."""

from __future__ import annotations

import numpy as np


def corpus(size: int = 400, symbols: int = 3, seed: int = 0) -> np.ndarray:
    """The codes of such a text, the same each time."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(symbols, 0.5), (symbols, symbols))
    codes = [0, 1]
    for _ in range(size - 2):
        codes.append(int(rng.choice(symbols, p=law[codes[-2], codes[-1]])))
    return np.array(codes)
