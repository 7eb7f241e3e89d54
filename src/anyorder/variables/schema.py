"""What the variables are: names, kinds, levels, and how to give each column back as it came.

A variable is one column of a table, one position of a text or one pixel of an image. Its *kind* says which values
it can take, and so which family of one-dimensional distributions answers for it:

=============  =====================================  =============================================
kind           values                                 what a log-probability of it means
=============  =====================================  =============================================
continuous     any real number                        log-density per unit of the column
integer        whole numbers                          log-probability of that number
atoms          a few numbers, such as 0, 0.5 and 1    log-probability of that level
boolean        false, true                            log-probability of that level
categorical    a few texts (or mixed values)          log-probability of that level
ordinal        levels with an order                   log-probability of that level
spiked         any real number, a few of them often   log-probability of such an atom; log-density elsewhere
datetime       times; see ``Variable.resolution``     whole days: log-probability; finer: log-density per day
=============  =====================================  =============================================

Nothing here computes: no tensors, no frames, only plain values that go into a model file as JSON.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias

from anyorder.errors import UserError, nearest
from anyorder.support.boundary import field
from anyorder.support.registry import describe
from anyorder.variables.notations import NOTATIONS, Notation

Level: TypeAlias = str | int | float | bool
"""One value of a variable with levels; all of them survive JSON unchanged."""

Bounds: TypeAlias = tuple[float | None, float | None]
"""The least and the greatest number there can be; None where there is none."""

Group: TypeAlias = tuple[int, ...]
"""Variables that are asked for or measured together, by index."""


class Kind(StrEnum):
    """Which values a variable can take."""

    CONTINUOUS = "continuous"
    INTEGER = "integer"
    ATOMS = "atoms"
    BOOLEAN = "boolean"
    CATEGORICAL = "categorical"
    DATETIME = "datetime"
    ORDINAL = "ordinal"
    SPIKED = "spiked"

    @property
    def has_levels(self) -> bool:
        """Whether the values are a finite list, coded 0..K-1."""
        return self in (Kind.ATOMS, Kind.BOOLEAN, Kind.CATEGORICAL, Kind.ORDINAL)

    @classmethod
    def read(cls, word: object) -> Kind:
        """The kind of that name; :class:`UserError` names the nearest valid one."""
        try:
            return cls(str(word))
        except ValueError:
            raise UserError(f"unknown kind {str(word)!r}; {nearest(word, list(cls))}") from None


LARGEST = 1e300
"""Numbers beyond are too large to compute with: their differences are no longer floats."""

MOST_VARIABLES = 1 << 18
"""As many as a grey picture of 512 x 512 has pixels. A repeated variable is one line in a file, whatever its grid."""

EMPTY = "every cell is missing"
"""Why a column without a single value is left out."""

RESOLUTIONS = ("", "day", "second", "microsecond")


@dataclass(frozen=True)
class Variable:
    """One variable and the form in which its column came.

    ``levels`` lists the values of a boolean, categorical or atoms variable (code k stands for ``levels[k]``).
    ``dtype`` is the pandas dtype to give back. ``resolution`` is "day" for a datetime whose times are all midnight
    (a lattice of whole days), else "second" or "microsecond" (a continuous line, one unit = one day);
    ``zone`` is the time zone of its wall clock, if it has one. ``form`` says how numbers or times were
    written where the column held neither: "text" for numbers, "date" for Python dates, a strftime pattern for times
    as text. ``categories`` and ``ordered`` restore a pandas category column, unused categories included.
    ``atoms`` are the values that a spiked (or integer) variable often has exactly. ``bounds`` are the least and the
    greatest value of a number, None where there is none; ``declared`` says that the user gave them, not the data.
    ``step`` is the precision to which the numbers of a continuum were recorded, and to which drawn and filled ones are
    rounded; 0 where they are not. ``notation`` is how people write the numbers, where they are no plain texts of
    numbers: "$1,204.50". ``missing`` are texts that stand for an unknown cell in this column, beside those of the
    schema.
    ``indicates`` names the column whose absence this (boolean) variable says: see
    :mod:`anyorder.variables.missingness`.
    ``context``: it is only ever evidence, and every question knows it; ``optional``: but for questions that do not, as
    some rows did not when the model was fitted.
    """

    name: str
    kind: Kind
    levels: tuple[Level, ...] = ()
    dtype: str = "float64"
    resolution: str = ""
    zone: str = ""
    form: str = ""
    categories: tuple[Level, ...] = ()
    ordered: bool = False
    indicates: str = ""
    atoms: tuple[float, ...] = ()
    bounds: Bounds = (None, None)
    declared: bool = False
    step: float = 0.0
    notation: Notation | None = None
    missing: tuple[str, ...] = ()
    context: bool = False
    optional: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", Kind.read(self.kind))
        if self.kind.has_levels and not self.levels:
            raise UserError(f"{self.name!r} is {self.kind.value} and needs at least one level")
        if self.levels and not self.kind.has_levels:
            raise UserError(f"{self.name!r} is {self.kind.value} and cannot have levels")
        if self.resolution not in RESOLUTIONS or bool(self.resolution) != (self.kind is Kind.DATETIME):
            raise UserError(f"{self.name!r} is {self.kind.value} and cannot have the resolution {self.resolution!r}")
        self._check_line()
        if self.optional and not self.context:
            raise UserError(f"{self.name!r}: only a column of the context can be optional")
        if self.notation is not None and not self.numeric:
            raise UserError(f"{self.name!r} is {self.kind.value}, so its texts cannot be written like numbers")
        for level in (*self.levels, *self.categories):
            if not isinstance(level, str | int | float) or level != level:
                raise UserError(f"{self.name!r}: a level must be a text, number or boolean, got {level!r:.80}")
        if self.kind is Kind.ATOMS and not all(map(_is_number, self.levels)):
            raise UserError(f"{self.name!r}: the levels of atoms are numbers, got {self.levels!r:.80}")
        if len({(isinstance(level, bool), isinstance(level, str), level) for level in self.levels}) < len(self.levels):
            raise UserError(f"{self.name!r}: its levels must differ")

    def _check_line(self) -> None:
        if self.atoms and self.kind not in (Kind.SPIKED, Kind.INTEGER):
            raise UserError(f"{self.name!r} is {self.kind.value} and cannot have atoms")
        if self.kind is Kind.SPIKED and not self.atoms:
            raise UserError(f"{self.name!r} is spiked and needs an atom")
        if not all(_is_number(atom) for atom in self.atoms) or list(self.atoms) != sorted(set(self.atoms)):
            raise UserError(f"{self.name!r}: atoms are numbers that increase, got {self.atoms!r:.80}")
        line = self.kind in (Kind.CONTINUOUS, Kind.SPIKED)
        if not _is_number(self.step) or self.step < 0 or (self.step and not line):
            raise UserError(f"{self.name!r}: the step of a continuum is a number of 0 or more, got {self.step!r:.80}")
        if self.bounds == (None, None):
            return
        if self.kind not in (Kind.CONTINUOUS, Kind.INTEGER, Kind.SPIKED):
            raise UserError(f"{self.name!r} is {self.kind.value} and cannot have bounds; only number columns can")
        ends = [end for end in self.bounds if end is not None]
        wrong = not all(map(_is_number, ends))
        if len(self.bounds) != 2 or wrong or (len(ends) == 2 and not ends[0] < ends[1]):
            raise UserError(
                f"{self.name!r}: bounds must be a lower and an upper number, or None for either; got {self.bounds!r}"
            )

    @property
    def discrete(self) -> bool:
        """Whether answers about it are probabilities (True) or densities (False)."""
        return self.kind.has_levels or self.kind is Kind.INTEGER or self.resolution == "day"

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers, so that a mean makes sense."""
        return self.kind in (Kind.CONTINUOUS, Kind.INTEGER, Kind.ATOMS, Kind.SPIKED)

    def renamed(self, name: str) -> Variable:
        """Equal to this one but for its name."""
        other = object.__new__(Variable)  # not made anew: thousands of pixels would be checked one by one
        other.__dict__.update(self.__dict__, name=name)
        return other

    def to_json(self) -> dict[str, Any]:
        """Plain values; fields at their default are left out."""
        described: dict[str, Any] = {"name": self.name, "kind": self.kind.value}
        for entry in fields(self)[2:]:
            value = getattr(self, entry.name)
            if value != entry.default:
                plain = describe(value) if isinstance(value, Notation) else value
                described[entry.name] = list(value) if isinstance(value, tuple) else plain
        return described

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> Variable:
        """The variable that :meth:`to_json` described."""
        given = _checked("variable", described, [entry.name for entry in fields(cls)], ("name", "kind"))
        for name in ("levels", "categories"):
            if not isinstance(given.get(name, []), list | tuple):
                raise UserError(f"{name!r} of a variable must be a list, got {given[name]!r}")
            given[name] = tuple(given.get(name, ()))
        for name in ("atoms", "bounds"):
            if name in given:
                if not isinstance(given[name], list | tuple):
                    raise UserError(f"{name!r} of a variable must be a list, got {given[name]!r}")
                given[name] = tuple(given[name])
        with field("notation"):
            if "notation" in given:
                given["notation"] = NOTATIONS.build(given["notation"])
        given["missing"] = _texts("missing", given.get("missing", ()))
        for name in ("name", "dtype", "resolution", "zone", "form", "indicates"):
            if not isinstance(given.get(name, ""), str):
                raise UserError(f"{name!r} of a variable must be text, got {given[name]!r}")
        for name in ("ordered", "declared", "context", "optional"):
            if not isinstance(given.get(name, False), bool):
                raise UserError(f"{name!r} of a variable must be true or false, got {given[name]!r:.80}")
        return cls(**given)


