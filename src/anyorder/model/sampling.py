"""The drawing loop."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from anyorder.model import AnyOrderModel
from anyorder.model.any_order import row_chunks as row_chunks
from anyorder.query import Query
from anyorder.variables.missingness import indicators_first, present_first


@torch.no_grad()
def draws(
    model: AnyOrderModel, values: Float[Tensor, "rows variables"], query: Query, *, seed: int = 0
) -> NDArray[np.float64]:
    """One joint draw of the asked variables for every row, in model units; evidence is left as it is."""
    out = values.numpy().copy()
    generator = torch.Generator(device=model.device).manual_seed(seed)
    for rows in row_chunks(model, len(values)):
        part = query.rows(rows)
        part = Query(part.evidence.to(model.device), part.asked.to(model.device))
        drawn = values[rows].to(model.device)
        for stage in indicators_first(part, model.schema):
            for query_now in present_first(stage, model.schema, drawn):
                told = model.draw(drawn, model.chain(query_now, generator), generator)
                drawn = drawn.where(~query_now.asked, told)
        out[rows] = np.where(part.asked.cpu().numpy(), drawn.double().cpu().numpy(), out[rows])
    return out
