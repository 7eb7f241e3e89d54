r"""The likelihood loop: log p(x_asked | x_evidence) of many rows, along one order or averaged over several.

$$\log p(x_u \mid x_e) = \sum_t \log p(x_{u_t} \mid x_e, x_{u_{<t}}), \qquad
\log \bar p = \log \frac1K \sum_{k=1}^K p_{\sigma_k}(x_u \mid x_e)$$

Every order is a normalised density of its own (MAC section 5.2), and so is the mean of K of them (SFARM eq. 14), as
long as the orders are fixed before a value is seen. Two opposite orders make up for each other's mistakes: what one
answers with little evidence, the other answers with much. So orders come in pairs, and the columns of a table, which
have no order of their own, are answered by the first pair unless someone asks for more or fewer. Draws come from the
same density: each row is drawn along one of the orders (:mod:`anyorder.model.sampling`).
"""

from __future__ import annotations

import copy

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

ORDERS = 2  # over which a table's answers are averaged, if nobody says otherwise


def usual_orders(model: AnyOrderModel, orders: int | None = None) -> int:
    """``orders`` if given; else two where variables are of different kinds, one for characters and pixels.

    One also where missingness is modelled: a column learns from the cells that are there, so asked before the columns
    that its holes depend on, it answers for those cells alone.
    """
    if orders is not None:
        return whole("orders", orders)
    return 1 if model.schema.alike or model.schema.pairs else ORDERS


def order_protocols(model: AnyOrderModel, orders: int, seed: int = 0) -> list[Protocol]:
    """``orders`` orders, the same for every row and fixed by ``seed``; more of them only add to the list.

    Of a model with an order of its own, that one first and permutations after it; of a model trained for random
    orders, draws from its own protocol. Orders of a table are each followed by their opposite.
    """
    orders = whole("orders", orders)
    check_room("orders", orders, model.variables, "average over fewer")
    generator = torch.Generator().manual_seed(checked_seed(seed))
    everything = torch.ones(1, model.variables, dtype=torch.bool)

    def drawn() -> tuple[int, ...]:
        if model.protocol.random:
            return tuple(model.protocol.keys(everything, generator)[0].argsort().tolist())
        return tuple(torch.randperm(model.variables, generator=generator).tolist())

    found: list[Protocol] = [] if model.protocol.random else [model.protocol]
    if isinstance(model.protocol, Canonical) and not model.schema.alike:
        found.append(Canonical(order=tuple(reversed(model.protocol.sequence(model.variables)))))
    while len(found) < orders:
        order = drawn()
        found.append(Canonical(order=order))
        if not model.schema.alike:
            found.append(Canonical(order=order[::-1]))
    return found[:orders]


def along(model: AnyOrderModel, protocol: Protocol) -> AnyOrderModel:
    """A view that shares everything and answers in the order of this protocol."""
    view = copy.copy(model)
    view.protocol = protocol
    return view


@answering
@torch.no_grad()
def log_probs(
    model: AnyOrderModel, values: Float[Tensor, "rows variables"], query: Query, *, orders: int = 1, seed: int = 0
) -> NDArray[np.float64]:
    """log p(x_asked | x_evidence) for every order and row [orders, rows], in nats and in the units of the data."""
    orders = whole("orders", orders)
    check_room("orders", orders, len(values) + model.variables, "average over fewer, or ask for fewer rows at a time")
    out = np.zeros((orders, len(values)))
    several = int(query.asked.sum(dim=1).max()) > 1 if query.asked.numel() else False
    protocols = order_protocols(model, orders if several else 1, seed)  # one variable has but one order
    for rows in tracked(row_chunks(model, len(values)), len(values)):
        for stage in indicators_first(query.rows(rows).to(model.device), model.schema):
            for which, protocol in enumerate(protocols):
                steps = model.step_log_prob(
                    values[rows].to(model.device), protocol.chain(stage, context=model.schema.context)
                )
                out[which, rows] += steps.double().sum(dim=1).cpu().numpy()
    out[len(protocols) :] = out[0]
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
