"""The log-likelihood of every row of a frame: its filled cells jointly, given those of its cells that are evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool

from anyorder.data.frames import as_pandas
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.model.likelihood import log_prob, usual_orders
from anyorder.query import Query
from anyorder.support.notes import note
from anyorder.variables.encoding import Unseen
from anyorder.variables.missingness import with_own_indicators
from anyorder.variables.schema import Schema


def row_log_probs(
    model: AnyOrderModel,
    table: pd.DataFrame,
    given: Any = None,
    *,
    orders: int | None = None,
    seed: int = 0,
    unseen: Unseen = "refuse",
) -> pd.DataFrame:
    """The column ``log_prob``, in nats and in the units of the data; unknown cells are marginalised out.

    ``given``: names of columns, or a frame or array of booleans, whose cells are evidence instead of being asked; those
    of context are in any case.
    """
    marks = _given_mask(model.schema, table, given)
    marks[:, list(model.schema.context)] = True
    # Columns of which no cell is asked: what is only given need not be a value that could be drawn.
    only_given = [
        name
        for name, mark in zip(model.schema.names, marks.T, strict=True)
        if name in table.columns and bool((mark | table[name].isna().to_numpy()).all())
    ]
    values, observed = model.encoding.encode(table, unseen, evidence=only_given)
    known = observed & with_own_indicators(model.schema, marks)
    query = Query(torch.as_tensor(known), torch.as_tensor(observed & ~known))
    average = log_prob(model, torch.as_tensor(values), query, orders=usual_orders(model, orders), seed=seed)
    _warn_outside(model.schema, table, observed & ~known)
    return pd.DataFrame({"log_prob": average}, index=table.index)


def _warn_outside(schema: Schema, table: pd.DataFrame, asked: Bool[np.ndarray, "rows variables"]) -> None:
    """A bound that was guessed from the training rows must not rule out later ones without a word."""
    for index, variable in enumerate(schema.variables):
        low, high = variable.bounds
        rows = np.flatnonzero(asked[:, index])
        if (low is None and high is None) or not len(rows):
            continue
        numbers = pd.to_numeric(table[variable.name], errors="coerce").to_numpy(dtype=float)[rows]
        outside = rows[(numbers < (-np.inf if low is None else low)) | (numbers > (np.inf if high is None else high))]
        if len(outside):
            note(
                f"column {variable.name!r}: {len(outside)} values, the first in row {outside[0]}, lie outside its "
                f"bounds {variable.bounds} and are next to impossible. If the bounds were guessed and such values "
                f"can occur, fit with bounds={{{variable.name!r}: (None, None)}}",
                stacklevel=4,  # the user's call of TableModel.log_prob
            )


def _given_mask(schema: Schema, table: pd.DataFrame, given: Any) -> Bool[np.ndarray, "rows variables"]:
    """The cells that are evidence: of named columns, or marked in a frame or array of booleans."""
    mask = np.zeros((len(table), len(schema)), dtype=bool)
    if given is None:
        return mask
    if isinstance(given, str):
        given = [given]
    if isinstance(given, Sequence) and all(isinstance(name, str) for name in given):
        mask[:, [schema.index(name) for name in given]] = True
        return mask
    if isinstance(given, np.ndarray):
        if given.dtype != bool or given.shape != (len(table), table.shape[1]):
            raise UserError(
                f"given must be booleans of shape {(len(table), table.shape[1])}, got {given.dtype} {given.shape}"
            )
        given = pd.DataFrame(given, columns=table.columns)
    marks = as_pandas(given)
    if len(marks) != len(table):
        raise UserError(f"given has {len(marks)} rows and the table {len(table)}; they must be the same rows")
    for name in marks.columns:
        if not pd.api.types.is_bool_dtype(marks[name].dtype):
            raise UserError(f"given must hold booleans; its column {name!r} is {marks[name].dtype}")
        if name in schema or name not in table.columns:  # the table's other columns were left out by fit
            mask[:, schema.index(name)] = marks[name].to_numpy()
    return mask
