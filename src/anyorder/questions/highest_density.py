"""The highest-density set: the least set of values that holds a variable with a given probability.

The line is cut into cells whose probabilities are exact (differences of the cdf), and cells are taken from the densest
down until the level is reached; neighbouring cells join to intervals. Several modes give several intervals. Half of the
cells share out the probability evenly, half its logarithm on either side, so that a level of 0.9999 finds cells too.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from anyorder.errors import UserError
from anyorder.support.checks import check_level, inside, whole
from anyorder.variables.schema import Variable

CELLS = 2048
MOST_POINTS = 1 << 20  # of a grid: double precision tells no more quantiles apart
HIGHEST = 0.99999  # beyond it, single precision has too few digits of a tail left to tell cells apart


class Described(Protocol):
    """What is needed of an answer."""

    variable: Variable

    @property
    def discrete(self) -> bool: ...
    def probs(self) -> dict[Any, float]: ...
    def spread(self, count: int, left_out: float = ...) -> NDArray[np.float64]: ...
    def cumulative(self, model: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def measure(self, model: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def decode(self, model: NDArray[np.float64]) -> NDArray[Any]: ...


def highest_density(answer: Described, level: float) -> list[Any]:
    """Levels, or intervals (low, high) in the units of the data, ascending; both ends of an interval belong to it."""
    check_level(level)
    if answer.variable.levels:
        return _levels(answer.probs(), level)
    if level > HIGHEST:
        raise UserError(
            f"the level of a highest-density set of a number can be at most {HIGHEST:g}, got {level!r}; ask for less, "
            "or for a quantile"
        )
    grid = np.unique(answer.spread(CELLS, min(0.001, (1 - level) / 50)))
    if len(grid) == 1:
        return [(answer.decode(grid)[0], answer.decode(grid)[0])]
    reached = answer.cumulative(grid)
    if answer.discrete:
        return _points(answer, grid, reached, level)
    units = answer.measure(grid)
    mass, width = np.diff(reached), np.diff(units)
    # An atom without mass lies outside a range that is known: it belongs to no set.
    atoms = {atom: held for atom, held in answer.probs().items() if held > 0} if answer.variable.atoms else {}
    for atom, held in atoms.items():  # a cell holds what lies above its lower end, up to its upper one
        cell = int(np.searchsorted(units, atom)) - 1
        if 0 <= cell < len(mass):
            mass[cell] = max(mass[cell] - float(held), 0.0)
    # An atom is denser than any continuum: all of them come first.
    total = sum(map(float, atoms.values()))
    if total >= level:
        return [(atom, atom) for atom in sorted(_levels(atoms, level))]
    chosen = _densest(mass, mass / np.maximum(width, 1e-300), level - total)
    found = [(answer.decode(grid[[low]])[0], answer.decode(grid[[high]])[0]) for low, high in _runs(chosen)]
    alone = [atom for atom in atoms if not any(low <= atom <= high for low, high in found)]
    return sorted([*found, *((atom, atom) for atom in alone)])


def fine_levels(count: int, left_out: float) -> NDArray[np.float64]:
    """Levels between ``left_out`` and 1 - ``left_out``, ascending: half of them even, half even in their log odds."""
    count = whole("count", count, 2, MOST_POINTS)
    if not inside(left_out, "(0, 0.5)"):
        raise UserError(f"left_out must be a probability above 0 and below 0.5, got {left_out!r}")
    even = np.linspace(left_out, 1 - left_out, count - count // 2)
    odds = np.linspace(np.log(left_out), -np.log(left_out), count // 2 + 2)[1:-1]
    return np.sort(np.concatenate([even, 1 / (1 + np.exp(-odds))]))


def _points(
    answer: Described, grid: NDArray[np.float64], reached: NDArray[np.float64], level: float
) -> list[tuple[Any, Any]]:
    """On a lattice the cells are the points of the grid; many points share one cell only where there are thousands."""
    numbers = np.rint(answer.measure(grid))
    mass = np.diff(reached, prepend=0.0)
    count = np.diff(numbers, prepend=numbers[0] - 1)
    chosen = _densest(mass, mass / np.maximum(count, 1), level)
    decoded = answer.decode(grid)
    out = []
    for low, high in _runs(chosen):
        # A cell holds the points after the one before it, up to its own.
        if count[low] > 1 and low > 0:
            out.append((decoded[low - 1], decoded[high - 1]))
        else:
            out.append((decoded[low], decoded[high - 1]))
    return out


def _densest(mass: NDArray[np.float64], density: NDArray[np.float64], level: float) -> NDArray[np.bool_]:
    order = np.argsort(-density, kind="stable")
    total = np.cumsum(mass[order])
    last = min(int(np.searchsorted(total, level * (1 - 1e-12))), len(order) - 1)
    # Cells as dense as the last one to rounding belong as well: a flat stretch is not torn into pieces.
    chosen: NDArray[np.bool_] = density >= density[order[last]] * (1 - 1e-9)
    return chosen


def _runs(chosen: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Start and end (behind the last) of every run of chosen cells."""
    edges = np.diff(np.concatenate([[False], chosen, [False]]).astype(int))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))


def _levels(probabilities: dict[Any, float], level: float) -> list[Any]:
    ranked = sorted(probabilities, key=lambda name: -probabilities[name])
    out: list[Any] = []
    total = 0.0
    for name in ranked:
        out.append(name)
        total += float(probabilities[name])
        if total >= level * (1 - 1e-12):
            break
    return out
