"""Where an increasing function crosses zero: Newton's method, kept inside a bracket that always shrinks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def increasing_root(
    function: Callable[[Tensor], tuple[Tensor, Tensor]],
    lower: Float[Tensor, "*batch"],
    upper: Float[Tensor, "*batch"],
    steps: int = 128,
) -> Float[Tensor, "*batch"]:
    """The zero of each element to float precision.

    ``function`` gives value and derivative and changes sign between ``lower`` and ``upper``. A Newton step is taken
    where it stays inside the bracket and at most half as long as the step before; elsewhere the bracket is halved.
    """
    point = lower + (upper - lower) / 2
    moved = upper - lower
    precision = torch.finfo(point.dtype).eps * torch.maximum(lower.abs(), upper.abs())
    settled = torch.zeros_like(point, dtype=torch.bool)
    for _ in range(steps):
        value, slope = function(point)
        low = value < 0
        lower, upper = torch.where(low, point, lower), torch.where(low, upper, point)
        newton = point - value / slope
        # Comparisons with NaN (0 / 0 in a gap) are false: then bisect.
        good = (newton >= lower) & (newton <= upper) & (2 * (newton - point).abs() <= moved)
        following = torch.where(good, newton, lower + (upper - lower) / 2).where(~settled, point)
        moved = (following - point).abs().where(~settled, 0.0)
        point = following
        settled = settled | (moved <= precision)
        if bool(settled.all()):
            break
    return point
