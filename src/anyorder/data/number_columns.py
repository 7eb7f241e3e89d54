"""What a column of numbers is: atoms, whole numbers or a continuum, its bounds, and the step it was recorded in."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyorder.data.level_columns import MOST_LEVELS
from anyorder.errors import UserError
from anyorder.variables.cells import LARGEST_WHOLE, Mask, Numbers, Series, is_text, numbers, plain, refuse
from anyorder.variables.codecs.base import recorded_step
from anyorder.variables.notations import Notation
from anyorder.variables.schema import Bounds, Kind, Level, Variable

Counts: TypeAlias = NDArray[np.intp]

MOST_ATOMS = 10
ATOM_REPEATS = 5
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


def number_variable(
    name: str, column: Series, missing: Mask, forced: Kind | None = None, notation: Notation | None = None
) -> Variable | None:
    """What a column of numbers is, or is declared to be; None for long numbers that are the names of a few things."""
    values = numbers(column, missing, name, notation)[~missing]
    seen, counts = np.unique(values, return_counts=True)
    whole = bool((values == np.rint(values)).all() and np.abs(values).max() <= LARGEST_WHOLE)
    repeats = len(values) / len(seen)
    # Two whole numbers are a yes/no question even in a small table; one value is a constant in any.
    few = len(seen) == 1 or (len(seen) == 2 and whole and repeats >= 2)
    kind = forced
    if kind is None:
        atoms = few or (len(seen) <= MOST_ATOMS and repeats >= ATOM_REPEATS)
        if atoms and column.dtype.kind in "iuO" and np.abs(values).max() > LARGEST_WHOLE:
            return None  # floats would lose their last digits
        kind = Kind.ATOMS if atoms else Kind.INTEGER if whole else Kind.CONTINUOUS
    spikes = _spikes(seen, counts, declared=kind is Kind.SPIKED) if kind is not Kind.ATOMS else ()
    if kind is Kind.SPIKED and not spikes:
        raise UserError(f"no number occurs twice in column {name!r}, so it is continuous, not spiked")
    limits = _limits(seen, counts) if forced is None and kind is not Kind.ATOMS else (None, None)
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
            f"expected a whole number below 2**52, got {plain(column.iloc[row])!r}, so this is not an integer column",
        )
    dtype, form = _number_form(column, missing)
    if kind is not Kind.ATOMS:
        if forced is not None:
            return Variable(name, kind, dtype=dtype, form=form, atoms=spikes, notation=notation)
        step = 0.0 if kind is Kind.INTEGER else recorded_step(seen)
        bounds = _natural_bounds(values, limits)
        if notation is not None:
            low, high = notation.bounds
            bounds = bounds[0] if low is None else low, bounds[1] if high is None else high
        return Variable(name, kind, dtype=dtype, form=form, atoms=spikes, bounds=bounds, step=step, notation=notation)
    if len(seen) > MOST_LEVELS:
        raise UserError(
            f"column {name!r} has {len(seen)} different numbers, too many for the kind 'atoms' (at most {MOST_LEVELS})"
        )
    as_whole = whole and pd.api.types.pandas_dtype(dtype).kind != "f"
    levels: tuple[Level, ...] = tuple(int(level) if as_whole else float(level) for level in seen)
    return Variable(name, kind, levels, dtype=dtype, form=form, notation=notation)


def _spikes(seen: Numbers, counts: Counts, *, declared: bool) -> tuple[float, ...]:
    """The numbers that hold a tenth of the cells each; none where there are too many of them for a continuum."""
    often = (counts >= SPIKE_SHARE * counts.sum()) & (counts >= SPIKE_REPEATS)
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


def _limits(seen: Numbers, counts: Counts) -> Bounds:
    """An end that many cells have, and that the values next to it have far less often."""
    if len(seen) <= FEW_VALUES:
        return None, None
    found = []
    for ends, often in ((seen, counts), (seen[::-1], counts[::-1])):
        here, beside = often[0], often[1 : NEIGHBOURS + 1]
        piled = here >= max(PILE, PILE_SHARE * counts.sum()) and here >= PILE_TIMES * beside.max()
        found.append(float(ends[0]) if piled else None)
    return found[0], found[1]


def _number_form(column: Series, missing: Mask) -> tuple[str, str]:
    """The dtype to give back, and whether the numbers were texts (a word for unknown beside them is none)."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column, missing = pd.Series(column.cat.categories), np.zeros(len(column.cat.categories), dtype=bool)
    texts = is_text(column) and (
        not pd.api.types.is_object_dtype(column.dtype) or any(isinstance(cell, str) for cell in column[~missing])
    )
    return str(column.dtype), "text" if texts else ""
