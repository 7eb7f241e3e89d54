"""The contract of a codec: cells of a column <-> one column of the model tensor.

Levels become codes 0..K-1. A number x on a line becomes z = warp(x), so a density in the units of the data is
p(x) = p(z) dz/dx: a codec also gives log dz/dx. Whole numbers and whole days go through a warp too, but
what is asked of them is the probability of a lattice point, so their log dz/dx does not enter.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from anyorder.errors import UserError
from anyorder.variables.cells import (
    LARGEST_WHOLE,
    SINGLE,
    Mask,
    Numbers,
    Series,
    missing_cells,
    plain,
    plain_number,
    refuse,
)
from anyorder.variables.codecs.rarity import on_line
from anyorder.variables.codecs.scores import Law, Standing, mean_pinball_loss
from anyorder.variables.lattice import Lattice
from anyorder.variables.ranges import Between, Extent, Stretch, is_open, slack, within_bounds
from anyorder.variables.schema import Kind, Variable
from anyorder.variables.unknown_words import MARKS
from anyorder.variables.warp import Warp

DIGITS = 9  # after the point, which every step that is recognised has
BESIDE = 0.1  # of the range seen: what exceeds it by less is nothing to speak of
MANY = 16  # values from which on a column is quicker than one after the other
SKETCH = 300  # cells of a column of the context that its bend is fitted to

WarpName = Literal["normal_scores", "standard"]


class Space(StrEnum):
    """Where the model values of a variable lie, which decides the heads that can answer for it."""

    LEVELS = "levels"
    LATTICE = "a lattice"
    LINE = "a line"


class Codec(ABC):
    """How one variable goes into the model and comes back, and what is asked of a distribution of its model values.

    A new family is one new file in this package: a frozen dataclass with the fields ``variable`` and whatever was
    fitted. The defaults here are those of a number on a line whose map to model values increases.
    """

    variable: Variable

    name: ClassVar[str]
    space: ClassVar[Space]
    priority: ClassVar[int] = 0
    """0 for the ordinary families, which share out all variables among them; a special one has more and goes first."""

    @classmethod
    @abstractmethod
    def serves(cls, variable: Variable) -> bool:
        """Whether this family can encode such a variable."""

    @classmethod
    @abstractmethod
    def fit(cls, column: Series, variable: Variable, marks: Sequence[str], warp: WarpName) -> Self:
        """The codec fitted to the known cells of ``column``; ``marks`` are further texts for "unknown"."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What was fitted, as plain values for JSON; the variable is kept beside it."""

    @classmethod
    @abstractmethod
    def from_parameters(cls, variable: Variable, parameters: Mapping[str, Any]) -> Self:
        """The codec with these :meth:`parameters`; KeyError, TypeError or ValueError where they make no sense."""

    def to_json(self) -> dict[str, Any]:
        """What :func:`~anyorder.variables.codecs.codec_from_json` reads; an ordinary family goes without its name."""
        return {"codec": self.name, **self.parameters()} if self.priority else self.parameters()

    # Cells <-> model values.

    @abstractmethod
    def encode(self, column: Series, marks: Sequence[str], *, evidence: bool = False) -> tuple[Numbers, Mask]:
        """Model values (0 where unknown) and which cells are known.

        ``evidence``: the cells are only ever given, so they may hold numbers that cannot be answers.
        """

    def encode_seen(
        self, column: Series, marks: Sequence[str], *, evidence: bool = False
    ) -> tuple[Numbers, Mask, Mask]:
        """Model values, which cells are known, and which hold a value never seen, that :meth:`encode` would refuse."""
        values, known = self.encode(column, marks, evidence=evidence)
        return values, known, np.zeros(len(known), dtype=bool)

    def cells(self, column: Series, marks: Sequence[str]) -> tuple[Numbers, Mask]:
        """What the cells say as numbers, before they are bent, and which are known: the codes, where it has levels."""
        values, known, _ = self.encode_seen(column, marks)
        return values, known

    def _missing(self, column: Series, marks: Sequence[str]) -> Mask:
        """Which cells are unknown: in a column of numbers or times words such as "N/A" are too."""
        return unknown_cells(column, self.variable, marks)

    def _plain_number(self, value: object, marks: Sequence[str]) -> float | None:
        return plain_number(value, (*marks, *self.variable.missing), self.variable.notation)

    def encode_one(self, value: object, marks: Sequence[str], *, evidence: bool = False) -> float:
        """The model value of one value, from Python or as it was typed: 6, "6", "yes", "2024-05-01"."""
        quick = self._encode_plain(value, marks)
        if quick is not None:
            return quick
        cell: Series = pd.Series([value], index=[SINGLE], dtype=None if isinstance(value, np.generic) else object)
        values, known = self.encode(cell, marks, evidence=evidence)
        if not known[0]:
            name = self.variable.name
            raise UserError(f"column {name!r}: expected a value, got {value!r}, which stands for an unknown cell")
        return float(values[0])

    def encode_each(self, values: Sequence[object], marks: Sequence[str]) -> list[float]:
        """The model values of several values, each as :meth:`encode_one` reads it; many are read as one column."""
        if len(values) < MANY or any(isinstance(value, np.generic) for value in values):
            return [self.encode_one(value, marks) for value in values]
        cells: Series = pd.Series(list(values), index=[SINGLE] * len(values), dtype=object)
        found, known = self.encode(cells, marks)
        if not known.all():
            self.encode_one(values[int(np.argmin(known))], marks)  # which says why
        return [float(value) for value in found]

    def _encode_plain(self, value: object, marks: Sequence[str]) -> float | None:
        """The model value of an ordinary value, found without a column; None where only a column can tell."""
        return None

    @property
    def plain_warp(self) -> Warp | None:
        """The warp from any finite number to its model value, and back, where nothing else is to be looked at."""
        return None

    def decode_one(self, value: float) -> Any:
        """The cell that one model value stands for, as Python has it where it is a number."""
        cell = self.decode(np.array([value])).iloc[0]
        return cell.item() if isinstance(cell, np.generic) and not isinstance(cell, np.datetime64) else cell

    def is_value(self, text: str) -> bool:
        """Whether a text that looks like a range or a set ("5..6", "missing") is one of the variable's own values."""
        return False

    @abstractmethod
    def decode(self, values: Numbers) -> Series:
        """The column these model values stand for, in its own dtype; NaN becomes a missing cell."""

    def of_variable(self, variable: Variable) -> Self:
        """Equal to this one but for its variable, which is one of the same kind at another position."""
        other = object.__new__(type(self))  # not made anew: thousands of pixels would be checked one by one
        other.__dict__.update(self.__dict__, variable=variable)
        return other

    def decode_as(self, variable: Variable, values: Numbers) -> Series:
        """The column in the form of ``variable``, which is the same variable with another dtype, say."""
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

    def as_recorded(self, units: Numbers) -> Numbers:
        """Numbers of the data, rounded as their column was and within its bounds."""
        if self.variable.step:
            # The last digits of a multiple of 0.1 are no part of it.
            units = np.round(np.rint(units / self.variable.step) * self.variable.step, DIGITS)
        return self.inside(units)

    def _refuse_outside(self, column: Series, missing: Mask, units: Numbers) -> None:
        """Bounds that the user declared hold for every value; bounds that the data suggest can turn out wrong."""
        low, high = self.variable.bounds
        outside = ~missing & (units != self.inside(units))
        if self.variable.declared and outside.any():
            row = int(np.argmax(outside))
            text = f"{'' if low is None else f'{low:g}'}..{'' if high is None else f'{high:g}'}"
            refuse(self.variable.name, column, row, f"got {plain(column.iloc[row])}, outside its bounds {text}")

    # What the model values can be.

    @property
    def lattice(self) -> Lattice | None:
        """The points that the model values lie on, if the space is a lattice."""
        return None

    @property
    def bend(self) -> Warp | None:
        """The warp that leads from the units of the data to model values, if that is all there is to it."""
        return None

    @property
    def reach(self) -> float | None:
        """How far from zero the model values seen lie, about; None where that does not matter."""
        return None if self.bend is None else self.bend.reach

    @property
    def seen(self) -> tuple[float, float] | None:
        """The least and the greatest value in training, as :meth:`measure` has them; None where nobody knows."""
        return None

    @cached_property
    def usual(self) -> tuple[float, float, float, float]:
        """Model values: a little (``BESIDE``) below what was seen, its least, its greatest, and a little above it."""
        if self.seen is None:
            return -math.inf, -math.inf, math.inf, math.inf
        low, high = self.seen
        beside = BESIDE * (high - low)
        first, least, most, last = self.from_measure(np.array([low - beside, low, high, high + beside])).tolist()
        return first, least, most, last

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The least and the greatest model value that a distribution on a line must be cut at."""
        low, high = self.variable.bounds
        return (
            None if low is None else float(self.from_measure(np.array([low]))[0]),
            None if high is None else float(self.from_measure(np.array([high]))[0]),
        )

    @property
    def atoms(self) -> tuple[float, ...]:
        """Model values that the variable often has exactly, increasing."""
        return tuple(self.from_measure(np.array(self.variable.atoms)).tolist()) if self.variable.atoms else ()

    @property
    def has_point_mass(self) -> bool:
        """Whether a single value can have a probability above 0."""
        return self.space is not Space.LINE or bool(self.atoms)

    def listed(self) -> Numbers | None:
        """Every model value there is, increasing; None where they cannot be listed."""
        return None

    def index(self, values: Numbers) -> Numbers:
        """Which of the :meth:`listed` model values is nearest to each of these."""
        listed = self.listed()
        if listed is None:
            raise ValueError(f"the model values of {self.variable.name!r} cannot be listed")
        return np.searchsorted((listed[1:] + listed[:-1]) / 2, values).astype(np.float64)

    def can_answer(self, values: Numbers) -> Mask:
        """Which model values an answer can be; a fraction among whole numbers can only be given."""
        return np.ones(values.shape, dtype=bool)

    # What a user's range or set stands for.

    def beyond_bounds(self, value: object) -> bool:
        """Whether this is a number beyond the bounds of the variable, which it therefore cannot be."""
        low, high = self.variable.bounds
        if (low is None and high is None) or isinstance(value, bool):
            return False
        if not isinstance(value, str | int | float | np.number):
            return False
        notation = self.variable.notation
        read = notation.read(value) if isinstance(value, str) and notation is not None else None
        try:
            number = float(value) if read is None else read
        except ValueError:
            return False
        return (low is not None and number < low) or (high is not None and number > high)

    def points(self, values: Sequence[float]) -> Extent:
        """The extent of single model values, if they have a mass of their own (:attr:`has_point_mass`)."""
        return tuple(sorted(set(values)))

    def between(self, said: Between, marks: Sequence[str]) -> Extent:
        """The model values inside a range that is given in the units of the data."""
        inside = within_bounds(self.variable, said)
        if inside is None:
            return ()
        low = -math.inf if is_open(inside.low) else self.encode_one(inside.low, marks)
        high = math.inf if is_open(inside.high) else self.encode_one(inside.high, marks)
        # A spike on an end belongs to the range, unless the end is left out.
        spiked = bool(self.atoms)
        if low > high or (low == high and not (spiked and not inside.low_open and not inside.high_open)):
            problem = "ends before it begins" if low > high else "is a single point, which has probability 0"
            raise UserError(f"{self.variable.name!r}: the range {inside} {problem}")
        below, above = (slack(low), slack(high)) if spiked else (0.0, 0.0)
        before = low + below if inside.low_open else low - below
        return Stretch(low, high, before, high - above if inside.high_open else high + above)

    # What is read off a distribution of the model values.

    def point(self, law: Law) -> Numbers:
        """The best single model value for each distribution: here the one that stands for the mean in units."""

        def in_units(values: Tensor) -> Tensor:
            return torch.as_tensor(self.measure(values.double().numpy()))

        return self.from_measure(law.expect(in_units, fine=False).double().numpy())

    def standing(self, law: Law, values: Tensor) -> Standing:
        """Where each value stands in its own distribution."""
        log_prob = law.log_prob(values).double()
        at = law.mass_at(values).double()
        below = (law.cdf(values).double() - at).clamp(min=0.0)
        return Standing(below.numpy(), at.numpy(), log_prob.numpy())

    def rarity(self, law: Law, values: Tensor) -> Numbers:
        """The probability of all values that are no more probable than this one, per unit of the data."""
        return on_line(law, values, lambda at: self._height(law, at))

    def _height(self, law: Law, at: Tensor) -> Tensor:
        """The log of the density at model values, in the units of the data."""
        return law.log_prob(at).double() + torch.as_tensor(self.log_slope(at.numpy()))

    def ranked_score(self, law: Law, values: Tensor) -> Numbers:
        """The continuous ranked probability score of each value, in the units of the data (days for times)."""
        return mean_pinball_loss(law, values, self.measure)


def unknown_cells(column: Series, variable: Variable, marks: Sequence[str]) -> Mask:
    """Which cells of the variable's column are unknown; ``marks`` are further texts for that."""
    words = not variable.kind.has_levels or variable.kind is Kind.ATOMS
    return missing_cells(column, (*marks, *variable.missing), words=words)


