"""User units <-> model tensor, one codec per variable, invertible, with log|det|.

A row x of a table becomes a row z of floats: codes for levels, z_i = warp_i(x_i) for numbers and times. The
map is diagonal, so its log|det| is a sum over cells, and in the units of the data

    log p(x) = log p(z) + sum over continuous i of log dz_i/dx_i.

Columns are read one at a time, so memory stays at the size of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from anyorder.errors import UserError, nearest
from anyorder.support.boundary import field
from anyorder.support.notes import note
from anyorder.variables.cells import Series
from anyorder.variables.codecs import Codec, WarpName, codec_for, codec_from_json
from anyorder.variables.context import check_rows
from anyorder.variables.missingness import mark_holes
from anyorder.variables.schema import Kind, Schema, Variable

Unseen: TypeAlias = Literal["refuse", "missing"]
"""What to do with a cell whose value is none of the levels that its variable was fitted on."""

PLAIN = ("float64", "int64", "object")
PLAIN_TIMES = ("datetime64[us]", "datetime64[ns]", "object")
PLAIN_LEVELS = ("object", "str", "bool")
"""Dtypes in which numbers and times, and levels, always come back."""


@dataclass(frozen=True)
class Encoding:
    """A codec for every variable of ``schema``, in its order."""

    schema: Schema
    codecs: tuple[Codec, ...]

    @classmethod
    def fit(
        cls,
        frame: pd.DataFrame,
        schema: Schema,
        warp: WarpName = "normal_scores",
        late: Callable[[], bool] = lambda: False,
    ) -> Encoding:
        """Codecs fitted to the known cells of ``frame``.

        ``normal_scores`` bends every number column towards a standard normal, which tames heavy tails;
        ``standard`` only shifts and scales it. Once ``late`` says so, a ``TimeoutError`` is raised between two columns.
        """
        if warp not in get_args(WarpName):
            raise UserError(f"unknown warp {warp!r}; {nearest(warp, get_args(WarpName))}")
        columns = {str(name): frame.iloc[:, position] for position, name in enumerate(frame.columns)}
        codecs: list[Codec] = []
        for variable in schema.variables:
            if late():
                raise TimeoutError(f"no time is left to encode {variable.name!r}")
            # The indicator of a column's holes is no column itself.
            column = pd.Series(dtype=object) if variable.indicates else columns[variable.name]
            codecs.append(codec_for(variable).fit(column, variable, schema.missing, warp))
        return cls(schema, tuple(codecs))

    @classmethod
    def repeat(cls, codec: Codec, grid: tuple[int, ...]) -> Encoding:
        """The variable of ``codec`` at every position of ``grid``, coded alike: see :meth:`Schema.repeat`."""
        return cls._alike(codec, Schema.repeat(codec.variable, grid))

    @classmethod
    def _alike(cls, codec: Codec, schema: Schema) -> Encoding:
        return cls(schema, tuple(codec.of_variable(own) for own in schema.variables))

    def codec(self, name: str) -> Codec:
        """The codec of the variable ``name``."""
        return self.codecs[self.schema.index(name)]

    def encode(
        self, frame: pd.DataFrame, unseen: Unseen = "refuse", evidence: Collection[str] = ()
    ) -> tuple[Float[np.ndarray, "rows variables"], Bool[np.ndarray, "rows variables"]]:
        """Model values (0 where unknown) and which cells are known.

        A variable without a column is unknown in every row. A column without a variable is a mistake, a misspelling
        of a variable that has no column; where every variable has one, it is ignored with a warning.
        ``unseen="missing"`` takes a value that is none of a variable's levels for an unknown cell. Columns of
        ``evidence`` are only ever given, so among whole numbers they may hold fractions, with a warning.
        """
        values, known, _ = self.encode_seen(frame, unseen, evidence)
        return values, known

    def encode_seen(
        self, frame: pd.DataFrame, unseen: Unseen = "refuse", evidence: Collection[str] = ()
    ) -> tuple[
        Float[np.ndarray, "rows variables"], Bool[np.ndarray, "rows variables"], Bool[np.ndarray, "rows variables"]
    ]:
        """Model values, which cells are known, and which of the others hold a value that the model never saw."""
        if unseen not in get_args(Unseen):
            raise UserError(f"unknown choice unseen={unseen!r}; {nearest(unseen, get_args(Unseen), noun='choices')}")
        columns = self._columns(frame)
        values = np.zeros((len(frame), len(self.schema)))
        known = np.zeros(values.shape, dtype=bool)
        strange = np.zeros(values.shape, dtype=bool)
        marks = self.schema.missing
        for index, codec in enumerate(self.codecs):
            column = columns.get(codec.variable.name)
            if column is None:
                continue
            given = codec.variable.context or codec.variable.name in evidence
            if unseen == "missing":
                found = codec.encode_seen(column, marks, evidence=given)
                values[:, index], known[:, index], strange[:, index] = found
            else:
                values[:, index], known[:, index] = codec.encode(column, marks, evidence=given)
        if self.schema.context:
            check_rows(self.schema, known, columns)
        mark_holes(self.schema, values, known, strange, list(columns))
        counts = dict(zip(self.schema.names, strange.sum(axis=0).tolist(), strict=True))
        if any(counts.values()):
            shown = ", ".join(f"{count} in {name!r}" for name, count in counts.items() if count)
            note(f"values never seen in training are treated as unknown: {shown}", stacklevel=4)
        return values, known, strange

    def cells(
        self, frame: pd.DataFrame
    ) -> tuple[Float[np.ndarray, "rows variables"], Bool[np.ndarray, "rows variables"]]:
        """What the cells of a frame say as numbers, before they are bent (0 where unknown), and which are known.

        Values never seen in training count as unknown, and so does everything about the holes of a column.
        """
        columns = {str(name): frame.iloc[:, position] for position, name in enumerate(frame.columns)}
        values = np.zeros((len(frame), len(self.schema)))
        known = np.zeros(values.shape, dtype=bool)
        for index, codec in enumerate(self.codecs):
            column = columns.get(codec.variable.name)
            if column is not None:
                values[:, index], known[:, index] = codec.cells(column, self.schema.missing)
        return np.where(known, values, 0.0), known

    def _columns(self, frame: pd.DataFrame) -> dict[str, Series]:
        """The columns by name, once it is clear what to make of each."""
        columns: dict[str, Series] = {}
        for position, label in enumerate(frame.columns):
            name = str(label)
            if name in columns:
                raise UserError(f"column {name!r} appears more than once; rename or remove the others")
            columns[name] = frame.iloc[:, position]
        for variable in self.schema.variables:
            if variable.indicates and variable.indicates in columns and variable.name in columns:
                raise UserError(
                    f"{variable.name!r} follows from the missing cells of {variable.indicates!r}; remove that column"
                )
        extra = [name for name in columns if name not in self.schema and name not in self._ignored]
        absent = [v.name for v in self.schema.variables if v.name not in columns and not v.indicates]
        if extra and absent:
            hint = nearest(extra[0], self.schema.names)
            raise UserError(f"the model has no column {extra[0]!r}; {hint} (or remove the column)")
        if extra:
            shown = ", ".join(map(repr, extra))
            note(f"columns that the model does not know are ignored: {shown}", stacklevel=5)
        return columns

    def encode_column(self, name: str, column: Any) -> tuple[Float[np.ndarray, " rows"], Bool[np.ndarray, " rows"]]:
        """One column, given as a Series, an array or a list."""
        series = column if isinstance(column, pd.Series) else pd.Series(column)
        return self.codec(name).encode(series, self.schema.missing)

    def encode_value(self, name: str, value: object, *, evidence: bool = False) -> float:
        """One known value, from Python or as it was typed: 6, "6", "yes", "2024-05-01".

        ``evidence``: it is only ever given, so among whole numbers it may be a fraction.
        """
        return self.codec(name).encode_one(value, self.schema.missing, evidence=evidence)

    def decode(self, values: Float[np.ndarray, "rows variables"], index: pd.Index[Any] | None = None) -> pd.DataFrame:
        """The frame that model values stand for; NaN becomes a missing cell, columns left out come last and empty.

        Numbers have the precision in which they were recorded.
        """
        columns = {codec.variable.name: codec.decode(values[:, number]) for number, codec in enumerate(self.codecs)}
        columns |= {name: pd.Series(np.nan, index=range(len(values))) for name in self.schema.left_out}
        frame = pd.DataFrame(columns, index=pd.RangeIndex(len(values)))
        return frame if index is None else frame.set_axis(index)

    def decode_column(self, name: str, values: Float[np.ndarray, " rows"], *, recorded: bool = False) -> Series:
        """One column, in its own dtype; ``recorded``: rounded to the precision in which its numbers came."""
        codec, values = self.codec(name), np.asarray(values, dtype=np.float64)
        if not recorded and codec.variable.step:
            if name not in self._unrounded:
                self._unrounded[name] = codec.of_variable(replace(codec.variable, step=0.0))
            codec = self._unrounded[name]
        found = codec.decode(values)
        found.name = name
        return found

    def measure(self, name: str, values: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """Model values as plain numbers in the units of the data, not rounded to the lattice.

        For means and plots. Times count days since 1970 (of the wall clock if the resolution is "day"); texts are NaN.
        """
        return self.codec(name).measure(np.asarray(values, dtype=np.float64))

    def log_det(self, values: Float[np.ndarray, "rows variables"]) -> Float[np.ndarray, "rows variables"]:
        """log dz/dx of every cell of the model values ``values``: 0 for discrete variables.

        Unknown cells have a value here too (that of z = 0); only known ones should be summed.
        """
        return np.stack([codec.log_slope(values[:, index]) for index, codec in enumerate(self.codecs)], axis=1)

    @cached_property
    def _unrounded(self) -> dict[str, Codec]:
        """Codecs that do not round to the precision in which a column was recorded, made when they are first needed."""
        return {}

    @cached_property
    def _ignored(self) -> frozenset[str]:
        return frozenset(self.schema.left_out) | frozenset(self.schema.dropped)

    def to_json(self) -> dict[str, Any]:
        """Plain values that :meth:`from_json` turns back, float for float; a repeated codec is there once."""
        codecs = [codec.to_json() for codec in self.codecs]
        if self.schema.repeated is not None and all(codec == codecs[0] for codec in codecs):
            codecs = codecs[:1]
        return {"schema": self.schema.to_json(), "codecs": codecs}

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> Encoding:
        """The encoding that :meth:`to_json` described."""
        with field("schema"):
            schema = Schema.from_json(described["schema"])
        items = described["codecs"]
        once = schema.repeated is not None and len(items) == 1
        variables = (schema.repeated,) if schema.repeated is not None and once else schema.variables
        if len(items) != len(variables):
            raise UserError(f"expected {len(schema)} codecs, one for each variable, got {len(items)}")
        codecs, seen = [], set()
        for number, (variable, item) in enumerate(zip(variables, items, strict=True)):
            with field(f"codecs.{number}"):
                codecs.append(codec_from_json(variable, item))
                if (form := _unusual_form(variable)) and form not in seen:
                    codecs[-1].decode(np.zeros(1))  # whether a column can be given back in it is known once a cell was
                    seen.add(form)
        return cls._alike(codecs[0], schema) if once else cls(schema, tuple(codecs))


def _unusual_form(variable: Variable) -> tuple[Any, ...]:
    """What decides in which form a column is given back; empty where every value can be given back in it."""
    plain = PLAIN_LEVELS if variable.levels else PLAIN_TIMES if variable.kind is Kind.DATETIME else PLAIN
    if not variable.zone and not variable.form and variable.dtype in plain:
        return ()
    return variable.kind, variable.dtype, variable.zone, variable.form, variable.levels, variable.categories
