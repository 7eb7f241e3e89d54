"""Where an increasing function crosses zero, by methods that keep a bracket which always shrinks.

:func:`increasing_root` is for smooth functions with a derivative, :func:`first_crossing` for all others, and
:func:`crossing_by_sections` for those that answer for many points in hardly more time than for one: a call costs so
much more than a number that a dozen of calls with dozens of points beat many calls with one. SciPy's
``optimize.elementwise`` drops the elements that have settled, which a function of a whole batch of distributions
cannot follow; these keep the batch as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
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


MOST_AT_ONCE = 1 << 13  # points in a call: beyond, numbers cost more than calls
FIRST = 129  # points of the first call, both ends among them
EVEN = 24  # points of the others that divide a bracket evenly
NEAR = tuple(sign * 10.0 ** (-1.5 * power) for sign in (-1, 1) for power in range(1, 8))  # others, beside a guess
NEARLY = 100  # a cubic is so many times closer than a straight line, and more
FEWEST = 4  # points in a call for which it still pays


def crossing_by_sections(
    function: Callable[[Tensor], Tensor],
    lower: Float[Tensor, "*batch"],
    upper: Float[Tensor, "*batch"],
    precision: float = 1e-12,
    *,
    rounds: int = 64,
) -> Float[Tensor, "*batch"]:
    """The least point at which a function that also takes points of shape [points, *batch] is no longer negative.

    Every round looks at points that divide the bracket evenly, which leave a small part of it wherever the function
    jumps, and at points that close in on a guess, which leave next to nothing of it where the function is smooth. The
    guess is the cubic through the four points beside the crossing, as a function of the value. Large batches are left
    to :func:`first_crossing`.
    """
    if lower.numel() * FIRST > MOST_AT_ONCE:
        return first_crossing(function, lower, upper, precision)
    shape = (-1, *[1] * lower.ndim)
    even = (np.arange(1, EVEN + 1) / (EVEN + 1)).reshape(shape)
    near = np.array([0.0, *NEAR]).reshape(shape)
    # What is done with so few numbers is quicker in NumPy than in torch.
    ends = np.stack([lower.cpu().double().numpy(), upper.cpu().double().numpy()])

    def at(points: NDArray[np.float64]) -> NDArray[np.float64]:
        return function(torch.from_numpy(points).to(lower.device)).double().cpu().numpy()

    first = np.linspace(0.0, 1.0, FIRST).reshape(shape)
    begin = ends[0]
    points = begin + (ends[1] - begin) * first
    values = at(points)
    started = values[0] < 0
    for _ in range(rounds):
        # The last point before the first that is no longer negative.
        before = np.minimum.accumulate(values < 0, axis=0).sum(axis=0).clip(1, len(points) - 1) - 1
        four = np.stack([(before + step).clip(0, len(points) - 1) for step in (-1, 0, 1, 2)])
        beside, at_beside = (np.take_along_axis(found, four, axis=0) for found in (points, values))
        ends, at_ends = np.where(started, beside[1:3], begin), at_beside[1:3]
        width = ends[1] - ends[0]
        close = precision * np.abs(ends).max(axis=0).clip(min=1)
        guess = inverse_cubic(beside, at_beside)
        inside = (guess > ends[0]) & (guess < ends[1])  # false for NaN: then in the middle
        with np.errstate(all="ignore"):
            straight = ends[0] - at_ends[0] * (width / (at_ends[1] - at_ends[0]))
        # Where even a straight line between the ends comes nearly to the same point, there is nothing left to find.
        found = (width <= 2 * close) | (inside & (np.abs(guess - straight) <= NEARLY * close))
        if found.all():
            ends[1] = np.where(width <= 2 * close, ends[1], guess)
            break
        guess = np.where(inside, guess, ends.mean(axis=0))
        inner = np.concatenate([ends[0] + width * even, guess + width * near])
        inner = np.sort(inner.clip(ends[0], ends[1]), axis=0)
        points = np.concatenate([ends[:1], inner, ends[1:]])
        values = np.concatenate([at_ends[:1], at(inner), at_ends[1:]])
    return torch.from_numpy(np.where(started, ends[1], begin)).to(lower)


def inverse_cubic(points: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where the cubic through four points, as a function of the value, is at the value 0; NaN where there is none."""
    same = np.eye(4).reshape(4, 4, *[1] * (values.ndim - 1))
    with np.errstate(all="ignore"):
        shares = np.where(same, 1.0, values / (values - values[:, None] + same)).prod(axis=1)
        found: NDArray[np.float64] = (shares * points).sum(axis=0)
    return found


def least_index(
    function: Callable[[Tensor], Tensor], first: Float[Tensor, "*batch"], last: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """The least whole number from ``first`` to ``last`` at which each element is no longer negative, ``last`` if none.

    ``function`` takes whole numbers, as floats, of shape [points, *batch].
    """
    count = max(FEWEST, min(64, MOST_AT_ONCE // max(1, first.numel())))
    number = np.arange(float(count)).reshape(-1, *[1] * first.ndim)
    low, high = (end.cpu().double().numpy() for end in (first, torch.maximum(first, last)))
    while (high > low).any():
        step = np.ceil((high - low) / count)
        points = np.clip(low + step * number, low, np.maximum(high - 1, low))
        values = function(torch.from_numpy(points).to(first.device)).double().cpu().numpy()
        passed = np.minimum.accumulate(values < 0, axis=0).sum(axis=0)  # points that are still negative
        reached = np.take_along_axis(points, passed.clip(max=count - 1)[None], axis=0)[0]
        before = np.take_along_axis(points, (passed - 1).clip(min=0)[None], axis=0)[0] + 1
        high = np.where(passed < count, reached, high)
        low = np.minimum(np.where(passed > 0, before, low), high)
    return torch.from_numpy(high).to(first)


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