def own_words(column: Series, variable: Variable, marks: Sequence[str]) -> Mask:
    """Which unknown cells hold a word of their own (31/02/2024, "call us"), which says something to people."""
    words = [text for text in variable.missing if text.casefold() not in MARKS and text not in marks]
    said = missing_cells(column, words) if words else np.zeros(len(column), dtype=bool)
    return said & ~missing_cells(column) if said.any() else said


def through(function: Callable[[Tensor], Tensor], values: Numbers) -> Numbers:
    """A warp's method, written for tensors, on an array."""
    return np.asarray(function(torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64))).numpy())


def warp_from_json(described: Mapping[str, Any]) -> Warp:
    """The warp that ``dataclasses.asdict`` took apart."""
    return Warp(**described)


def fitted_warp(
    values: Numbers,
    warp: WarpName,
    step: float | None = None,
    bounds: tuple[float | None, float | None] = (None, None),
    *,
    context: bool = False,
) -> Warp:
    """The warp of that name for these values; a shift where they do not vary.

    ``step``: their spacing, if known; ``bounds``: where a line is cut. Values of ``context`` only have to come to about
    unit scale, since no density is made of them: some of their order statistics tell enough.
    """
    location = float(values.mean()) if len(values) else 0.0
    scale = deviation(values)
    if not scale > 1e-12 * abs(location):
        return Warp.affine(location, step or 1.0)
    if warp == "standard":
        return Warp.standard(values, location, scale)
    step = step or rounding_step(values)
    if context and len(values) > SKETCH:
        values = np.sort(values)[np.linspace(0, len(values) - 1, SKETCH).round().astype(np.int64)]
    return Warp.normal_scores(values, minimum_scale=step, bounds=bounds)


