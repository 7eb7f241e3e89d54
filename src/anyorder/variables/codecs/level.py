"""Levels: code k stands for the k-th of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from anyorder.errors import nearest
from anyorder.variables import hints as advice
from anyorder.variables.cells import SINGLE, Mask, Numbers, Series, distinct, key, missing_cells, numbers, plain, refuse
from anyorder.variables.codecs.base import Codec
from anyorder.variables.restore import levels_as
from anyorder.variables.schema import Kind, Level, Variable

TRUTH = {
    **dict.fromkeys(("true", "t", "yes", "y", "1", "1.0"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0", "0.0"), False),
}
"""Words for true and false: the only values a boolean variable may have."""


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
