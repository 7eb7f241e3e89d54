"""Where an increasing function crosses zero, by methods that keep a bracket which always shrinks.

:func:`increasing_root` is for smooth functions with a derivative, :func:`first_crossing` for all others. SciPy's
``optimize.elementwise`` drops the elements that have settled, which a function of a whole batch of distributions
cannot follow; these keep the batch as it is.
"""

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


HASTY = 24  # interpolated steps before a bracket is only halved: jumps and plateaus defeat interpolation
SHARP = torch.finfo(torch.float64).eps
DOUBLINGS = 40


def first_crossing(
    function: Callable[[Tensor], Tensor],
    lower: Float[Tensor, "*batch"],
    upper: Float[Tensor, "*batch"],
    precision: float = 1e-12,
    steps: int = 128,
) -> Float[Tensor, "*batch"]:
    """The least point at which each element is no longer negative, within twice the ``precision``.

    The precision is relative to the point above one, absolute below. The function may cross by a jump.

    ``function`` is negative at ``lower`` and not at ``upper``; where it is not negative at ``lower`` either, that is
    the answer. Chandrupatla's method: inverse quadratic interpolation where three points promise that it will do, and
    halves elsewhere.
    """
    newest, other = lower, upper
    at_newest, at_other = function(lower), function(upper)
    other, at_other = other.where(at_newest < 0, newest), at_other.where(at_newest < 0, at_newest)
    before, at_before = other, at_other
    share = torch.full_like(newest, 0.5)
    for step in range(steps):
        point = newest + share * (other - newest)
        value = function(point)
        same = (value < 0) == (at_newest < 0)
        before, at_before = torch.where(same, newest, other), torch.where(same, at_newest, at_other)
        other, at_other = torch.where(same, other, newest), torch.where(same, at_other, at_newest)
        newest, at_newest = point, value
        width = (other - newest).abs()
        close = precision * torch.maximum(newest.abs(), other.abs()).clamp(min=1)
        if bool((width <= 2 * close).all()):
            break
        between = (newest - other) / (before - other)
        height = (at_newest - at_other) / (at_before - at_other)
        smooth = (height**2 < between) & ((1 - height) ** 2 < 1 - between) & (step < HASTY)
        guess = at_newest / (at_other - at_newest) * at_before / (at_other - at_before) + (before - newest) / (
            other - newest
        ) * at_newest / (at_before - at_newest) * at_other / (at_before - at_other)
        least = (close / width).clamp(max=0.5)
        # Comparisons with NaN (a plateau) are false: then halve.
        share = torch.where(smooth & guess.isfinite(), guess, 0.5).clamp(least, 1 - least)
    return torch.where(at_newest < 0, other, newest)


def bracket_end(
    function: Callable[[Tensor], Tensor], start: Float[Tensor, "*batch"], *, upward: bool
) -> Float[Tensor, "*batch"]:
    """The other end of a bracket that has no finite one: in doubling steps from ``start`` until the sign has changed.

    ``function`` increases: upward it is left once it is no longer negative, downward once it is.
    """
    step = torch.ones_like(start) if upward else -torch.ones_like(start)
    for _ in range(DOUBLINGS):
        short = (function(start + step) < 0) == upward
        if not bool(short.any()):
            break
        step = torch.where(short, 2 * step, step)
    return start + step
