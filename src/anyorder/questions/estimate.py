"""Estimate: a number with the standard error of its computation, and the model's own doubt about it.

It *is* a float, so it goes wherever a float goes; beside its value it carries the standard error (0 where the
answer is exact) and the method in words. The standard error is that of the arithmetic, not of the model. The doubt is
how far the model's own parts, or two ways through it to the same answer, are apart: it takes several answers to find,
so it is found when it is asked for or printed. A model that is wrong in all its parts has no doubt of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from anyorder.support import html

EXACT = "exact"


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(float):
    """A number with the standard error of its computation. It is a float, and goes wherever a float goes.

    The standard error is that of the arithmetic, not of the model; :attr:`doubt` is the model's own. A model that is
    wrong as a whole gives wrong answers without either. Arithmetic on estimates gives plain floats.

    Parameters
    ----------
    value
        The number.
    standard_error
        0 where the answer is exact for this model.
    method
        How it was found, in words.
    doubted
        The doubt, or a function that finds it.

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
    doubted: float | Callable[[], float] = 0.0

    def __new__(
        cls,
        value: float,
        standard_error: float = 0.0,
        method: str = EXACT,
        doubted: float | Callable[[], float] = 0.0,
    ) -> Estimate:
        return super().__new__(cls, value)

    @property
    def exact(self) -> bool:
        """Whether it is free of sampling error: exact for this model, which may have its doubts."""
        return self.standard_error == 0.0

    @cached_property
    def doubt(self) -> float:
        """How far the model's own parts are apart about it, as a standard deviation; 0 where there is but one part."""
        return self.doubted() if callable(self.doubted) else self.doubted

    @property
    def error(self) -> float:
        """Standard error and doubt together: what stands behind a ±."""
        return math.hypot(self.standard_error, self.doubt)

    def interval(self, deviations: float = 1.96) -> tuple[float, float]:
        """The value minus and plus so many times its :attr:`error`.

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
        return self.value - deviations * self.error, self.value + deviations * self.error

    def __repr__(self) -> str:
        if not self.error:
            return float.__repr__(self)
        method = f"{EXACT} for this model" if self.exact else self.method
        own = f"; its own doubt {self.doubt:.2g}" if self.doubt else ""
        return f"{self.value:.6g} ± {self.error:.2g} ({method}{own})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        if not self.error:
            return html.Markup(f"<b>{self.value:.6g}</b>")
        said, _, how = repr(self).partition(" (")
        return html.with_remark(html.Markup(f"<b>{html.escaped(said)}</b>"), how.removesuffix(")"))

    def __reduce__(self) -> Any:  # a copy keeps the errors: a bare float's own copy would lose them
        return Estimate, (self.value, self.standard_error, self.method, self.doubt)

    def to_json(self) -> dict[str, Any]:
        """Value, standard error, doubt and method as plain values; a number that is not finite becomes None.

        Returns
        -------
        dict

        Examples
        --------
        >>> ao.Estimate(2.0).to_json()
        {'value': 2.0, 'standard_error': 0.0, 'doubt': 0.0, 'method': 'exact'}
        """
        numbers = {"value": self.value, "standard_error": self.standard_error, "doubt": self.doubt}
        return {
            **{name: number if math.isfinite(number) else None for name, number in numbers.items()},
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
