"""From a pandas or polars frame to a schema: what every column is, and what cannot be modelled.

The rules are few and can be overridden column by column with ``kinds``:

- real booleans, and texts that are all true/false, are boolean;
- numbers (texts that all read as numbers too) are *atoms* if they take at most ten values, each about five times;
  else *integer* if all are whole; else *spiked* if one to three values hold a tenth of the cells each; else
  *continuous*;
- times, Python dates and ISO texts such as 2024-05-01 are datetime;
- every other text, and every pandas category, is categorical (*ordinal* if the category is ordered). Texts such as
  01234 stay texts.

Numbers that are never negative and come within a standard deviation of 0 get the lower bound 0. Shares, which lie
between 0 and 1 or 0 and 100 and touch the upper end (or nearly touch 0 and 1), get both. An end at which many cells
pile up, and next to which few lie, is a limit of the recording: a bound, and in a continuum an atom. ``bounds``
overrides all of this. A declared kind is taken literally: nothing else about such a column is inferred.

A column with one value only is kept, with that one level. A column with no value is left out, with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from anyorder.data.frames import as_pandas
from anyorder.errors import UserError, nearest
from anyorder.variables import hints
from anyorder.variables.cells import (
    LEADING_ZERO,
    NUMBER,
    Mask,
    Numbers,
    Series,
    all_match,
    any_match,
    distinct,
    in_order,
    is_text,
    missing_cells,
    numbers,
    plain,
    refuse,
)
from anyorder.variables.codecs.base import recorded_step
from anyorder.variables.codecs.lattice import LARGEST_WHOLE
from anyorder.variables.codecs.level import TRUTH
from anyorder.variables.schema import Kind, Level, Schema, Variable
from anyorder.variables.times import ISO_TIME, ZONE, days, has_zone, text_zone, ticks, time_pattern, times

Bounds: TypeAlias = tuple[float | None, float | None]
MOST_ATOMS = 10
ATOM_REPEATS = 5
MOST_LEVELS = 1000
MOST_SPIKES = 3
SPIKE_SHARE = 0.1
"""A value with that share of the known cells is an atom of a spiked column."""
SPIKE_REPEATS = 10
NEARLY = 0.01
"""The distance from 0 and from 1 within which shares that touch neither still are shares."""
PILE, PILE_SHARE, PILE_TIMES, NEIGHBOURS = 5, 0.005, 4, 5
"""So many cells, and such a share of all, at the last value, so many times as many as at any of its neighbours."""
FEW_VALUES = 20
"""Up to here the different values of a column are too few to tell a pile from a frequent value."""
FEW_TEXTS = 20
"""Up to here a text column with a new text in every row may still be a small table, not an id."""


def prepare(
    frame: Any,
    kinds: Mapping[str, str] | None = None,
    missing: Sequence[object] = (),
    drop: Sequence[str] = (),
    bounds: Mapping[str, Any] | None = None,
) -> tuple[Schema, pd.DataFrame]:
    """The schema of a pandas or polars frame, and the frame in pandas with only the modelled columns."""
    table = as_pandas(frame)
    if isinstance(drop, str) or isinstance(missing, str):
        raise UserError("drop= and missing= expect a list of texts, such as ['name']")
    chosen = {str(name): kind for name, kind in (kinds or {}).items()}  # labels may be numbers in the user's frame
    drop = [str(name) for name in drop]
    for option, given, example in (("kinds", kinds, {"zip": "categorical"}), ("bounds", bounds, {"age": (0, None)})):
        if given is not None and not isinstance(given, Mapping):
            raise UserError(f"{option} must be a mapping by column, such as {example}; got {given!r}")
    limits = {str(name): _bounds(str(name), given) for name, given in (bounds or {}).items()}
    for option, names in (("kinds", list(chosen)), ("drop", drop), ("bounds", list(limits))):
        for name in names:
            if name not in table.columns:
                raise UserError(f"{option}: no column {name!r}; {nearest(name, table.columns)}")
    kept = table.drop(columns=drop)
    schema = infer(kept, chosen, missing, limits)
    if drop:
        schema = Schema(schema.variables, schema.grid, schema.left_out, tuple(dict.fromkeys(drop)), schema.missing)
    return schema, kept[list(schema.names)]


def infer(
    frame: pd.DataFrame,
    kinds: Mapping[str, str] | None = None,
    missing: Sequence[object] = (),
    bounds: Mapping[str, Bounds] | None = None,
) -> Schema:
    """The schema of a pandas frame whose column names are distinct texts (as :func:`as_pandas` gives)."""
    if not len(frame) or not len(frame.columns):
        raise UserError(
            f"the table is empty: {len(frame)} rows and {len(frame.columns)} columns; nothing to learn from"
        )
    marks = tuple(dict.fromkeys(str(mark) for mark in missing))
    variables: list[Variable] = []
    left_out: list[str] = []
    for name in frame.columns:
        forced = (kinds or {}).get(name)
        variable = infer_variable(name, frame[name], Kind.read(forced) if forced is not None else None, marks)
        if variable is None:
            left_out.append(name)
            continue
        if name in (bounds or {}):
            variable = _with_bounds(variable, (bounds or {})[name])
        variables.append(variable)
    if not variables:
        raise UserError("every cell of the table is missing; nothing to learn from")
    if left_out:
        shown = ", ".join(map(repr, left_out))
        warnings.warn(f"left out of the model, because every cell is missing: {shown}", UserWarning, stacklevel=3)
    return Schema(tuple(variables), left_out=tuple(left_out), missing=marks)


def infer_variable(name: str, column: Series, forced: Kind | None, marks: Sequence[str] = ()) -> Variable | None:
    """What one column is, or is declared to be; None if every cell is missing."""
    missing = missing_cells(column, marks)
    if missing.all():
        return None
    reading = _reading(name, column, missing, marks)
    if forced is None:
        if reading == "levels" and isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered:
            return _categorical(name, column, missing, declared=False, kind=Kind.ORDINAL)
        found = {"truth": Kind.BOOLEAN, "levels": Kind.CATEGORICAL, "times": Kind.DATETIME}.get(reading)
    else:
        found = forced
    if found is Kind.BOOLEAN:
        return _boolean(name, column, missing)
    if found in (Kind.CATEGORICAL, Kind.ORDINAL):
        return _categorical(name, column, missing, declared=forced is not None, kind=found)
    missing = missing_cells(column, marks, words=True)  # "N/A" among numbers or times is no value
    if missing.all():
        raise UserError(f"column {name!r} cannot be read as {found}: it holds no number or time")
    if found is Kind.DATETIME:
        return _datetime(name, column, missing, declared=forced is not None)
    return _number(name, column, missing, forced)


def _reading(name: str, column: Series, missing: Mask, marks: Sequence[str]) -> str:
    """What the cells can be read as: "truth", "numbers", "times" or "levels"."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "levels"
    if dtype.kind in "biufM":
        return {"b": "truth", "M": "times"}.get(dtype.kind, "numbers")
    if not is_text(column):
        raise UserError(
            f"column {name!r} has the dtype {dtype}; expected numbers, texts, booleans or times. "
            f"Convert it, or leave it out with {hints.drop(name)}"
        )
    known = column[~missing]
    inside = "string" if not pd.api.types.is_object_dtype(dtype) else pd.api.types.infer_dtype(known)
    if inside != "string":
        read = dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal"), "numbers")
        read |= {"boolean": "truth"} | dict.fromkeys(("date", "datetime", "datetime64"), "times")
        return read.get(inside, "levels")
    if all_match(known, r"(?i:true|false)"):
        return "truth" if known.nunique() <= 2 else "levels"
    sure = column[~missing_cells(column, marks, words=True)]
    if len(sure) and all_match(sure, NUMBER) and any_match(sure, r".*\d.*"):
        return "levels" if any_match(sure, LEADING_ZERO) else "numbers"
    return "times" if len(sure) and all_match(sure, ISO_TIME) and _real_times(sure) else "levels"


