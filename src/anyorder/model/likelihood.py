"""The likelihood loop."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.model.any_order import row_chunks as row_chunks
from anyorder.protocols import Canonical, Protocol
from anyorder.query import Query
from anyorder.variables.missingness import indicators_first


def order_protocols(model: AnyOrderModel, orders: int, seed: int = 0) -> list[Protocol]:
    """The model's own order first; further ones are permutations drawn once from ``seed``, the same for every row.

    Orders that are fixed before a value is seen make the mean of their probabilities a mixture: a normalised density.
    """
    if orders < 1:
        raise UserError(f"orders must be 1 or more, got {orders}")
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randperm(model.variables, generator=generator).tolist() for _ in range(orders - 1)]
    return [model.protocol, *(Canonical(order=tuple(order)) for order in drawn)]


@torch.no_grad()
def log_probs(
    model: AnyOrderModel, values: Float[Tensor, "rows variables"], query: Query, *, orders: int = 1, seed: int = 0
) -> NDArray[np.float64]:
    """log p(x_asked | x_evidence) for every order and row [orders, rows], in the units of the data."""
    log_det = model.encoding.log_det(values.numpy())
    shift = np.where(query.asked.numpy(), log_det, 0.0).sum(axis=1)
    out = np.zeros((orders, len(values)))
    generator = torch.Generator(device=model.device).manual_seed(seed)
    for which, protocol in enumerate(order_protocols(model, orders, seed)):
        for rows in row_chunks(model, len(values)):
            part = query.rows(rows)
            part = Query(part.evidence.to(model.device), part.asked.to(model.device))
            for stage in indicators_first(part, model.schema):
                steps = model.step_log_prob(values[rows].to(model.device), protocol.chain(stage, generator))
                out[which, rows] += steps.double().sum(dim=1).cpu().numpy()
    nats: NDArray[np.float64] = out + shift
    return nats
