"""The least and the greatest value that a warp was fitted to, read off its knots.

Knots of normal scores go on beyond the data by fixed shares of their width W = greatest - least (``REACHES`` of
:mod:`.tails`), from half a step h outside the last value on. So W and h follow from the last knots and the whole way
between the first and the last, (1 + 2 r) W + 2 h with r the furthest reach. Knots of straight maps have the data
between the two in the middle. Those of earlier versions end with the data.
"""

from __future__ import annotations

import math

from anyorder.variables.tails import REACHES
from anyorder.variables.warp import Warp

STRAIGHT = 10  # knots of Warp.standard, of which the two in the middle are the ends of the data


def seen_by(warp: Warp) -> tuple[float, float] | None:
    """The ends of what a warp was fitted to, in its own units; None where its knots do not tell."""
    x = warp.x
    if len(x) < 3:
        return None
    middle = x[STRAIGHT // 2 - 1 : STRAIGHT // 2 + 1]
    if len(x) == STRAIGHT and all(math.isclose(end, middle[1] - middle[0], rel_tol=1e-6) for end in _outer(x)):
        return middle[0], middle[1]
    furthest, next_one, third = REACHES[-1], REACHES[-2], REACHES[-3]
    width = (x[-1] - x[-2]) / (furthest - next_one)
    same = math.isclose(x[1] - x[0], x[-1] - x[-2], rel_tol=1e-6)
    if same and math.isclose(x[-1] - x[-3], (furthest - third) * width, rel_tol=1e-6):
        half = (x[-1] - x[0] - (1 + 2 * furthest) * width) / 2
        if -1e-6 * width <= half <= width:
            return x[0] + furthest * width + half, x[-1] - furthest * width - half
    return x[0], x[-1]


def _outer(x: tuple[float, ...]) -> tuple[float, float]:
    """How far the knots of a straight map go on beyond the data, on both sides."""
    return x[STRAIGHT // 2 - 1] - x[0], x[-1] - x[STRAIGHT // 2]
