"""Whole numbers and whole days: the points of a lattice, carried by a warp."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from anyorder.variables import hints as advice
from anyorder.variables.cells import Mask, Numbers, Series, missing_cells, numbers, plain, refuse, warn_of_fractions
from anyorder.variables.codecs.base import Codec, WarpName, fitted_warp, through
from anyorder.variables.codecs.line import MOST_DAYS
from anyorder.variables.lattice import Lattice
from anyorder.variables.restore import numbers_as, times_as
from anyorder.variables.schema import Kind, Variable
from anyorder.variables.times import MICROSECONDS_PER_DAY, days, times
from anyorder.variables.warp import Warp

LARGEST_WHOLE = 2.0**52
"""Above this a float64 cannot tell whole numbers from their halves."""


ENDLESS = 2**50


@final
@dataclass(frozen=True)
class LatticeCodec(Codec):
    """z = warp(x) at the lattice points x = start, start + step, ...; days since 1970 for times of whole days.

    ``start`` and ``stop`` are the least and greatest point seen; values outside them are allowed.
    """

    variable: Variable
    warp: Warp
    start: int
    stop: int
    step: int = 1

    @classmethod
    def fit(cls, column: Series, variable: Variable, marks: Sequence[str], warp: WarpName) -> LatticeCodec:
        """A warp that gives the known cells of ``column`` about unit scale."""
        missing = missing_cells(column, marks, words=True)
        known = cls(variable, Warp.affine(0.0, 1.0), 0, 0)._numbers(column, missing)[~missing]
        start, stop = (int(known.min()), int(known.max())) if len(known) else (0, 0)
        return cls(variable, fitted_warp(known, warp, step=1.0), start, stop)

    def _numbers(self, column: Series, missing: Mask, *, between: bool = False) -> Numbers:
        name = self.variable.name
        if self.variable.kind is Kind.DATETIME:
            given = days(times(column, missing, name, self.variable.zone))
            given[missing] = 0.0
            expected = "a whole day, as in the table the model was fitted on"
        else:
            given = numbers(column, missing, name)
            others = advice.kind(name, "continuous")
            expected = f"a whole number below 2**52; if others can occur, fit with {others}"
            if between:
                warn_of_fractions(name, column, given)
        off = np.flatnonzero(((given != np.rint(given)) & (not between)) | (np.abs(given) > LARGEST_WHOLE))
        if len(off):
            refuse(name, column, int(off[0]), f"got {plain(column.iloc[int(off[0])])}, expected {expected}")
        return given

    def encode(self, column: Series, marks: Sequence[str]) -> tuple[Numbers, Mask]:
        return self._encode(column, marks, between=False)

    def encode_evidence(self, column: Series, marks: Sequence[str]) -> tuple[Numbers, Mask]:
        """A number between two whole ones, 4.5, is never an answer, but a network can read it."""
        return self._encode(column, marks, between=True)

    def _encode(self, column: Series, marks: Sequence[str], *, between: bool) -> tuple[Numbers, Mask]:
        missing = missing_cells(column, marks, words=True)
        units = self._numbers(column, missing, between=between)
        self._refuse_outside(column, missing, units)
        return np.where(missing, 0.0, through(self.warp.forward, units)), ~missing

    def decode(self, values: Numbers) -> Series:
        unknown = np.isnan(values)
        points = np.rint(through(self.warp.inverse, np.where(unknown, 0.0, values)))
        if self.variable.kind is not Kind.DATETIME:
            return numbers_as(self.variable, self.inside(points), unknown)
        microseconds = points.clip(-MOST_DAYS, MOST_DAYS).astype(np.int64) * MICROSECONDS_PER_DAY
        return times_as(self.variable, microseconds, unknown, wall=True)

    def measure(self, values: Numbers) -> Numbers:
        return through(self.warp.inverse, values)

    def from_measure(self, measured: Numbers) -> Numbers:
        return through(self.warp.forward, measured)

    @property
    def lattice(self) -> Lattice:
        """All points a value can be, beyond the range that was seen too, within the bounds."""
        least, most = self.variable.bounds
        low, high = None if least is None else math.ceil(least), None if most is None else math.floor(most)
        if low is None and high is None:
            return Lattice(float(self.start), float(self.step), None, self.warp)
        # An open end is further away than any whole number that a float64 holds.
        first = high - ENDLESS if low is None and high is not None else low or 0
        count = ENDLESS + 1 if low is None or high is None else high - low + 1
        return Lattice(float(first), float(self.step), count, self.warp)

    def to_json(self) -> dict[str, Any]:
        return {"warp": dataclasses.asdict(self.warp), "start": self.start, "stop": self.stop, "step": self.step}
