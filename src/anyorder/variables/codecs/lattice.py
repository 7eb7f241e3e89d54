"""Whole numbers and whole days: the points of a lattice, carried by a warp."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import Tensor

from anyorder.errors import UserError
from anyorder.variables import hints
from anyorder.variables.cells import LARGEST_WHOLE, Mask, Numbers, Series, numbers, plain, refuse, warn_of_fractions
from anyorder.variables.codecs.base import Codec, Space, WarpName, fitted_warp, through, unknown_cells, warp_from_json
from anyorder.variables.codecs.line import MOST_DAYS
from anyorder.variables.codecs.rarity import on_lattice
from anyorder.variables.codecs.scores import Law
from anyorder.variables.lattice import Lattice
from anyorder.variables.ranges import Between, Extent, Stretch, end_as_number, within_bounds
from anyorder.variables.restore import numbers_as, times_as
from anyorder.variables.schema import Kind, Variable
from anyorder.variables.times import MICROSECONDS_PER_DAY, days, times
from anyorder.variables.warp import Warp

ENDLESS = 2**50

LISTED = 1 << 16  # points up to which a lattice is listed
WIDEST = 2000  # lattice points up to which a ranked score is summed and not integrated
AT_ONCE = 200_000  # numbers of one grid of points x values
TINY = 1e-6  # tail mass beyond which a lattice is not summed


@final
@dataclass(frozen=True)
class LatticeCodec(Codec):
    """z = warp(x) at the lattice points x = start, start + step, ...; days since 1970 for times of whole days.

    ``start`` and ``stop`` are the least and greatest point seen; values outside them are allowed.
    """

    name: ClassVar[str] = "lattice"
    space: ClassVar[Space] = Space.LATTICE

    variable: Variable
    warp: Warp
    start: int
    stop: int
    step: int = 1

    @classmethod
    def serves(cls, variable: Variable) -> bool:
        return variable.discrete and not variable.kind.has_levels

    @classmethod
    def fit(cls, column: Series, variable: Variable, marks: Sequence[str], warp: WarpName) -> LatticeCodec:
        """A warp that gives the known cells of ``column`` about unit scale."""
        missing = unknown_cells(column, variable, marks)
        known = cls(variable, Warp.affine(0.0, 1.0), 0, 0)._numbers(column, missing)[~missing]
        start, stop = (int(known.min()), int(known.max())) if len(known) else (0, 0)
        return cls(variable, fitted_warp(known, warp, step=1.0, context=variable.context), start, stop)

    def _numbers(self, column: Series, missing: Mask, *, between: bool = False) -> Numbers:
        name = self.variable.name
        if self.variable.kind is Kind.DATETIME:
            given = days(times(column, missing, name, self.variable.zone, self.variable.form))
            given[missing] = 0.0
            expected = "a whole day, as in the table the model was fitted on"
        else:
            given = numbers(column, missing, name, self.variable.notation)
            others = hints.kind(name, "continuous")
            expected = f"a whole number below 2**52; if others can occur, fit with {others}"
            if between:
                warn_of_fractions(name, column, given)
        off = np.flatnonzero(((given != np.rint(given)) & (not between)) | (np.abs(given) > LARGEST_WHOLE))
        if len(off):
            refuse(name, column, int(off[0]), f"got {plain(column.iloc[int(off[0])])}, expected {expected}")
        return given

    @property
    def bend(self) -> Warp | None:
        return self.warp

    @property
    def seen(self) -> tuple[float, float]:
        return float(self.start), float(self.stop)

    def encode(self, column: Series, marks: Sequence[str], *, evidence: bool = False) -> tuple[Numbers, Mask]:
        """A number between two whole ones, 4.5, is never an answer, but as evidence a network can read it."""
        missing = self._missing(column, marks)
        units = self._numbers(column, missing, between=evidence)
        self._refuse_outside(column, missing, units)
        return np.where(missing, 0.0, through(self.warp.forward, units)), ~missing

    def cells(self, column: Series, marks: Sequence[str]) -> tuple[Numbers, Mask]:
        missing = self._missing(column, marks)
        return self._numbers(column, missing), ~missing

    def _encode_plain(self, value: object, marks: Sequence[str]) -> float | None:
        number = None if self.variable.kind is Kind.DATETIME else self._plain_number(value, marks)
        if number is None or not number.is_integer() or abs(number) > LARGEST_WHOLE:
            return None
        if self.variable.declared and number != self.inside(np.array(number)):
            return None
        return float(through(self.warp.forward, np.array([number]))[0])

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
        return Lattice(float(first), float(self.step), count, self.warp, firm=self.variable.declared)

    @property
    def ends(self) -> tuple[None, None]:
        """The lattice has its bounds itself."""
        return None, None

    def listed(self) -> Numbers | None:
        lattice = self.lattice
        if lattice.count is None or lattice.count > LISTED:
            return None
        return np.asarray(lattice.at(torch.arange(lattice.count, dtype=torch.float64)).numpy())

    def can_answer(self, values: Numbers) -> Mask:
        units = self.measure(values)
        # A whole number comes back from model units give or take rounding; a fraction is further off.
        return np.asarray(np.abs(units - np.rint(units)) <= 1e-6 * np.maximum(1.0, np.abs(units) * 1e-6))

    def between(self, said: Between, marks: Sequence[str]) -> Extent:
        """The lattice points inside the range, each of them whole."""
        inside = within_bounds(self.variable, said)
        if inside is None:
            return ()
        lattice = self.lattice
        low, high = (end_as_number(self.variable, end) for end in (inside.low, inside.high))
        first = -math.inf if low is None else math.ceil((low - lattice.start) / lattice.step)
        last = math.inf if high is None else math.floor((high - lattice.start) / lattice.step)
        if low is not None and inside.low_open and lattice.start + lattice.step * first == low:
            first += 1
        if high is not None and inside.high_open and lattice.start + lattice.step * last == high:
            last -= 1
        if first > last:
            raise UserError(f"{self.variable.name!r}: no value lies in the range {inside}")

        def at(index: float) -> float:
            if math.isinf(index):
                return index
            return float(self.from_measure(np.array([lattice.start + lattice.step * index]))[0])

        return Stretch(at(first), at(last), at(first - 0.5), at(last + 0.5))

    def rarity(self, law: Law, values: Tensor) -> Numbers:
        return on_lattice(law, values, self.lattice)

    def ranked_score(self, law: Law, values: Tensor) -> Numbers:
        """A sum over the points, where they are not too many."""
        actual = self.measure(values.numpy())
        ends = law.quantile(torch.tensor([[TINY], [1 - TINY]], dtype=torch.float64).expand(2, len(values)))
        low, high = self.measure(ends.double().numpy())
        low, high = np.minimum(low, actual), np.maximum(high, actual)
        if not np.isfinite(high - low).all() or (high - low).max() > WIDEST:
            return super().ranked_score(law, values)
        start, count = np.rint(low), int((high - low).max()) + 2
        total = np.zeros(len(actual))
        for points in np.array_split(np.arange(count), max(1, count * len(actual) // AT_ONCE + 1)):
            at = start + points[:, None] * float(self.step)
            reached = law.cdf(torch.as_tensor(self.from_measure(at))).double().numpy()
            total += self.step * ((reached - (at >= actual)) ** 2).sum(axis=0)
        return total

    def parameters(self) -> dict[str, Any]:
        return {"warp": dataclasses.asdict(self.warp), "start": self.start, "stop": self.stop, "step": self.step}

    @classmethod
    def from_parameters(cls, variable: Variable, parameters: Mapping[str, Any]) -> LatticeCodec:
        start, stop, step = (int(parameters[name]) for name in ("start", "stop", "step"))
        if not -LARGEST_WHOLE <= start <= stop <= LARGEST_WHOLE or not 1 <= step <= LARGEST_WHOLE:
            raise ValueError(f"a lattice from {start:g} to {stop:g} in steps of {step:g} is beyond whole numbers")
        return cls(variable, warp_from_json(parameters["warp"]), start, stop, step)
