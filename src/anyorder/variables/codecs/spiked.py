"""A column with atoms: values it often has exactly, in the middle of a continuum of others.

An atom must still be that atom after its model value was rounded to float32 and back, and no other value may be taken
for it. So an atom's model value is one that float32 holds, and another value that would round to it steps aside.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np
import pandas as pd
from torch import Tensor

from anyorder.errors import UserError
from anyorder.variables.cells import Mask, Numbers, Series, numbers
from anyorder.variables.codecs.base import Codec, Space, WarpName, unknown_cells
from anyorder.variables.codecs.line import LineCodec
from anyorder.variables.codecs.rarity import of_points, on_line
from anyorder.variables.codecs.scores import Law
from anyorder.variables.ranges import Extent, Stretch, slack
from anyorder.variables.restore import numbers_as
from anyorder.variables.schema import Kind, Variable


@final
@dataclass(frozen=True)
class SpikedCodec(Codec):
    """The codec of the continuum, and beside it the atoms, each with a model value of its own."""

    name: ClassVar[str] = "spiked"
    space: ClassVar[Space] = Space.LINE

    variable: Variable
    line: LineCodec

    @classmethod
    def serves(cls, variable: Variable) -> bool:
        return variable.kind is Kind.SPIKED

    @classmethod
    def fit(cls, column: Series, variable: Variable, marks: Sequence[str], warp: WarpName) -> SpikedCodec:
        """A warp for the continuum alone; each atom counts once, so that it lies within the warp's range."""
        missing = unknown_cells(column, variable, marks)
        known = numbers(column, missing, variable.name, variable.notation)[~missing]
        apart = known[~np.isin(known, variable.atoms)]
        once: Series = pd.Series(np.concatenate([apart, np.array(variable.atoms)]))
        return cls(variable, LineCodec.fit(once, variable, (), warp))

    @cached_property
    def atoms(self) -> tuple[float, ...]:
        """The model values of the atoms, increasing."""
        at = self.line.from_measure(np.array(self.variable.atoms)).astype(np.float32)
        for number in range(1, len(at)):  # two atoms too close for float32 are still two
            at[number] = max(at[number], np.nextafter(at[number - 1], np.float32(np.inf)))
        return tuple(float(atom) for atom in at)

    @property
    def reach(self) -> float | None:
        return self.line.reach

    @property
    def seen(self) -> tuple[float, float] | None:
        return self.line.seen

    def encode(self, column: Series, marks: Sequence[str], *, evidence: bool = False) -> tuple[Numbers, Mask]:
        values, known = self.line.encode(column, marks, evidence=evidence)
        return self._apart(values, numbers(column, ~known, self.variable.name, self.variable.notation), known), known

    def cells(self, column: Series, marks: Sequence[str]) -> tuple[Numbers, Mask]:
        return self.line.cells(column, marks)

    def _encode_plain(self, value: object, marks: Sequence[str]) -> float | None:
        number, model = self._plain_number(value, marks), self.line._encode_plain(value, marks)
        if number is None or model is None:
            return None
        return float(self._apart(np.array([model]), np.array([number]), np.ones(1, dtype=bool))[0])

    def _apart(self, values: Numbers, given: Numbers, known: Mask) -> Numbers:
        """Atoms at their own model values, and no other value there."""
        for atom, model in zip(self.variable.atoms, self.atoms, strict=True):
            here = known & (given == atom)
            aside = known & ~here & self._at(values, model)
            step = np.where(given < atom, np.float32(-np.inf), np.float32(np.inf))
            values = np.where(aside, np.nextafter(np.float32(model), step.astype(np.float32)), values)
            values = np.where(here, model, values)
        return values

    def decode(self, values: Numbers) -> Series:
        unknown = np.isnan(values)
        return numbers_as(self.variable, self.as_recorded(self.measure(np.where(unknown, 0.0, values))), unknown)

    def measure(self, values: Numbers) -> Numbers:
        units = self.line.inside(self.line.measure(values))
        for atom, model in zip(self.variable.atoms, self.atoms, strict=True):
            units = np.where(self._at(values, model), atom, units)
        return units

    def from_measure(self, measured: Numbers) -> Numbers:
        values = self.line.from_measure(measured)
        for atom, model in zip(self.variable.atoms, self.atoms, strict=True):
            values = np.where(measured == atom, model, values)
        return values

    def log_slope(self, values: Numbers) -> Numbers:
        """0 at an atom, where what is asked is a probability."""
        slope = self.line.log_slope(values)
        for model in self.atoms:
            slope = np.where(self._at(values, model), 0.0, slope)
        return slope

    def _at(self, values: Numbers, model: float) -> Mask:
        with np.errstate(over="ignore"):  # too large for float32 is no atom
            return np.asarray(np.asarray(values).astype(np.float32) == np.float32(model))

    def decode_as(self, variable: Variable, values: Numbers) -> Series:
        line = dataclasses.replace(self.line, variable=variable)
        return SpikedCodec(variable, line).decode(values)

    def rarity(self, law: Law, values: Tensor) -> Numbers:
        """An atom is more probable than any value beside it: all that is no atom is rarer."""
        atoms = np.array(self.atoms)
        rare, whole = of_points(law, values, atoms)
        on_atom = np.any([self._at(values.numpy(), atom) for atom in self.atoms], axis=0)
        out = np.where(on_atom, rare + 1 - whole, 0.0)
        if not on_atom.all():
            beside = on_line(law, values, lambda at: self._height(law, at), self.atoms)
            out = np.where(on_atom, out, beside)
        return np.asarray(out.clip(0.0, 1.0))

    def points(self, values: Sequence[float]) -> Extent:
        if not values:
            return ()
        if len(set(values)) > 1:
            name = self.variable.name
            raise UserError(f"{name!r} is a number with frequent values: give one value or a range, not a set")
        at = values[0]
        return Stretch(at, at, at - slack(at), at + slack(at))

    def parameters(self) -> dict[str, Any]:
        return self.line.parameters()

    @classmethod
    def from_parameters(cls, variable: Variable, parameters: Mapping[str, Any]) -> SpikedCodec:
        return cls(variable, LineCodec.from_parameters(variable, parameters))
