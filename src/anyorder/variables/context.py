"""Context: columns that are only ever evidence, as the state of a policy is, or the inputs of a regression.

A model fitted with context is p(the other columns | context). Nothing is learned of the context itself: it has no head,
no loss and no trees. Every question knows it, but for a column that had holes when the model was fitted: of that one a
question may say nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool

from anyorder.errors import UserError, nearest
from anyorder.variables.codecs.base import unknown_cells
from anyorder.variables.schema import Schema

MOST_NAMED = 5  # columns, or rows, that an error names


def read_context(said: Any) -> list[str]:
    """The names that somebody gave as context."""
    if isinstance(said, str) or not isinstance(said, Collection):
        raise UserError(f"context must be a list of columns, such as ['age', 'sex']; got {said!r:.80}")
    names = [str(name) for name in said]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(f"context names {', '.join(map(repr, repeated))} more than once; name each column once")
    return names


def with_context(schema: Schema, names: Sequence[str], table: pd.DataFrame) -> Schema:
    """``schema`` with these columns as context; those with holes in ``table`` are optional."""
    for name in names:
        if name in schema.dropped:
            raise UserError(f"{name!r} is in both context= and drop=; leave it out of one of them")
        if name in schema.left_out:
            otherwise = "" if name in schema.empty else f", or say what it is, as in kinds={{{name!r}: 'categorical'}}"
            raise UserError(
                f"context: column {name!r} is left out of the model ({schema.reasons[name]}), so it cannot be known to "
                f"it; remove it from context={otherwise}"
            )
        if name not in schema:
            raise UserError(f"context: no column {name!r}; {nearest(name, schema.names)}")
    if len(names) == len(schema):
        others = ", ".join(f"{name!r} ({why})" for name, why in list(schema.reasons.items())[:MOST_NAMED])
        raise UserError(
            "every column is context, so nothing is left to learn; leave those out of context= that you want to ask for"
            + (f" (left out of the model: {others})" if others else "")
        )
    chosen = set(names)
    variables = tuple(
        replace(
            variable,
            context=True,
            optional=bool(unknown_cells(table[variable.name], variable, schema.missing).any()),
        )
        if variable.name in chosen
        else variable
        for variable in schema.variables
    )
    return replace(schema, variables=variables)


def context_mask(schema: Schema) -> Bool[np.ndarray, " variables"]:
    """Which variables are context."""
    mask = np.zeros(len(schema), dtype=bool)
    mask[list(schema.context)] = True
    return mask


def check_known(schema: Schema, known: Collection[int]) -> None:
    """Refuse one question that does not know the context, unless training did not always know it either."""
    lacking = [index for index in schema.context if index not in known and not schema.variables[index].optional]
    if not lacking:
        return
    names = [schema.names[index] for index in lacking]
    more = ", ..." if len(names) > MOST_NAMED else ""
    pairs = ", ".join(f"{name!r}: ..." for name in names[:MOST_NAMED]) + more
    written = ", ".join(f"{name}=..." for name in names[:MOST_NAMED]) + more
    raise UserError(
        f"the model was fitted with context, which every question must know; not given: {_named(names)}. "
        f"Give {'it' if len(names) == 1 else 'them'}, as in model.given({{{pairs}}}) or, at the command line, "
        f"'{written}'; or fit again without context="
    )


def check_rows(schema: Schema, known: Bool[np.ndarray, "rows variables"], columns: Collection[str]) -> None:
    """Refuse rows that do not know the context; ``columns``: those that their frame has."""
    needed = [index for index in schema.context if not schema.variables[index].optional]
    absent = [schema.names[index] for index in needed if schema.names[index] not in columns]
    if absent:
        raise UserError(
            f"the model was fitted with context, which every row must know; the table has no column {_named(absent)}. "
            "Add it, or fit again without context="
        )
    for index in needed:
        rows = np.flatnonzero(~known[:, index])
        if len(rows):
            several = f"rows {_named(rows.tolist())}" if len(rows) > 1 else f"row {rows[0]}"
            unknown = "unknown, or none of the values seen in the fit," if schema.variables[index].levels else "unknown"
            raise UserError(
                f"column {schema.names[index]!r} is context, which every row must know, but it is {unknown} in "
                f"{several} (counted from 0); fill it in, leave those rows out, or fit with rows in which it is "
                "missing too"
            )


def _named(what: Sequence[object]) -> str:
    shown = ", ".join(map(repr, what[:MOST_NAMED]))
    return shown + (f" and {len(what) - MOST_NAMED} more" if len(what) > MOST_NAMED else "")
