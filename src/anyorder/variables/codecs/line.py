"""Numbers and times on a line: z = warp(x)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from anyorder.errors import UserError
from anyorder.variables.cells import Mask, Numbers, Series, numbers
from anyorder.variables.codecs.base import (
    Codec,
    Space,
    WarpName,
    deviation,
    fitted_warp,
    through,
    unknown_cells,
    warp_from_json,
)
from anyorder.variables.restore import numbers_as, times_as
from anyorder.variables.schema import Kind, Variable
from anyorder.variables.seen import seen_by
from anyorder.variables.times import MICROSECONDS_PER_DAY, ticks, times
from anyorder.variables.warp import Warp

SMALLEST = 1e-150
"""The square of a spread below this is no longer a float64."""


MOST_DAYS = 5e6
"""Further from now than any calendar; keeps microseconds within int64."""


@final
@dataclass(frozen=True)
class LineCodec(Codec):
    """z = warp(x). For times, x counts days since ``origin`` (microseconds since 1970): small numbers stay precise."""

    name: ClassVar[str] = "line"
    space: ClassVar[Space] = Space.LINE

    variable: Variable
    warp: Warp
    origin: int = 0

    @classmethod
    def serves(cls, variable: Variable) -> bool:
        return not variable.discrete and variable.kind is not Kind.SPIKED

    @classmethod
    def fit(cls, column: Series, variable: Variable, marks: Sequence[str], warp: WarpName) -> LineCodec:
        """A warp that gives the known cells of ``column`` about unit scale."""
        missing = unknown_cells(column, variable, marks)
        origin = 0
        if variable.kind is Kind.DATETIME and not missing.all():
            known = ticks(times(column, missing, variable.name, variable.zone, variable.form))[~missing]
            origin = int(known.min()) // MICROSECONDS_PER_DAY * MICROSECONDS_PER_DAY
        blank = cls(variable, Warp.affine(0.0, 1.0), origin)
        step = 1 / 86_400 if variable.resolution == "second" else None
        known_numbers = blank._numbers(column, missing)[~missing]
        _refuse_tiny(known_numbers, variable.name)
        return cls(variable, fitted_warp(known_numbers, warp, step, variable.bounds, context=variable.context), origin)

    def _numbers(self, column: Series, missing: Mask) -> Numbers:
        if self.variable.kind is not Kind.DATETIME:
            return numbers(column, missing, self.variable.name, self.variable.notation)
        own = self.variable
        instants = ticks(times(column, missing, own.name, own.zone, own.form))
        return (instants - self.origin) / MICROSECONDS_PER_DAY

    @property
    def bend(self) -> Warp | None:
        return self.warp

    @property
    def seen(self) -> tuple[float, float] | None:
        found, begun = seen_by(self.warp), self.origin / MICROSECONDS_PER_DAY
        return None if found is None else (found[0] + begun, found[1] + begun)

    def encode(self, column: Series, marks: Sequence[str], *, evidence: bool = False) -> tuple[Numbers, Mask]:
        units, known = self.cells(column, marks)
        self._refuse_outside(column, ~known, units)
        return np.where(known, through(self.warp.forward, units), 0.0), known

    def cells(self, column: Series, marks: Sequence[str]) -> tuple[Numbers, Mask]:
        missing = self._missing(column, marks)
        return self._numbers(column, missing), ~missing

    def _encode_plain(self, value: object, marks: Sequence[str]) -> float | None:
        number = None if self.variable.kind is Kind.DATETIME else self._plain_number(value, marks)
        if number is None or (self.variable.declared and number != self.inside(np.array(number))):
            return None
        return float(through(self.warp.forward, np.array([number]))[0])

    @cached_property
    def plain_warp(self) -> Warp | None:
        own = self.variable
        marked = own.declared or own.missing or own.notation is not None or own.form
        return None if marked or own.kind is Kind.DATETIME else self.warp

    def decode_one(self, value: float) -> Any:
        if self.plain_warp is None or self.variable.dtype != "float64" or math.isnan(value):
            return super().decode_one(value)
        return float(self.as_recorded(self.warp.inverse_array(np.array([value])))[0])

    def decode(self, values: Numbers) -> Series:
        unknown = np.isnan(values)
        units = through(self.warp.inverse, np.where(unknown, 0.0, values))
        if self.variable.kind is not Kind.DATETIME:
            return numbers_as(self.variable, self.as_recorded(units), unknown)
        grain = 1_000_000 if self.variable.resolution == "second" else 1
        since = np.rint(units.clip(-MOST_DAYS, MOST_DAYS) * (MICROSECONDS_PER_DAY / grain)).astype(np.int64) * grain
        return times_as(self.variable, since + self.origin, unknown, wall=False)

    def measure(self, values: Numbers) -> Numbers:
        return through(self.warp.inverse, values) + self.origin / MICROSECONDS_PER_DAY

    def from_measure(self, measured: Numbers) -> Numbers:
        return through(self.warp.forward, measured - self.origin / MICROSECONDS_PER_DAY)

    def log_slope(self, values: Numbers) -> Numbers:
        return through(self.warp.log_slope, through(self.warp.inverse, values))

    def parameters(self) -> dict[str, Any]:
        return {"warp": dataclasses.asdict(self.warp), "origin": self.origin}

    @classmethod
    def from_parameters(cls, variable: Variable, parameters: Mapping[str, Any]) -> LineCodec:
        origin = int(parameters["origin"])
        if abs(origin) > MOST_DAYS * MICROSECONDS_PER_DAY:
            raise ValueError(f"its times begin {origin:g} microseconds from 1970, which no calendar reaches")
        return cls(variable, warp_from_json(parameters["warp"]), origin)


def _refuse_tiny(values: Numbers, name: str) -> None:
    if len(values) and values.min() < values.max() and deviation(values) < SMALLEST:
        raise UserError(
            f"column {name!r} varies by less than {SMALLEST:g}, which is too little to compute with; use another unit"
        )
