r"""The likelihood loop: log p(x_asked | x_evidence) of many rows, along one order or averaged over several.

$$\log p(x_u \mid x_e) = \sum_t \log p(x_{u_t} \mid x_e, x_{u_{<t}}), \qquad
\log \bar p = \log \frac1K \sum_{k=1}^K p_{\sigma_k}(x_u \mid x_e)$$

Every order is a normalised density of its own (MAC section 5.2), and so is the mean of K of them (SFARM eq. 14), as
long as the orders are fixed before a value is seen.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from anyorder.model.any_order import AnyOrderModel, row_chunks
from anyorder.protocols import Canonical, Protocol
from anyorder.query import Query
from anyorder.support.advance import tracked
from anyorder.support.checks import checked_seed, whole
from anyorder.support.memory import check_room
from anyorder.support.threads import answering
from anyorder.variables.missingness import indicators_first


def order_protocols(model: AnyOrderModel, orders: int, seed: int = 0) -> list[Protocol]:
    """``orders`` orders, the same for every row and fixed by ``seed``; more of them only add to the list.

    Of a model with an order of its own, that one first and permutations after it; of a model trained for random
    orders, as many draws from its own protocol.
    """
    orders = whole("orders", orders)
    check_room("orders", orders, model.variables, "average over fewer")
    generator = torch.Generator().manual_seed(checked_seed(seed))
    everything = torch.ones(1, model.variables, dtype=torch.bool)
    if model.protocol.random:
        drawn = [model.protocol.keys(everything, generator)[0].argsort() for _ in range(orders)]
        return [Canonical(order=tuple(order.tolist())) for order in drawn]
    drawn = [torch.randperm(model.variables, generator=generator) for _ in range(orders - 1)]
    return [model.protocol, *(Canonical(order=tuple(order.tolist())) for order in drawn)]


@answering
@torch.no_grad()
def log_probs(
    model: AnyOrderModel, values: Float[Tensor, "rows variables"], query: Query, *, orders: int = 1, seed: int = 0
) -> NDArray[np.float64]:
    """log p(x_asked | x_evidence) for every order and row [orders, rows], in nats and in the units of the data."""
    orders = whole("orders", orders)
    check_room("orders", orders, len(values) + model.variables, "average over fewer, or ask for fewer rows at a time")
    out = np.zeros((orders, len(values)))
    for which, protocol in enumerate(order_protocols(model, orders, seed)):
        for rows in tracked(row_chunks(model, len(values)), len(values)):
            for stage in indicators_first(query.rows(rows).to(model.device), model.schema):
                steps = model.step_log_prob(values[rows].to(model.device), protocol.chain(stage))
                out[which, rows] += steps.double().sum(dim=1).cpu().numpy()
    nats: NDArray[np.float64] = out + _shift(model, values, query.asked)
    return nats


def log_prob(
    model: AnyOrderModel, values: Float[Tensor, "rows variables"], query: Query, *, orders: int = 1, seed: int = 0
) -> NDArray[np.float64]:
    """The log of the mean probability over ``orders`` orders, one number a row."""
    nats = log_probs(model, values, query, orders=orders, seed=seed)
    mean: NDArray[np.float64] = np.logaddexp.reduce(nats, axis=0) - np.log(len(nats))
    return mean


def _shift(
    model: AnyOrderModel, values: Float[Tensor, "rows variables"], asked: Bool[Tensor, "rows variables"]
) -> NDArray[np.float64]:
    """The log Jacobian of the asked cells: from model units to the units of the data."""
    if all(variable.discrete for variable in model.schema.variables):
        return np.zeros(len(values))
    shift: NDArray[np.float64] = np.where(asked.numpy(), model.encoding.log_det(values.numpy()), 0.0).sum(axis=1)
    return shift
