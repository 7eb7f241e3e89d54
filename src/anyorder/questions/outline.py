"""The outline of a distribution: the stretch of values worth drawing, on which scale, and how much lies where in it.

Values are numbers in the units of the data here, days since 1970 for times, so that all of them can be drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from anyorder.variables.schema import Kind, Variable

LEFT_OUT = 0.005  # at each end: what is shown is the central 99 %
WIDE = 20.0  # the greatest shown value over the least, from which a logarithmic scale is worth it,
SKEWED = 3.0  # and how much longer the upper half has to be than the lower one


class Measured(Protocol):
    """What is needed of an answer."""

    variable: Variable

    @property
    def discrete(self) -> bool: ...
    def measured_quantiles(self, levels: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def measured_cdf(self, values: NDArray[np.float64], *, below: bool = False) -> NDArray[np.float64]: ...


@dataclass(frozen=True)
class Outline:
    """The central 99 %: its ends, its median, and whether a logarithmic scale shows it better."""

    low: float
    middle: float
    high: float
    logarithmic: bool


def outline(answer: Measured) -> Outline:
    """The outline of an answer whose values are numbers or times."""
    low, middle, high = answer.measured_quantiles(np.array([LEFT_OUT, 0.5, 1 - LEFT_OUT])).tolist()
    variable = answer.variable
    positive = variable.kind is not Kind.DATETIME and low > 0 and not any(atom <= 0 for atom in variable.atoms)
    skewed = positive and high > WIDE * low and high - middle > SKEWED * (middle - low)
    return Outline(low, middle, high, skewed)


def histogram(answer: Measured, cells: int = 24) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The edges of cells over the central 99 %, and the probability of each, its upper edge included.

    Of whole numbers and days a cell holds as many as each other one.
    """
    found = outline(answer)
    if answer.discrete:
        step = max(1.0, np.ceil((found.high - found.low + 1) / cells))
        edges = np.arange(found.low - 1, found.high + step - 0.5, step)
    elif not found.low < found.high:
        edges = np.array([found.low, found.low])
    elif found.logarithmic:
        edges = np.geomspace(found.low, found.high, cells + 1)
    else:
        edges = np.linspace(found.low, found.high, cells + 1)
    reached = answer.measured_cdf(edges)
    if not answer.discrete:
        reached[0] = answer.measured_cdf(edges[:1], below=True)[0]  # an atom may lie there
    return edges, np.diff(reached).clip(min=0.0)
