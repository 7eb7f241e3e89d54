"""L-BFGS (Nocedal 1980) for a smooth function of a few thousand numbers, whose gradient autograd finds.

Torch's own imports its compiler first, SciPy's the whole of ``scipy.optimize``: either takes longer than the search.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

HISTORY = 20
ENOUGH = 1e-4  # of the descent that the slope promises, which a step must bring
MOST_HALVINGS = 25
FLAT = 1e-7  # the greatest slope of any number at which the search ends


def minimised(
    function: Callable[[Float[Tensor, " numbers"]], Float[Tensor, ""]], start: Float[Tensor, " numbers"], steps: int
) -> Float[Tensor, " numbers"]:
    """Where the function is least, as far as so many ``steps`` downhill from ``start`` lead."""

    def at(place: Tensor) -> tuple[float, Tensor]:
        with torch.enable_grad():
            leaf = place.detach().requires_grad_()
            value = function(leaf)
            (slope,) = torch.autograd.grad(value, leaf)
        return float(value.detach()), slope

    place = start.detach().clone()
    value, slope = at(place)
    pairs: deque[tuple[Tensor, Tensor]] = deque(maxlen=HISTORY)
    for _ in range(steps):
        if not bool(slope.isfinite().all()) or float(slope.abs().max()) < FLAT:
            break
        direction = -_quasi_newton(slope, pairs)
        descent = float(slope @ direction)
        size = 1.0 if pairs else min(1.0, 1 / float(slope.abs().sum()))
        for _ in range(MOST_HALVINGS):
            moved = place + size * direction
            found, slope_there = at(moved)
            if found <= value + ENOUGH * size * descent:
                break
            size /= 2
        else:
            break
        change, turn = moved - place, slope_there - slope
        if float(change @ turn) > 1e-10 * float(turn @ turn):  # else the curve bends the wrong way here
            pairs.append((change, turn))
        place, value, slope = moved, found, slope_there
    return place


def _quasi_newton(slope: Tensor, pairs: deque[tuple[Tensor, Tensor]]) -> Tensor:
    """The inverse Hessian, as the last steps tell of it, times the slope: the two-loop recursion."""
    found, shares = slope.clone(), []
    for change, turn in reversed(pairs):
        share = (change @ found) / (change @ turn)
        found -= share * turn
        shares.append(share)
    if pairs:
        change, turn = pairs[-1]
        found *= (change @ turn) / (turn @ turn)
    for (change, turn), share in zip(pairs, reversed(shares), strict=True):
        found += change * (share - (turn @ found) / (change @ turn))
    return found
