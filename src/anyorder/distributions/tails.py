"""Probabilities of intervals far out in a tail, where a difference of two cdfs would be zero.

    log(F(b) - F(a)) = log F(b) + log(1 - exp(log F(a) - log F(b)))

on the side of the median where F is small, so that both logarithms keep their digits.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

BEYOND = 1e8  # in model units
FARTHEST = 1e4  # in scales: log F is -5e7 there, and still a float with a gradient


def finite(end: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """An end at infinity as one further out than anything: infinity times a scale has no gradient."""
    return end.clamp(-BEYOND, BEYOND)


def log_normal_between(low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """log(Phi(high) - Phi(low)) for low < high; either may be infinite."""
    if bool((high >= FARTHEST).all()):  # one-sided bounds are the usual ones, and cost half
        return log_normal_beyond(low)
    low, high = low.clamp(-FARTHEST, FARTHEST), high.clamp(-FARTHEST, FARTHEST)
    upper = low + high > 0
    low, high = torch.where(upper, -high, low), torch.where(upper, -low, high)
    more, less = torch.special.log_ndtr(high), torch.special.log_ndtr(low)
    return log_difference(more, less)


def log_normal_beyond(low: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """log(1 - Phi(low))."""
    found: Tensor = torch.special.log_ndtr(-low.clamp(-FARTHEST, FARTHEST))
    return found


def log_difference(more: Float[Tensor, "*batch"], less: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """log(exp(more) - exp(less)) for more > less; where rounding makes them equal, a very small probability."""
    gap = (more - less).clamp(min=torch.finfo(more.dtype).eps)
    return more + torch.log(-torch.expm1(-gap))
