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
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, final

import numpy as np
import torch
from torch import Tensor

from anyorder import advice
from anyorder.cells import (
    MICROSECONDS_PER_DAY,
    SINGLE,
    Mask,
    Numbers,
    Series,
    days,
    distinct,
    key,
    missing_cells,
    numbers,
    plain,
    refuse,
    ticks,
    times,
    warn_of_fractions,
)
from anyorder.errors import UserError, nearest
from anyorder.lattice import Lattice
from anyorder.restore import levels_as, numbers_as, times_as
from anyorder.schema import Kind, Level, Variable
from anyorder.warp import Warp

WarpName = Literal["normal_scores", "standard"]
LARGEST_WHOLE = 2.0**52
"""Above this a float64 cannot tell whole numbers from their halves."""

ENDLESS = 2**50

SMALLEST = 1e-150
"""The square of a spread below this is no longer a float64."""

MOST_DAYS = 5e6
"""Further from now than any calendar; keeps microseconds within int64."""

TRUTH = {
    **dict.fromkeys(("true", "t", "yes", "y", "1", "1.0"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0", "0.0"), False),
}
"""Words for true and false: the only values a boolean variable may have."""


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


@final
@dataclass(frozen=True)
class LevelCodec(Codec):
    """Code k stands for ``levels[k]``."""

    variable: Variable

    @cached_property
    def _codes(self) -> dict[Any, int]:
        codes: dict[Any, int] = {}
        for spelling in (key, str, lambda level: str(level).strip(), self._meaning):
            seen: dict[Any, list[int]] = {}
            for code, level in enumerate(self.variable.levels):
                seen.setdefault(spelling(level), []).append(code)
            # The exact value comes first; a looser spelling counts only where it can mean one level.
            codes |= {name: found[0] for name, found in seen.items() if len(found) == 1 and name not in codes}
        return codes

    def _meaning(self, level: Level) -> Any:
        """What a value means beyond its spelling: "6.0" is 6, and for a boolean "yes" is True."""
        text = str(level).strip().casefold()
        if self.variable.kind is Kind.BOOLEAN and text in TRUTH:
            return ("truth", TRUTH[text])
        try:
            return ("number", float(level))
        except ValueError:
            return ("text", str(level).strip())

    def _find(self, value: Level) -> int | None:
        for spelling in (key(value), str(value), str(value).strip(), self._meaning(value)):
            if spelling in self._codes:
                return self._codes[spelling]
        return None

    def encode(self, column: Series, marks: Sequence[str]) -> tuple[Numbers, Mask]:
        codes, known, unseen = self.encode_seen(column, marks)
        if unseen.any():
            row = int(np.argmax(unseen))
            value = plain(column.iloc[row])
            single = column.index[row] == SINGLE
            way_out = "" if single else f"; to leave such cells out, use {advice.UNSEEN}"
            refuse(self.variable.name, column, row, f"{value!r} is not one of its values; {self._hint(value)}{way_out}")
        return codes, known

    def encode_seen(self, column: Series, marks: Sequence[str]) -> tuple[Numbers, Mask, Mask]:
        """Codes (0 where there is none), which cells are known, and which hold a value that is none of the levels."""
        missing = missing_cells(column, marks)
        if self.variable.kind is Kind.ATOMS:
            missing |= missing_cells(column, marks, words=True)
            codes = self._nearest_atom(column, missing)
        else:
            values, where = distinct(column, missing, self.variable.name)
            found = [self._find(value) for value in values]
            table = np.array([np.nan if code is None else code for code in found], dtype=np.float64)
            codes = np.zeros(len(column))
            codes[~missing] = table[where]
        unseen = np.isnan(codes)
        return np.where(unseen, 0.0, codes), ~missing & ~unseen, unseen

    def _hint(self, value: Level) -> str:
        levels, name = self.variable.levels, self.variable.name
        if self.variable.kind is not Kind.ATOMS:
            return nearest(value, levels, noun="values")
        whole = all(float(level).is_integer() for level in levels) and float(value).is_integer()
        others = advice.kind(name, "integer" if whole else "continuous")
        return f"valid values: {', '.join(map(str, levels))}. If it can take others, fit with {others}"

    def _nearest_atom(self, column: Series, missing: Mask) -> Numbers:
        """The code of each number, NaN where it is none of the levels."""
        given = numbers(column, missing, self.variable.name)
        atoms = np.array([float(level) for level in self.variable.levels])
        order = np.argsort(atoms)
        middles = (atoms[order][1:] + atoms[order][:-1]) / 2
        codes = order[np.searchsorted(middles, given)]
        # 0.1 read from a file is not quite the 0.1 of a float32 column.
        narrow = {"float16": 1e-3, "Float32": 1e-6, "float32": 1e-6}.get(self.variable.dtype, 1e-12)
        off = ~missing & (np.abs(atoms[codes] - given) > narrow * np.abs(atoms[codes]))
        return np.where(missing, 0.0, np.where(off, np.nan, codes))

    def decode(self, values: Numbers) -> Series:
        unknown = np.isnan(values)
        codes = np.where(unknown, 0, np.rint(values)).astype(np.int64).clip(0, len(self.variable.levels) - 1)
        return levels_as(self.variable, codes, unknown)

    def measure(self, values: Numbers) -> Numbers:
        codes = np.rint(values).astype(np.int64).clip(0, len(self.variable.levels) - 1)
        if any(isinstance(level, str) for level in self.variable.levels) and self.variable.kind is not Kind.BOOLEAN:
            return np.full(values.shape, np.nan)
        table = [
            TRUTH.get(str(level).strip().casefold()) if isinstance(level, str) else level
            for level in self.variable.levels
        ]
        units: Numbers = np.array(table, dtype=np.float64)[codes]
        return units

    def from_measure(self, measured: Numbers) -> Numbers:
        table = self.measure(np.arange(len(self.variable.levels), dtype=np.float64))
        codes: Numbers = np.abs(np.asarray(measured)[..., None] - table).argmin(axis=-1).astype(np.float64)
        return codes

    def to_json(self) -> dict[str, Any]:
        return {}


@final
@dataclass(frozen=True)
class LineCodec(Codec):
    """z = warp(x). For times, x counts days since ``origin`` (microseconds since 1970): small numbers stay precise."""

    variable: Variable
    warp: Warp
    origin: int = 0

    @classmethod
    def fit(cls, column: Series, variable: Variable, marks: Sequence[str], warp: WarpName) -> LineCodec:
        """A warp that gives the known cells of ``column`` about unit scale."""
        missing = missing_cells(column, marks, words=True)
        origin = 0
        if variable.kind is Kind.DATETIME and not missing.all():
            known = ticks(times(column, missing, variable.name, variable.zone))[~missing]
            origin = int(known.min()) // MICROSECONDS_PER_DAY * MICROSECONDS_PER_DAY
        blank = cls(variable, Warp.affine(0.0, 1.0), origin)
        step = 1 / 86_400 if variable.resolution == "second" else None
        known_numbers = blank._numbers(column, missing)[~missing]
        _refuse_tiny(known_numbers, variable.name)
        return cls(variable, fitted_warp(known_numbers, warp, step), origin)

    def _numbers(self, column: Series, missing: Mask) -> Numbers:
        if self.variable.kind is not Kind.DATETIME:
            return numbers(column, missing, self.variable.name)
        instants = ticks(times(column, missing, self.variable.name, self.variable.zone))
        return (instants - self.origin) / MICROSECONDS_PER_DAY

    def encode(self, column: Series, marks: Sequence[str]) -> tuple[Numbers, Mask]:
        missing = missing_cells(column, marks, words=True)
        units = self._numbers(column, missing)
        self._refuse_outside(column, missing, units)
        return np.where(missing, 0.0, through(self.warp.forward, units)), ~missing

    def decode(self, values: Numbers) -> Series:
        unknown = np.isnan(values)
        units = through(self.warp.inverse, np.where(unknown, 0.0, values))
        if self.variable.kind is not Kind.DATETIME:
            return numbers_as(self.variable, self.inside(units), unknown)
        grain = 1_000_000 if self.variable.resolution == "second" else 1
        since = np.rint(units.clip(-MOST_DAYS, MOST_DAYS) * (MICROSECONDS_PER_DAY / grain)).astype(np.int64) * grain
        return times_as(self.variable, since + self.origin, unknown, wall=False)

    def measure(self, values: Numbers) -> Numbers:
        return through(self.warp.inverse, values) + self.origin / MICROSECONDS_PER_DAY

    def from_measure(self, measured: Numbers) -> Numbers:
        return through(self.warp.forward, measured - self.origin / MICROSECONDS_PER_DAY)

    def log_slope(self, values: Numbers) -> Numbers:
        return through(self.warp.log_slope, through(self.warp.inverse, values))

    def to_json(self) -> dict[str, Any]:
        return {"warp": dataclasses.asdict(self.warp), "origin": self.origin}


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


def through(function: Callable[[Tensor], Tensor], values: Numbers) -> Numbers:
    """A warp's method, written for tensors, on an array."""
    return np.asarray(function(torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64))).numpy())


def fitted_warp(values: Numbers, warp: WarpName, step: float | None = None) -> Warp:
    """The warp of that name for these values; a shift where they do not vary. ``step``: their spacing, if known."""
    location = float(values.mean()) if len(values) else 0.0
    scale = _deviation(values)
    if not scale > 1e-12 * abs(location):
        return Warp.affine(location, step or 1.0)
    if warp == "standard":
        return Warp.affine(location, scale)
    return Warp.normal_scores(values, minimum_scale=step or rounding_step(values))


def _deviation(values: Numbers) -> float:
    """The standard deviation; scaled first, since squares of small numbers vanish sooner than the numbers."""
    size = float(np.abs(values).max()) if len(values) else 0.0
    return float((values / size).std()) * size if size > 0 else 0.0


def _refuse_tiny(values: Numbers, name: str) -> None:
    if len(values) and values.min() < values.max() and _deviation(values) < SMALLEST:
        raise UserError(
            f"column {name!r} varies by less than {SMALLEST:g}, which is too little to compute with; use another unit"
        )


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