def _real_times(texts: Series) -> bool:
    try:
        read = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=any_match(texts, rf".{{11,}}{ZONE}"))
    except ValueError:
        return False
    return bool(read.notna().all())


def _number(name: str, column: Series, missing: Mask, forced: Kind | None) -> Variable:
    values = numbers(column, missing, name)[~missing]
    seen = np.unique(values)
    whole = bool((values == np.rint(values)).all() and np.abs(values).max() <= LARGEST_WHOLE)
    repeats = len(values) / len(seen)
    # Two whole numbers are a yes/no question even in a small table; one value is a constant in any.
    few = len(seen) == 1 or (len(seen) == 2 and whole and repeats >= 2)
    kind = forced
    if kind is None:
        atoms = few or (len(seen) <= MOST_ATOMS and repeats >= ATOM_REPEATS)
        if atoms and column.dtype.kind in "iuO" and np.abs(values).max() > LARGEST_WHOLE:
            return _categorical(name, column, missing, declared=True)  # long ids: floats would lose their last digits
        kind = Kind.ATOMS if atoms else Kind.INTEGER if whole else Kind.CONTINUOUS
    spikes = _spikes(values, declared=kind is Kind.SPIKED) if kind is not Kind.ATOMS else ()
    if kind is Kind.SPIKED and not spikes:
        raise UserError(f"column {name!r} holds no number twice, so it has no atoms; it is continuous, not spiked")
    limits = _limits(values, seen) if forced is None and kind is not Kind.ATOMS else (None, None)
    if forced is None and kind is Kind.CONTINUOUS:
        spikes = tuple(sorted({*spikes, *(end for end in limits if end is not None)}))
        kind = Kind.SPIKED if spikes else kind
    if forced is not None and kind is not Kind.SPIKED:
        spikes = ()
    if kind is Kind.INTEGER and not whole:
        row = int(np.flatnonzero(~missing)[np.argmax((values != np.rint(values)) | (np.abs(values) > LARGEST_WHOLE))])
        refuse(
            name,
            column,
            row,
            f"expected a whole number below 2**52, got {plain(column.iloc[row])!r}; not an integer column",
        )
    dtype, form = _number_form(column)
    if kind is not Kind.ATOMS:
        if forced is not None:
            return Variable(name, kind, dtype=dtype, form=form, atoms=spikes)
        step = 0.0 if kind is Kind.INTEGER else recorded_step(values)
        bounds = _natural_bounds(values, limits)
        return Variable(name, kind, dtype=dtype, form=form, atoms=spikes, bounds=bounds, step=step)
    if len(seen) > MOST_LEVELS:
        raise UserError(
            f"column {name!r} has {len(seen)} different numbers, too many for atoms (at most {MOST_LEVELS})"
        )
    as_whole = whole and pd.api.types.pandas_dtype(dtype).kind != "f"
    levels: tuple[Level, ...] = tuple(int(level) if as_whole else float(level) for level in seen)
    return Variable(name, kind, levels, dtype=dtype, form=form)


