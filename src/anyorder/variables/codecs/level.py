"""Levels: code k stands for the k-th of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import Tensor

from anyorder.errors import UserError, nearest
from anyorder.support.checks import inside
from anyorder.variables import hints
from anyorder.variables.cells import SINGLE, Mask, Numbers, Series, distinct, key, numbers, plain, refuse
from anyorder.variables.codecs.base import Codec, Space, WarpName
from anyorder.variables.codecs.rarity import of_points
from anyorder.variables.codecs.scores import Law, Standing
from anyorder.variables.ranges import Between, Extent, end_as_number
from anyorder.variables.restore import levels_as
from anyorder.variables.scales import loosely
from anyorder.variables.schema import Kind, Level, Variable

YES_NO = (
    *(("true", "false"), ("t", "f"), ("yes", "no"), ("y", "n"), ("1", "0"), ("1.0", "0.0"), ("on", "off")),
    *(("wahr", "falsch"), ("ja", "nein"), ("j", "n"), ("vrai", "faux"), ("oui", "non"), ("o", "n"), ("sí", "no")),
    *(("si", "no"), ("sì", "no"), ("sim", "não"), ("ja", "nee"), ("tak", "nie"), ("да", "нет"), ("verdadero", "falso")),
)
"""Pairs of words for true and false."""
TRUTH = {yes: True for yes, _ in YES_NO} | {no: False for _, no in YES_NO}
"""Words for true and false: the only values a boolean variable may have."""


@final
@dataclass(frozen=True)
class LevelCodec(Codec):
    """Code k stands for ``levels[k]``."""

    name: ClassVar[str] = "levels"
    space: ClassVar[Space] = Space.LEVELS

    variable: Variable

    @classmethod
    def serves(cls, variable: Variable) -> bool:
        return variable.kind.has_levels

    @classmethod
    def fit(cls, column: Series, variable: Variable, marks: Sequence[str], warp: WarpName) -> LevelCodec:
        """The levels stand in the variable itself; the column has nothing to add."""
        return cls(variable)

    @cached_property
    def _codes(self) -> dict[Any, int]:
        codes: dict[Any, int] = {}
        for spelling in (key, str, lambda level: str(level).strip(), self._meaning, self._loosely):
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
        except (ValueError, OverflowError):  # no number, or one too large to be a level
            return ("text", str(level).strip())

    def _find(self, value: Level) -> int | None:
        for spelling in (key(value), str(value), str(value).strip(), self._meaning(value), self._loosely(value)):
            if spelling in self._codes:
                return self._codes[spelling]
        return None

    def _loosely(self, level: Level) -> Any:
        """Among words with an order capitals mean nothing: "HIGH" is "high"."""
        return ("loosely", loosely(str(level))) if self.variable.kind is Kind.ORDINAL else ("text", str(level).strip())

    def encode(self, column: Series, marks: Sequence[str], *, evidence: bool = False) -> tuple[Numbers, Mask]:
        codes, known, unseen = self.encode_seen(column, marks)
        if unseen.any():
            row = int(np.argmax(unseen))
            value = plain(column.iloc[row])
            single = column.index[row] == SINGLE
            way_out = "" if single else f"; to leave such cells out, use {hints.UNSEEN}"
            refuse(self.variable.name, column, row, f"{value!r} is not one of its values; {self._hint(value)}{way_out}")
        return codes, known

    def encode_seen(
        self, column: Series, marks: Sequence[str], *, evidence: bool = False
    ) -> tuple[Numbers, Mask, Mask]:
        """Codes (0 where there is none), which cells are known, and which hold a value that is none of the levels."""
        missing = self._missing(column, marks)
        if self.variable.kind is Kind.ATOMS:
            codes = self._nearest_atom(column, missing)
        else:
            values, where = distinct(column, missing, self.variable.name)
            found = [self._find(value) for value in values]
            table = np.array([np.nan if code is None else code for code in found], dtype=np.float64)
            codes = np.zeros(len(column))
            codes[~missing] = table[where]
        unseen = np.isnan(codes)
        return np.where(unseen, 0.0, codes), ~missing & ~unseen, unseen

    def _encode_plain(self, value: object, marks: Sequence[str]) -> float | None:
        if not isinstance(value, str | bool | int | float):
            return None
        if isinstance(value, str) and value.strip() in (
            "",
            *(mark.strip() for mark in (*marks, *self.variable.missing)),
        ):
            return None
        # Numbers of a file may be off in their last digit, and words among them may mean "unknown".
        if self.variable.kind is Kind.ATOMS and (isinstance(value, str | bool) or value not in self.variable.levels):
            return None
        code = self._find(value)
        return None if code is None else float(code)

    def is_value(self, text: str) -> bool:
        return self._find(text) is not None

    def _hint(self, value: Level) -> str:
        levels, name = self.variable.levels, self.variable.name
        if self.variable.kind is not Kind.ATOMS:
            return nearest(value, levels, noun="values")
        whole = all(inside(each, "(-inf, inf)") and float(each).is_integer() for each in (*levels, value))
        others = hints.kind(name, "integer" if whole else "continuous")
        notation = self.variable.notation
        texts = map(str, levels) if notation is None else (notation.write(float(level)) for level in levels)
        return f"valid values: {', '.join(texts)}. If it can take others, fit with {others}"

    def _nearest_atom(self, column: Series, missing: Mask) -> Numbers:
        """The code of each number, NaN where it is none of the levels."""
        given = numbers(column, missing, self.variable.name, self.variable.notation)
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

    def listed(self) -> Numbers:
        return np.arange(len(self.variable.levels), dtype=np.float64)

    @property
    def ordered(self) -> bool:
        """Whether smaller and greater mean something for the levels."""
        return self.variable.kind in (Kind.ATOMS, Kind.ORDINAL)

    def between(self, said: Between, marks: Sequence[str]) -> Extent:
        levels, name = self.variable.levels, self.variable.name
        if not self.ordered:
            raise UserError(
                f"{name!r} is {self.variable.kind.value}: its levels have no order, so it has no ranges; name a set, "
                f"such as OneOf({levels[0]!r}) or {{{levels[0]}}}"
            )
        if all(not isinstance(level, str) for level in levels):
            ranks = [float(level) for level in levels]
            low, high = (end_as_number(self.variable, end) for end in (said.low, said.high))
        else:
            ranks = [float(code) for code in range(len(levels))]
            low, high = (None if end is None else self.encode_one(end, marks) for end in (said.low, said.high))
        inside = [
            float(code)
            for code, rank in enumerate(ranks)
            if (low is None or rank > low or (rank == low and not said.low_open))
            and (high is None or rank < high or (rank == high and not said.high_open))
        ]
        if not inside:
            shown = ", ".join(map(str, levels[:8])) + (", ..." if len(levels) > 8 else "")
            raise UserError(f"{name!r}: no value lies in the range {said}; its values: {shown}")
        return tuple(inside)

    def point(self, law: Law) -> Numbers:
        """The code of the most probable level."""
        return np.asarray(self._log_table(law).argmax(dim=0).double().numpy())

    def standing(self, law: Law, values: Tensor) -> Standing:
        table = self._log_table(law).double().numpy()
        mass = np.exp(table)
        code, cell = np.rint(values.numpy()).astype(np.int64), np.arange(len(values))
        own = mass[code, cell]
        if self.ordered:
            _, order, rank = self._ranks()
            below = mass[order].cumsum(axis=0)[rank[code], cell] - own
        else:
            # Ties are broken by code, so that the levels still have one order.
            ahead = (mass > own) | ((mass == own) & (np.arange(len(mass))[:, None] < code))
            below = (mass * ahead).sum(axis=0)
        return Standing(below.clip(0.0, 1.0), own, table[code, cell])

    def rarity(self, law: Law, values: Tensor) -> Numbers:
        return of_points(law, values.round(), self.listed())[0].clip(0.0, 1.0)

    def ranked_score(self, law: Law, values: Tensor) -> Numbers:
        mass = np.exp(self._log_table(law).double().numpy())
        code = np.rint(values.numpy()).astype(np.int64)
        if not self.ordered:
            # The energy score under the distance "another level": half the Brier score.
            own = mass[code, np.arange(len(values))]
            return np.asarray(0.5 * (1 - 2 * own + (mass**2).sum(axis=0)))
        where, order, rank = self._ranks()
        reached = mass[order].cumsum(axis=0)
        step = (np.arange(len(mass) - 1)[:, None] >= rank[code]).astype(np.float64)
        return np.asarray((np.diff(where[order])[:, None] * (reached[:-1] - step) ** 2).sum(axis=0))

    def _log_table(self, law: Law) -> Tensor:
        """log p of every level, [levels, *batch]."""
        codes = torch.arange(len(self.variable.levels), dtype=torch.float64)
        return law.log_prob(codes.reshape(-1, *(1,) * len(law.shape)).expand(-1, *law.shape))

    def _ranks(self) -> tuple[Numbers, Any, Any]:
        """Where each level lies in the units of the data, the codes in that order, and the rank of each code."""
        where = self.measure(self.listed())
        where = where if np.isfinite(where).all() else self.listed()  # ordered texts: by rank
        order = where.argsort(kind="stable")
        return where, order, order.argsort(kind="stable")

    def parameters(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_parameters(cls, variable: Variable, parameters: Mapping[str, Any]) -> LevelCodec:
        return cls(variable)
