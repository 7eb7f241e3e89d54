"""One codec per variable: cells of a column <-> one column of the model tensor.

Levels become codes 0..K-1. A number x on a line becomes z = warp(x), so a density in the units of the data is
p(x) = p(z) dz/dx: a codec also gives log dz/dx. Whole numbers and whole days go through a warp too, but
what is asked of them is the probability of a lattice point, so their log dz/dx does not enter.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from anyorder.variables.cells import Mask, Numbers, Series, plain, refuse
from anyorder.variables.schema import Variable
from anyorder.variables.warp import Warp

WarpName = Literal["normal_scores", "standard"]


class Codec(ABC):
    """How one variable goes into the model and comes back."""

    variable: Variable

    @abstractmethod
    def encode(self, column: Series, marks: Sequence[str]) -> tuple[Numbers, Mask]:
        """Model values (0 where unknown) and which cells are known."""

    def encode_evidence(self, column: Series, marks: Sequence[str]) -> tuple[Numbers, Mask]:
        """As :meth:`encode`, of cells that are only ever given: they may hold numbers that cannot be answers."""
        return self.encode(column, marks)

    @abstractmethod
    def decode(self, values: Numbers) -> Series:
        """The column these model values stand for, in its own dtype; NaN becomes a missing cell."""

    def decode_as(self, variable: Variable, values: Numbers) -> Series:
        """As :meth:`decode`, in the form of ``variable``: the same variable with another dtype, say."""
        # Every final codec is a dataclass, which this abstract one cannot say.
        return dataclasses.replace(self, variable=variable).decode(values)  # type: ignore[type-var]

    @abstractmethod
    def measure(self, values: Numbers) -> Numbers:
        """Model values as numbers in the units of the data, not rounded: days since 1970 for times, NaN for texts."""

    @abstractmethod
    def from_measure(self, measured: Numbers) -> Numbers:
        """The model values of such numbers: inverts :meth:`measure`, to the nearest level where it has levels."""

    def log_slope(self, values: Numbers) -> Numbers:
        """log dz/dx at these model values; 0 where the variable is discrete."""
        return np.zeros(values.shape)

    def inside(self, units: Numbers) -> Numbers:
        """Numbers of the data, moved to the nearest bound where rounding carried them past it."""
        low, high = self.variable.bounds
        return units.clip(-math.inf if low is None else low, math.inf if high is None else high)

    def _refuse_outside(self, column: Series, missing: Mask, units: Numbers) -> None:
        """Bounds that the user declared hold for every value; bounds that the data suggest can turn out wrong."""
        low, high = self.variable.bounds
        outside = ~missing & (units != self.inside(units))
        if self.variable.declared and outside.any():
            row = int(np.argmax(outside))
            text = f"{'' if low is None else f'{low:g}'}..{'' if high is None else f'{high:g}'}"
            refuse(self.variable.name, column, row, f"got {plain(column.iloc[row])}, outside its bounds {text}")

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """What there is to keep besides the variable itself."""


def through(function: Callable[[Tensor], Tensor], values: Numbers) -> Numbers:
    """A warp's method, written for tensors, on an array."""
    return np.asarray(function(torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64))).numpy())


def fitted_warp(values: Numbers, warp: WarpName, step: float | None = None) -> Warp:
    """The warp of that name for these values; a shift where they do not vary. ``step``: their spacing, if known."""
    location = float(values.mean()) if len(values) else 0.0
    scale = deviation(values)
    if not scale > 1e-12 * abs(location):
        return Warp.affine(location, step or 1.0)
    if warp == "standard":
        return Warp.affine(location, scale)
    return Warp.normal_scores(values, minimum_scale=step or rounding_step(values))


def deviation(values: Numbers) -> float:
    """The standard deviation; scaled first, since squares of small numbers vanish sooner than the numbers."""
    size = float(np.abs(values).max()) if len(values) else 0.0
    return float((values / size).std()) * size if size > 0 else 0.0


def rounding_step(values: Numbers) -> float | None:
    """The power of ten to which all values are rounded, from 1 down to 1e-6: there is no finer structure to learn."""
    usual = float(np.median(np.abs(values)))
    for digits in range(7):
        scaled = values * 10.0**digits
        whole = np.rint(scaled)
        # Of the size of the values themselves: numbers around 1e-12 are not zeros with an error.
        slack = 1e-9 * np.maximum(min(1.0, usual * 10.0**digits), np.abs(scaled))
        if bool((np.abs(scaled - whole) <= slack).all()) and whole.min() < whole.max():
            return 10.0**-digits
    return None