def _spikes(values: Numbers, *, declared: bool) -> tuple[float, ...]:
    """The numbers that hold a tenth of the cells each; none where there are too many of them for a continuum."""
    seen, counts = np.unique(values, return_counts=True)
    often = (counts >= SPIKE_SHARE * len(values)) & (counts >= SPIKE_REPEATS)
    if declared:  # the best of what there is
        order = np.argsort(-counts, kind="stable")[: max(1, min(MOST_SPIKES, int(often.sum())))]
        return tuple(sorted(float(seen[index]) for index in order if counts[index] > 1))
    rest = len(seen) - int(often.sum())
    return tuple(seen[often].tolist()) if 1 <= often.sum() <= MOST_SPIKES and rest > MOST_ATOMS else ()


def _natural_bounds(values: Numbers, limits: Bounds) -> Bounds:
    """The bounds that the numbers suggest; ``limits`` are ends at which they pile up."""
    least, most = float(values.min()), float(values.max())
    low = 0.0 if 0 <= least <= float(values.std()) else None
    high = None
    for top in (1.0, 100.0):
        touches = most == top and (least == 0 or int((values == top).sum()) > 1)
        # Many things are counted up to nearly 100; few are measured up to nearly 1.
        nearly = top == 1 and least <= NEARLY and most >= 1 - NEARLY
        if least >= 0 and most <= top and (touches or nearly):
            low, high = 0.0, top
    return low if limits[0] is None else limits[0], high if limits[1] is None else limits[1]


def _limits(values: Numbers, seen: Numbers) -> Bounds:
    """An end that many cells have, and that the values next to it have far less often."""
    if len(seen) <= FEW_VALUES:
        return None, None
    least, most = seen[: NEIGHBOURS + 1], seen[: -NEIGHBOURS - 2 : -1]
    found = []
    for ends in (least, most):
        here, *beside = ((values == end).sum() for end in ends)
        piled = here >= max(PILE, PILE_SHARE * len(values)) and here >= PILE_TIMES * max(beside)
        found.append(float(ends[0]) if piled else None)
    return found[0], found[1]


def _with_bounds(variable: Variable, bounds: Bounds) -> Variable:
    """The variable with the bounds that the user declared."""
    if variable.kind is Kind.ATOMS:  # has no other values than its levels: nothing to bound
        low, high = (-np.inf if bounds[0] is None else bounds[0]), (np.inf if bounds[1] is None else bounds[1])
        wrong = [level for level in variable.levels if not low <= float(level) <= high]
        if wrong:
            raise UserError(f"column {variable.name!r} holds {wrong[0]}, outside the bounds {bounds} declared for it")
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


