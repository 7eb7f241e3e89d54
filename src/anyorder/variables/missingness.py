r"""Missing cells as data: an indicator variable for every column that has holes.

With ``missingness="ignore"`` a missing cell is never asked and never evidence. With ``"joint"`` the mask is modelled
beside the values: a boolean variable r_i = ``missing(COLUMN)`` for every column i with both missing and known cells.
It is never typed in: a frame's own holes say it. Two rules hold **by construction**, whatever the weights:

1. *A column and its own indicator never see each other.* When x_i is answered, r_i is hidden, and the other way round:

   $$p(x_i \mid x_e, r_f) := p(x_i \mid x_e, r_{f \setminus i}), \qquad
     p(r_i \mid x_e, r_f) := p(r_i \mid x_{e \setminus i}, r_f).$$

   No data can tell p(x_i | r_i = 1): x_i is never seen there. The assumption made is that x_i does not depend on its
   own indicator given the rest (no self-censoring; Sadinle and Reiter 2017 call it itemwise conditionally independent
   nonresponse). All *other* indicators speak. Every step stays a normalised distribution, so every chain does.
2. *Indicators are answered before columns,* then the columns that are there, last those that are not. So
   log p(x_observed, r) is the law of what can be seen, and needs no assumption; only filling does.

Training needs no second pass: the target drawn has its partner hidden, and beside it only those count whose partner is
not known (:mod:`anyorder.training.objectives`). A question answered by one pass is repaired where a partner was known
(:meth:`anyorder.model.AnyOrderModel.features_beside`); a chain hides the partner at each step (mask networks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.errors import UserError, nearest
from anyorder.query import Query
from anyorder.variables.schema import Kind, Schema, Variable

Missingness: TypeAlias = Literal["ignore", "joint"]
"""Whether holes are left out of the model or are part of it."""


def check_missingness(word: object) -> None:
    """Refuse anything but ``ignore`` and ``joint``."""
    if word not in get_args(Missingness):
        raise UserError(f"unknown missingness={word!r}; {nearest(word, get_args(Missingness), noun='choices')}")


def indicator_name(column: str) -> str:
    """What the indicator of a column is called."""
    return f"missing({column})"


def with_indicators(schema: Schema, observed: Bool[np.ndarray, "rows variables"]) -> Schema:
    """``schema`` with an indicator behind it for every column that has both missing and known cells.

    Context has none: nothing is learned of it, nor of its holes.
    """
    indicators: list[Variable] = []
    for variable, seen in zip(schema.variables, observed.T, strict=True):
        if seen.all() or not seen.any() or variable.context:
            continue
        column = variable.name
        name = indicator_name(column)
        if name in schema or name in schema.left_out or name in schema.dropped:
            raise UserError(
                f"a column is called {name!r}, as the indicator of {column!r} would be; rename it, "
                "or fit with missingness='ignore'"
            )
        indicators.append(Variable(name, Kind.BOOLEAN, levels=(False, True), dtype="bool", indicates=column))
    variables = (*schema.variables, *indicators)
    return replace(schema, variables=variables, grid=(len(variables),))


def mark_holes(
    schema: Schema,
    values: Float[np.ndarray, "rows variables"],
    known: Bool[np.ndarray, "rows variables"],
    strange: Bool[np.ndarray, "rows variables"],
    columns: Sequence[str],
) -> None:
    """Write the indicators of a frame with these ``columns`` into its encoded cells.

    A column that the frame does not have says nothing about its holes: its indicator is unknown. A cell whose value the
    model never saw is not missing, though it is not known either.
    """
    for column, indicator in schema.pairs.items():
        if schema.names[column] in columns:
            values[:, indicator] = ~known[:, column] & ~strange[:, column]
            known[:, indicator] = True


def with_own_indicators(schema: Schema, mask: Bool[np.ndarray, "rows variables"]) -> Bool[np.ndarray, "rows variables"]:
    """``mask`` with the indicator of every cell in it: whoever knows a cell knows whether it is there."""
    whole = mask.copy()
    for column, indicator in schema.pairs.items():
        whole[:, indicator] |= mask[:, column]
    return whole


def of_columns(schema: Schema, mask: Bool[np.ndarray, "rows variables"]) -> Bool[np.ndarray, "rows variables"]:
    """``mask`` without the indicators: the cells of the user's own columns."""
    own: Bool[np.ndarray, "rows variables"] = mask & np.array([not variable.indicates for variable in schema.variables])
    return own


def partner_known(known: Bool[Tensor, "batch variables"], partners: Sequence[int]) -> Bool[Tensor, "batch variables"]:
    """For which variables the partner (a column's indicator, an indicator's column) is known."""
    if not partners:
        return torch.zeros_like(known)
    index = torch.tensor(partners, device=known.device)
    return known[:, index.clamp(min=0)] & (index >= 0)


def without_partner(
    known: Bool[Tensor, "batch variables"], target: Int[Tensor, " batch"], partners: Sequence[int]
) -> Bool[Tensor, "batch variables"]:
    """Each row's known set as its target may see it: the target's partner left out."""
    if not partners:
        return known
    partner = torch.tensor(partners, device=known.device)[target.clamp(min=0)]
    hidden = torch.arange(known.shape[1], device=known.device) == partner[:, None]
    return known & ~(hidden & (target >= 0)[:, None])


def indicators_first(query: Query, schema: Schema) -> list[Query]:
    """The query as one about the asked indicators and one about the columns given those."""
    if not schema.pairs:
        return [query]
    indicators = torch.tensor([bool(variable.indicates) for variable in schema.variables])
    first = query.asked & indicators.to(query.asked.device)
    return _in_turn(query, first)


def present_first(query: Query, schema: Schema, values: Float[Tensor, "batch variables"]) -> list[Query]:
    """The query as one about the columns that are there and one, given those, about columns known to be missing."""
    if not schema.pairs:
        return [query]
    absent = torch.zeros_like(query.asked)
    for column, indicator in schema.pairs.items():
        absent[:, column] = query.evidence[:, indicator] & (values[:, indicator] == 1)
    return _in_turn(query, query.asked & ~absent)


def with_indicators_along(
    schema: Schema, known: Bool[Tensor, "batch variables"], asked: Bool[Tensor, "batch variables"], *, named: bool
) -> tuple[Bool[Tensor, "batch variables"], Bool[Tensor, "batch variables"]]:
    """What a sample must draw, and what it shows: indicators are drawn along, and shown only if asked for by name.

    A column that is evidence is there, so nothing is drawn about its holes.
    """
    along, shown = asked.clone(), asked | known
    for column, indicator in schema.pairs.items():
        drawn = ~known[:, indicator] & (~known[:, column] | (asked[:, indicator] & named))
        along[:, indicator] = drawn
        shown[:, indicator] &= known[:, indicator] | named
    return along, shown


def _in_turn(query: Query, first: Bool[Tensor, "batch variables"]) -> list[Query]:
    rest = query.asked & ~first
    if not bool(first.any()) or not bool(rest.any()):
        return [query]
    return [Query(query.evidence, first), Query(query.evidence | first, rest)]


def blank_holes(
    schema: Schema, values: Float[np.ndarray, "rows variables"], asked: Bool[np.ndarray, " variables"]
) -> None:
    """Drawn rows as they would be recorded: asked cells whose indicator is true become missing (NaN)."""
    for column, indicator in schema.pairs.items():
        if asked[column]:
            values[values[:, indicator] == 1, column] = np.nan
