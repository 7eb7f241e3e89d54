"""From a pandas or polars frame to a schema: what every column is, and what cannot be modelled.

The rules can be overridden column by column with ``kinds`` and ``levels``:

- real booleans, and texts that are all true/false or yes/no in one of many languages, are boolean;
- numbers (texts that all read as numbers too) are *atoms* if they take at most ten values, each about five times;
  else *integer* if all are whole; else *spiked* if one to three values hold a tenth of the cells each; else
  *continuous*. Numbers as people write them ($1,204.50, 64,3, 12 %, 3.5 kg, 14:30, 2024-Q3) are numbers too: see
  :mod:`anyorder.variables.notations`;
- times, Python dates, and dates in any common form (see :mod:`anyorder.variables.time_forms`) are datetime;
- words with an order that everybody knows (never, sometimes, often; S, M, L; 18-24, 25-34) are ordinal: see
  :mod:`anyorder.variables.scales`;
- every other text, and every pandas category, is categorical (*ordinal* if the category is ordered). Texts such as
  01234 stay texts.

Numbers that are never negative and come within a standard deviation of 0 get the lower bound 0. Shares, which lie
between 0 and 1 or 0 and 100 and touch the upper end (or nearly touch 0 and 1), get both. An end at which many cells
pile up, and next to which few lie, is a limit of the recording: a bound, and in a continuum an atom. ``bounds``
overrides all of this. A declared kind is taken literally: nothing else about such a column is inferred.

A column with one value only is kept, with that one level, so that its holes can be filled. Ids, free text and columns
without a value are left out, with a line that says why.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from anyorder.data.columns import Understood, understand
from anyorder.data.dialect import Dialect
from anyorder.data.digits import PLACES
from anyorder.data.frames import as_pandas
from anyorder.errors import UserError, nearest
from anyorder.variables.notations.number import NumberNotation
from anyorder.variables.schema import EMPTY, Bounds, Kind, Schema, Variable

PRECISE = 9
"""Digits after the decimal sign where a file has now more, now fewer; zeros at the end are left out."""
FREE_TEXT = ("text", "id", "free text", "freetext")


def prepare(
    frame: Any,
    kinds: Mapping[str, str] | None = None,
    missing: Sequence[object] = (),
    drop: Sequence[str] = (),
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Sequence[object]] | None = None,
) -> tuple[Schema, pd.DataFrame]:
    """The schema of a pandas or polars frame, and the frame in pandas with only the modelled columns."""
    table, found = understand_table(frame, kinds, missing, drop, bounds, levels)
    variables = tuple(each.variable for each in found if each.variable is not None)
    left_out = [each for each in found if each.variable is None]
    if not variables:
        if all(each.why == EMPTY for each in left_out):
            raise UserError("every cell of the table is missing, so there is nothing to learn from")
        said = "; ".join(f"{each.name!r}: {each.why}" for each in left_out[:5])
        raise UserError(f"there is no column to learn from ({said}); keep one with {left_out[0].remedy}")
    for each in found:
        for line in lines_about(each):
            warnings.warn(line, UserWarning, stacklevel=3)
    schema = Schema(
        variables,
        left_out=tuple(each.name for each in left_out),
        dropped=tuple(dict.fromkeys(map(str, drop))),
        missing=tuple(dict.fromkeys(str(mark) for mark in missing)),
        why=tuple(each.why for each in left_out) if any(each.why != EMPTY for each in left_out) else (),
    )
    return schema, table[list(schema.names)]


def understand_table(
    frame: Any,
    kinds: Mapping[str, str] | None = None,
    missing: Sequence[object] = (),
    drop: Sequence[str] = (),
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Sequence[object]] | None = None,
) -> tuple[pd.DataFrame, list[Understood]]:
    """The frame in pandas without the dropped columns, and what each of its columns is taken for."""
    table = as_pandas(frame)
    if isinstance(drop, str) or isinstance(missing, str):
        raise UserError("drop= and missing= expect a list of texts, such as ['name']")
    chosen = {str(name): kind for name, kind in (kinds or {}).items()}  # labels may be numbers in the user's frame
    drop = [str(name) for name in drop]
    for option, given, example in (
        ("kinds", kinds, {"zip": "categorical"}),
        ("bounds", bounds, {"age": (0, None)}),
        ("levels", levels, {"pain": ["none", "some", "much"]}),
    ):
        if given is not None and not isinstance(given, Mapping):
            raise UserError(f"{option} must be a mapping from column names, such as {example}; got {given!r}")
    limits = {str(name): _bounds(str(name), given) for name, given in (bounds or {}).items()}
    orders = {str(name): _order(str(name), given) for name, given in (levels or {}).items()}
    for option, names in (("kinds", list(chosen)), ("drop", drop), ("bounds", list(limits)), ("levels", list(orders))):
        for name in names:
            if name not in table.columns:
                raise UserError(f"{option}: no column {name!r}; {nearest(name, table.columns)}")
    kept = table.drop(columns=drop)
    if not len(kept) or not len(kept.columns):
        raise UserError(
            f"the table is empty: {len(kept)} rows and {len(kept.columns)} columns, so there is nothing to learn from"
        )
    marks = tuple(dict.fromkeys(str(mark) for mark in missing))
    written_so = Dialect.of(table).decimal == ","
    comma = written_so or _has(_DECIMAL_COMMA, kept)
    point = not comma and (any(column.dtype.kind == "f" for _, column in kept.items()) or _has(_DECIMAL_POINT, kept))
    digits: Mapping[str, tuple[int, str]] = table.attrs.get(PLACES, {})
    found = []
    for name in kept.columns:
        forced, form = _kind(name, chosen[name]) if name in chosen else (None, "")
        order = orders.get(name, ())
        read = understand(name, kept[name], forced, marks, order, form=form, decimal_comma=comma, decimal_point=point)
        if read.variable is not None and kept[name].dtype.kind == "f" and read.variable.numeric:
            read = replace(read, variable=_as_in_file(read.variable, digits.get(name, (0, "")), comma=written_so))
        if read.variable is not None and name in limits:
            read = replace(read, variable=_with_bounds(read.variable, limits[name]))
        found.append(read)
    return kept, found


def _as_in_file(variable: Variable, digits: tuple[int, str], *, comma: bool) -> Variable:
    """A column of numbers that a file had: in Python they are numbers, but they are shown and typed as in the file."""
    places, exponent = digits
    if not places and not comma:
        return variable
    form = NumberNotation(
        decimal="," if comma else ".", places=places or PRECISE, fixed=bool(places), exponent=exponent
    )
    return replace(variable, notation=form)


def lines_about(column: Understood) -> list[str]:
    """What the user should know about one column, a line each."""
    if column.variable is None:
        keep = f"; keep it with {column.remedy}" if column.remedy else ""
        return [f"left out of the model: {column.name!r} ({column.why}{keep})"]
    change = f"; to change this: {column.remedy}" if column.remedy else ""
    return [f"column {column.name!r}: {doubt}{change}" for doubt in column.doubts]


def _has(number: re.Pattern[str], table: pd.DataFrame) -> bool:
    """Whether most cells of some column are such numbers, so that other columns more likely have the same sign."""
    for _, column in table.items():
        if isinstance(column.dtype, pd.CategoricalDtype) or column.dtype.kind in "biufM":
            continue
        few = [cell.strip() for cell in column.iloc[:200].tolist() if isinstance(cell, str)]
        if few and sum(bool(number.fullmatch(cell)) for cell in few) > len(few) / 2:
            return True
    return False


_DECIMAL_COMMA = re.compile(r"\D{0,4}(?:\d{1,3}(?:\.\d{3})+|\d+),(?:\d{1,2}|\d{4,})\D{0,4}")


_DECIMAL_POINT = re.compile(r"\D{0,4}(?:(?:\d{1,3}(?:,\d{3})+|\d+)\.(?:\d{1,2}|\d{4,})|0\.\d+)\D{0,4}")


def _kind(name: str, given: object) -> tuple[Kind, str]:
    """A kind, and the form behind it: "datetime %d/%m/%Y", "continuous 1.234,5"."""
    word, _, form = str(given).strip().partition(" ")
    if str(given) in FREE_TEXT:
        raise UserError(
            f"column {name!r} cannot be {str(given)!r}: nothing is learned from free text; it is left out anyway, or "
            f"with drop=[{name!r}]"
        )
    kind, form = Kind.read(word), form.strip()
    if form and kind.has_levels:
        raise UserError(
            f"column {name!r}: a format ({form}) can follow datetime or a kind of numbers, not {kind.value}"
        )
    if form and kind is Kind.DATETIME and "%" not in form:
        raise UserError(f"column {name!r}: expected a time format such as %d/%m/%Y, got {form!r}")
    return kind, form


def _order(name: str, given: Any) -> tuple[object, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) < 2:
        raise UserError(f"levels of {name!r} must be a list from the lowest to the highest, got {given!r}")
    return tuple(given)


def _with_bounds(variable: Variable, bounds: Bounds) -> Variable:
    """The variable with the bounds that the user declared."""
    if variable.kind is Kind.ATOMS:  # has no other values than its levels: nothing to bound
        low, high = (-np.inf if bounds[0] is None else bounds[0]), (np.inf if bounds[1] is None else bounds[1])
        wrong = [level for level in variable.levels if not low <= float(level) <= high]
        if wrong:
            raise UserError(
                f"column {variable.name!r} contains {wrong[0]}, which is outside the bounds {bounds} declared for it"
            )
        return variable
    return replace(variable, bounds=bounds, declared=bounds != (None, None))


def _bounds(name: str, given: Any) -> Bounds:
    """Declared bounds as a pair of floats or None."""
    fits = isinstance(given, list | tuple) and len(given) == 2
    if not fits or any(
        end is not None and (isinstance(end, bool) or not isinstance(end, int | float)) for end in given
    ):
        raise UserError(f"bounds of {name!r} must be a pair such as (0, None), a number or None each; got {given!r}")
    low, high = (None if end is None else float(end) for end in given)
    return low, high