@dataclass(frozen=True)
class Schema:
    """All variables in table order, and the ``grid`` in which they lie: (variables,) for a table.

    ``left_out`` names columns that nothing can be learned from, such as one without a single value or an id: they are
    not variables, and come back as they are; ``why`` says of each of them what it is. ``dropped`` names columns the
    user left out. Both are allowed in later frames and ignored. ``missing`` lists the marks, besides NaN and the empty
    text, that stand for an unknown cell. ``alike`` says that all variables are one thing at different positions
    (characters, pixels); :meth:`repeat` makes such a schema.
    """

    variables: tuple[Variable, ...]
    grid: tuple[int, ...] = ()
    left_out: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    alike: bool = False
    why: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.variables:
            raise UserError("a schema needs at least one variable")
        if not self.grid:
            object.__setattr__(self, "grid", (len(self.variables),))
        if math.prod(self.grid) != len(self.variables) or min(self.grid) < 1:
            raise UserError(f"{len(self.variables)} variables do not fill a grid of {' x '.join(map(str, self.grid))}")
        if len(self.why) not in (0, len(self.left_out)):
            raise UserError(f"{len(self.left_out)} columns are left out, but reasons are given for {len(self.why)}")
        if len(self._positions) != len(self.variables):
            repeated = sorted(name for name, times in Counter(self.names).items() if times > 1)
            raise UserError(f"variable names must differ; repeated: {', '.join(map(repr, repeated))}")
        for variable in self.variables:
            if variable.indicates and (variable.kind is not Kind.BOOLEAN or variable.indicates not in self):
                raise UserError(f"{variable.name!r} cannot say whether {variable.indicates!r} is missing")
            if variable.indicates and (variable.context or self[variable.indicates].context):
                raise UserError(f"{variable.name!r}: the holes of context are not modelled")
        if all(variable.context for variable in self.variables):
            raise UserError("every variable is context, so nothing is left to learn")

    @classmethod
    def repeat(cls, variable: Variable, grid: tuple[int, ...]) -> Schema:
        """A schema of this one variable at every position of ``grid``: "p" becomes "p0", "p1", "p2" and so on."""
        return cls(_at_every_position(variable, math.prod(grid)), grid, alike=True)._repeating(variable)

    def _repeating(self, variable: Variable) -> Schema:
        self.__dict__["repeated"] = variable  # known already: to find it, all variables would be made and compared
        return self

    @cached_property
    def repeated(self) -> Variable | None:
        """The variable that :meth:`repeat` would need to make these; None where they differ."""
        variable = self.variables[0].renamed(self.variables[0].name.removesuffix("0"))
        same = self.alike and self.variables == _at_every_position(variable, len(self))
        return variable if same else None

    @cached_property
    def reasons(self) -> dict[str, str]:
        """Why each of the columns that were left out was."""
        return dict(zip(self.left_out, self.why or (EMPTY,) * len(self.left_out), strict=True))

    @property
    def empty(self) -> tuple[str, ...]:
        """The columns left out because they had no value."""
        return tuple(name for name, reason in self.reasons.items() if reason == EMPTY)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the variables, in order."""
        return tuple(variable.name for variable in self.variables)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {variable.name: position for position, variable in enumerate(self.variables)}

    @cached_property
    def context(self) -> tuple[int, ...]:
        """The positions of the variables that are only ever evidence."""
        return tuple(index for index, variable in enumerate(self.variables) if variable.context)

    @property
    def context_names(self) -> tuple[str, ...]:
        """The names of those."""
        return tuple(self.names[index] for index in self.context)

    @cached_property
    def answered(self) -> tuple[int, ...]:
        """The positions of all others: those that can be asked for."""
        return tuple(index for index, variable in enumerate(self.variables) if not variable.context)

    @cached_property
    def pairs(self) -> dict[int, int]:
        """The position of each column that has an indicator, and that of its indicator."""
        return {self._positions[v.indicates]: index for index, v in enumerate(self.variables) if v.indicates}

    @cached_property
    def partners(self) -> tuple[int, ...]:
        """For a column its indicator, for an indicator its column, else -1; empty where there are no indicators."""
        both = self.pairs | {indicator: column for column, indicator in self.pairs.items()}
        return tuple(both.get(index, -1) for index in range(len(self.variables))) if both else ()

    def __len__(self) -> int:
        return len(self.variables)

    def __getitem__(self, name: str) -> Variable:
        return self.variables[self.index(name)]

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    def index(self, name: str) -> int:
        """The position of the variable ``name``."""
        if name in self._positions:
            return self._positions[name]
        if name in self.left_out:
            reason = self.reasons[name]
            raise UserError(
                f"column {name!r} was left out when the model was fitted ({reason}), so nothing is known about it"
            )
        if name in self.dropped:
            raise UserError(f"column {name!r} was dropped when the model was fitted, so nothing is known about it")
        raise UserError(f"no variable {name!r}; {nearest(name, self.names)}")

    def asked(self, name: str) -> int:
        """The position of the variable ``name``, which somebody asks for: context cannot be."""
        index = self.index(name)
        if self.variables[index].context:
            raise UserError(
                f"{name!r} is context: it is only ever evidence, so the model has no distribution of it; to ask for "
                f"it, fit again with {name!r} left out of context="
            )
        return index

    def to_json(self) -> dict[str, Any]:
        """Plain values that :meth:`from_json` turns back into an equal schema; a repeated variable is there once."""
        lists = {name: list(getattr(self, name)) for name in ("grid", "left_out", "dropped", "missing")}
        lists |= {"why": list(self.why)} if self.why else {}
        if self.repeated is not None:
            return {"repeat": self.repeated.to_json(), **lists}
        return {"variables": [variable.to_json() for variable in self.variables], **lists, "alike": self.alike}

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> Schema:
        """The schema that :meth:`to_json` described; unknown entries and kinds are refused."""
        entries = {"variables": Mapping, "grid": int, "left_out": str, "dropped": str, "missing": str, "why": str}
        once = isinstance(described, Mapping) and "repeat" in described
        needed = ("repeat", "grid") if once else ("variables",)
        given = _checked("schema", described, (*needed, *list(entries)[1:], *(() if once else ("alike",))), needed)
        alike = given.pop("alike", once)
        if not isinstance(alike, bool):
            raise UserError(f"'alike' of a schema must be true or false, got {alike!r}")
        with field("repeat"):
            variable = Variable.from_json(given.pop("repeat")) if once else None
        for name, value in given.items():
            inside = entries[name]
            if not isinstance(value, list | tuple) or not all(isinstance(item, inside) for item in value):
                raise UserError(f"{name!r} of a schema must be a list of {inside.__name__}, got {value!r}")
        lists = {name: tuple(value) for name, value in given.items()}
        if variable is not None:
            lists["variables"] = _at_every_position(variable, math.prod(lists["grid"]))
        else:
            read = []
            for number, item in enumerate(lists["variables"]):
                with field(f"variables.{number}"):
                    read.append(Variable.from_json(item))
            lists["variables"] = tuple(read)
        schema = cls(**lists, alike=alike)
        return schema if variable is None else schema._repeating(variable)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST


def _texts(name: str, given: object) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(item, str) for item in given):
        raise UserError(f"{name!r} of a variable must be a list of texts, got {given!r:.80}")
    return tuple(given)


def _at_every_position(variable: Variable, count: int) -> tuple[Variable, ...]:
    if count > MOST_VARIABLES:
        raise UserError(f"there can be {MOST_VARIABLES} positions at most, got {count}")
    return tuple(variable.renamed(f"{variable.name}{position}") for position in range(count))


def _checked(noun: str, described: Mapping[str, Any], valid: Sequence[str], needed: Sequence[str]) -> dict[str, Any]:
    """The entries of ``described`` if all of them are valid, the needed ones among them."""
    if not isinstance(described, Mapping):
        raise UserError(f"a {noun} is described by a mapping, got {type(described).__name__}")
    for name in described:
        if name not in valid:
            raise UserError(f"a {noun} has no entry {name!r}; {nearest(name, valid)}")
    for name in needed:
        if name not in described:
            raise UserError(f"a {noun} needs the entry {name!r}")
    return dict(described)