def deviation(values: Numbers) -> float:
    """The standard deviation; scaled first, since squares of small numbers vanish sooner than the numbers."""
    size = float(np.abs(values).max()) if len(values) else 0.0
    return float((values / size).std()) * size if size > 0 else 0.0


def rounding_step(values: Numbers) -> float | None:
    """The power of ten to which all values are rounded, from 1 down to 1e-6: there is no finer structure to learn."""
    usual, largest = float(np.median(np.abs(values))), float(np.abs(values).max()) if len(values) else 0.0
    for digits in range(7):
        if largest * 10.0**digits > LARGEST_WHOLE:  # all floats of this size are whole: nothing is said by it
            return None
        scaled = values * 10.0**digits
        whole = np.rint(scaled)
        # Of the size of the values themselves: numbers around 1e-12 are not zeros with an error.
        slack = 1e-9 * np.maximum(min(1.0, usual * 10.0**digits), np.minimum(np.abs(scaled), MOST_SLACK))
        if bool((np.abs(scaled - whole) <= slack).all()) and whole.min() < whole.max():
            return 10.0**-digits
    return None


MOST_SLACK = 1e7  # times 1e-9: numbers that are a hundredth of a step off are not on a grid
GRIDS = (25.0, 5.0, 2.0)  # times a power of ten, the coarsest first
ENOUGH = 20  # different values, before a grid other than of decimals is believed


def recorded_step(values: Numbers) -> float:
    """The spacing of the grid on which all values lie, such as 0.1 or 0.25; 0 where there is none down to 1e-6."""
    step = rounding_step(values)
    if step is None:
        return 0.0
    for factor in GRIDS if len(np.unique(values)) >= ENOUGH else ():
        scaled = values / (factor * step)
        if bool((np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.clip(np.abs(scaled), 1.0, MOST_SLACK)).all()):
            return round(factor * step, DIGITS)
    return step
