"""Rows drawn jointly given evidence: what is known as it is, the asked variables drawn, the others left out."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.model.likelihood import usual_orders
from anyorder.model.sampling import draws
from anyorder.query import Query
from anyorder.variables.missingness import blank_holes, with_indicators_along


def draw_rows(
    model: AnyOrderModel,
    rows: Float[Tensor, "#n variables"],
    known: Bool[Tensor, "1 variables"],
    asked: Sequence[str] | None,
    n: int,
    seed: int,
    *,
    holes: bool = False,
) -> pd.DataFrame:
    """``n`` rows, each from its own of ``rows`` or all from one; ``asked`` is None for all that is not known.

    ``holes``: drawn cells are missing where they would not be recorded.
    """
    wanted = ~known
    wanted[:, list(model.schema.context)] = False
    if asked is not None:
        wanted = torch.zeros_like(known)
        wanted[0, [model.schema.index(name) for name in asked]] = True
        wanted &= ~known  # a variable with a range is drawn already
    wanted, shown = with_indicators_along(model.schema, known, wanted, named=asked is not None)
    query = Query(known.expand(n, -1), wanted.expand(n, -1))
    drawn = draws(model, rows.expand(n, -1), query, seed=seed, orders=usual_orders(model))
    if holes and not model.schema.pairs:
        raise UserError(
            "the model has not learned which cells are missing: fit a table that has some with missingness='joint'"
        )
    if holes:
        blank_holes(model.schema, drawn, wanted[0].numpy())
    frame = model.encoding.decode(drawn)
    return frame[[variable.name for i, variable in enumerate(model.schema.variables) if bool(shown[0, i])]]
