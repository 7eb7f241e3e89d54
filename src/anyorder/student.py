r"""Student's t without a statistics package: the cdf by quadrature, the quantile by bisection.

$$P(0 \le T \le t) = \frac{\Gamma(\frac{\nu+1}{2})}{\sqrt\pi\,\Gamma(\frac\nu2)}
\int_0^{\arctan(t/\sqrt\nu)} \cos^{\nu-1}\theta \, d\theta.$$

The integrand is smooth on a range that shrinks with its own width, so a fixed rule is exact to rounding.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
NORMAL_FROM = 1e7  # degrees of freedom from which the normal is the same to seven digits


def t_cdf(value: float, degrees: float) -> float:
    """P(T <= value) with ``degrees`` of freedom (infinite: the normal)."""
    if degrees >= NORMAL_FROM:
        return NormalDist().cdf(value)
    end = math.atan(abs(value) / math.sqrt(degrees))
    angle = end * (NODES + 1) / 2
    integral = end / 2 * float((WEIGHTS * np.cos(angle) ** (degrees - 1)).sum())
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(math.pi)
    return 0.5 + math.copysign(scale * integral, value)


def t_quantile(level: float, degrees: float) -> float:
    """The value that T stays below with probability ``level``, 0 < level < 1."""
    if degrees >= NORMAL_FROM:
        return NormalDist().inv_cdf(level)
    if level < 0.5:
        return -t_quantile(1 - level, degrees)
    # Outwards from the normal's, which is nearer than the t's, until the bracket holds the level.
    low, high = 0.0, max(1.0, NormalDist().inv_cdf(level))
    while t_cdf(high, degrees) < level:
        low, high = high, 2 * high
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_cdf(middle, degrees) < level else (low, middle)
    return high
