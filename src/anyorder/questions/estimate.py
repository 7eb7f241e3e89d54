"""Estimate: a number with the standard error of its computation.

It *is* a float, so it goes wherever a float goes; beside its value it carries the standard error (0 where the
answer is exact) and the method in words. The error is that of the arithmetic, not of the model: a wrong
model gives wrong answers with a standard error of zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

EXACT = "exact"


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(float):
    """A number with the standard error of its computation. It is a float, and goes wherever a float goes.

    The error is that of the arithmetic, not of the model: a wrong model gives wrong answers with an error of zero.
    Arithmetic on estimates gives plain floats.

    Parameters
    ----------
    value
        The number.
    standard_error
        0 where the answer is exact.
    method
        How it was found, in words.

    Examples
    --------
    >>> share = model.given(rooms=ao.Between(4, 6)).prob("price > 30")
    >>> 0 <= share <= 1, share.exact
    (True, False)
    >>> low, high = share.interval()
    >>> low < share < high
    True
    """

    value: float
    standard_error: float = 0.0
    method: str = EXACT

    def __new__(cls, value: float, standard_error: float = 0.0, method: str = EXACT) -> Estimate:
        return super().__new__(cls, value)

    @property
    def exact(self) -> bool:
        """Whether it is free of sampling error."""
        return self.standard_error == 0.0

    def interval(self, deviations: float = 1.96) -> tuple[float, float]:
        """The value minus and plus so many standard errors.

        Parameters
        ----------
        deviations
            How many; 1.96 for about 95 %.

        Returns
        -------
        tuple of float

        Examples
        --------
        >>> ao.Estimate(2.0, 0.5).interval(2)
        (1.0, 3.0)
        """
        return self.value - deviations * self.standard_error, self.value + deviations * self.standard_error

    def __repr__(self) -> str:
        return float.__repr__(self) if self.exact else f"{self.value:.6g} ± {self.standard_error:.2g} ({self.method})"

    __str__ = __repr__

    def __reduce__(self) -> Any:  # a copy keeps the error: a bare float's own copy would lose it
        return Estimate, (self.value, self.standard_error, self.method)

    def to_json(self) -> dict[str, Any]:
        """Value, standard error and method as plain values; a number that is not finite becomes None.

        Returns
        -------
        dict

        Examples
        --------
        >>> ao.Estimate(2.0).to_json()
        {'value': 2.0, 'standard_error': 0.0, 'method': 'exact'}
        """
        return {
            "value": self.value if math.isfinite(self.value) else None,
            "standard_error": self.standard_error if math.isfinite(self.standard_error) else None,
            "method": self.method,
        }


def mean_of(terms: Float[np.ndarray, " draws"], method: str) -> Estimate:
    """The mean of independent terms and its standard error; terms that agree to rounding are exact."""
    if len(terms) < 2 or float(np.ptp(terms)) <= 1e-12 * float(np.abs(terms).max()):
        return Estimate(float(terms.mean()))
    return Estimate(float(terms.mean()), float(terms.std(ddof=1) / math.sqrt(len(terms))), method)


def weighted_mean(
    weights: Float[np.ndarray, " draws"], terms: Float[np.ndarray, "draws *shape"]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """sum(w g) / sum(w) and its standard error by the delta method: sqrt(sum(w^2 (g - mean)^2)) / sum(w)."""
    share = (weights / weights.sum()).reshape((-1,) + (1,) * (terms.ndim - 1))
    mean = (share * terms).sum(axis=0)
    error = np.sqrt((share**2 * (terms - mean) ** 2).sum(axis=0))
    same = np.ptp(terms, axis=0) <= 1e-12 * np.abs(terms).max(axis=0)  # terms that agree to rounding are exact
    return mean, np.where(same, 0.0, error)


def quotient(above: Estimate, below: Estimate, method: str) -> Estimate:
    """above / below of two independent estimates, by the delta method."""
    value = above.value / below.value
    relative = below.standard_error / below.value
    error = math.hypot(above.standard_error / below.value, value * relative)
    return Estimate(value, error, method if error else EXACT)