def _number_form(column: Series) -> tuple[str, str]:
    """The dtype to give back, and whether the numbers were texts."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = pd.Series(column.cat.categories)
    texts = is_text(column) and (
        not pd.api.types.is_object_dtype(column.dtype) or any(isinstance(cell, str) for cell in column)
    )
    return str(column.dtype), "text" if texts else ""


def _datetime(name: str, column: Series, missing: Mask, *, declared: bool) -> Variable:
    known = column[~missing]
    dtype, form, zone = str(column.dtype), "", ""
    if isinstance(column.dtype, pd.CategoricalDtype):
        dtype = str(column.cat.categories.dtype)
    first = known.iloc[0]
    if isinstance(first, str):
        zone, written = text_zone(known.astype(object))
        form = time_pattern(first.strip(), written)
    elif column.dtype.kind == "M" or hasattr(first, "hour"):
        zone = str(getattr(first, "tzinfo", None) or "")
    else:
        form = "date"
    if zone and is_text(column) and not all(has_zone(cell) for cell in known):
        naive = int(np.flatnonzero(~missing)[[has_zone(cell) for cell in known].index(False)])
        refuse(name, column, naive, "the time has no time zone, but others have one; give one to all or to none")
    read = times(column, missing, name, zone)[~missing]
    instants = ticks(read)
    if len(np.unique(instants)) == 1 and not declared:
        return _categorical(name, column, missing, declared=True)
    at_midnight = bool((days(read) % 1 == 0).all())
    resolution = "day" if at_midnight else "second" if bool((instants % 1_000_000 == 0).all()) else "microsecond"
    return Variable(name, Kind.DATETIME, dtype=dtype, resolution=resolution, zone=zone, form=form)


def _boolean(name: str, column: Series, missing: Mask) -> Variable:
    levels, codes = distinct(column, missing, name)
    meanings = [TRUTH.get(str(level).strip().casefold()) for level in levels]
    for code, meaning in enumerate(meanings):
        row = int(np.flatnonzero(~missing)[np.argmax(codes == code)])
        if meaning is None:
            refuse(name, column, row, f"expected true/false, yes/no or 1/0, got {levels[code]!r}; not a boolean column")
        if meaning in meanings[:code]:
            twin = levels[meanings.index(meaning)]
            refuse(
                name, column, row, f"{levels[code]!r} and {twin!r} mean the same; a boolean column needs one spelling"
            )
    ordered = [level for _, level in sorted(zip(map(bool, meanings), levels, strict=True), key=lambda pair: pair[0])]
    return _with_levels(name, Kind.BOOLEAN, column, ordered)


def _categorical(
    name: str, column: Series, missing: Mask, *, declared: bool, kind: Kind = Kind.CATEGORICAL
) -> Variable:
    levels, codes = distinct(column, missing, name)
    texts = all(isinstance(level, str) for level in levels)
    if not declared and texts and len(levels) == len(codes) > FEW_TEXTS:
        raise UserError(
            f"column {name!r} holds a different text in every row, like a name or an id, so there is nothing to learn "
            f"from it; leave it out with {hints.drop(name)}, or keep it with {hints.kind(name, 'categorical')}"
        )
    if len(levels) > MOST_LEVELS:
        other = "merge rare values first" if texts else f"use {hints.kind(name, 'continuous')}"
        raise UserError(
            f"column {name!r} has {len(levels)} different values, more than {MOST_LEVELS} categories; "
            f"leave it out with {hints.drop(name)}, or {other}"
        )
    wild = [level for level in levels if isinstance(level, float) and not np.isfinite(level)]
    if wild:
        row = int(np.flatnonzero(~missing)[np.argmax(codes == levels.index(wild[0]))])
        refuse(name, column, row, f"expected a finite number, got {wild[0]}; clear the cell if it is unknown")
    if not isinstance(column.dtype, pd.CategoricalDtype):
        levels = in_order(levels)
    return _with_levels(name, kind, column, levels)


def _with_levels(name: str, kind: Kind, column: Series, levels: Sequence[Level]) -> Variable:
    if not isinstance(column.dtype, pd.CategoricalDtype):
        zone = str(getattr(column.dtype, "tz", None) or "")
        return Variable(name, kind, tuple(levels), dtype=str(column.dtype), zone=zone)
    categories = tuple(plain(category) for category in column.cat.categories)
    ordered = bool(column.cat.ordered)
    return Variable(name, kind, tuple(levels), dtype="category", categories=categories, ordered=ordered)
