"""How good fills of pictures are, against the truth.

psnr, ssim       of the mean of several fills (Wang et al. 2004; windows of 7 x 7)
energy score     E|X - x| - E|X - X'| / 2 of the missing pixels, in units of the full range: proper, so it rewards draws
                 that are right and as varied as they should be
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from anyorder.errors import UserError

Array = NDArray[np.float64]


def psnr(guess: Array, truth: Array, most: float) -> float:
    """Mean over pictures, in decibels; ``most`` is the greatest level."""
    error = ((guess - truth) ** 2).reshape(len(truth), -1).mean(axis=1)
    return float((10 * np.log10(most**2 / np.maximum(error, 1e-12))).mean())


def ssim(guess: Array, truth: Array, most: float, window: int = 7) -> float:
    """Mean structural similarity over pictures and windows."""
    one, other = (torch.as_tensor(part, dtype=torch.float64)[:, None] for part in (guess, truth))

    def mean(values: Tensor) -> Tensor:
        return F.avg_pool2d(values, window, stride=1)

    count = window**2
    first, second = mean(one), mean(other)
    # Sample variances and covariance of every window.
    spread = count / (count - 1)
    var_one = (mean(one * one) - first**2) * spread
    var_other = (mean(other * other) - second**2) * spread
    together = (mean(one * other) - first * second) * spread
    small, smaller = (0.01 * most) ** 2, (0.03 * most) ** 2
    top = (2 * first * second + small) * (2 * together + smaller)
    bottom = (first**2 + second**2 + small) * (var_one + var_other + smaller)
    return float((top / bottom).mean())


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
