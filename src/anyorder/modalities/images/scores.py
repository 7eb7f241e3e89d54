"""How good fills of pictures are, against the truth.

energy score     E|X - x| - E|X - X'| / 2 of the missing pixels, in units of the full range: proper, so it rewards draws
                 that are right and as varied as they should be
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyorder.errors import UserError

Array = NDArray[np.float64]


def energy_score(draws: Array, truth: Array, known: NDArray[np.bool_], most: float) -> Array:
    """The energy score of each picture; ``draws`` are [draws, pictures, height, width], two at least."""
    if len(draws) < 2:
        raise UserError(f"the energy score compares draws with each other: give two or more, got {len(draws)}")
    missing = ~known.reshape(len(truth), -1)
    drawn = draws.reshape(len(draws), len(truth), -1) / most
    real = truth.reshape(len(truth), -1) / most

    def distance(one: Array, other: Array) -> Array:
        return np.asarray(np.sqrt((((one - other) ** 2) * missing).sum(axis=-1)))

    count = len(drawn)
    right = distance(drawn, real).mean(axis=0)
    apart = sum(distance(drawn[one], drawn[other]) for one in range(count) for other in range(one))
    return np.asarray(right - apart / (count * (count - 1)))
