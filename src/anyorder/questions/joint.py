"""The joint log-probability of several values given evidence, along one order or several.

log p(u | e) is the sum of the steps of one chain from e to e + u, so it is always normalised (MAC section 5.2). Other
orders give other answers, since nothing forces a trained network to be coherent; averaging K of them is the log of the
mean *probability* (SFARM eq. 14), their spread a diagnostic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.model import AnyOrderModel
from anyorder.model.likelihood import log_probs
from anyorder.query import Query
from anyorder.questions.estimate import Estimate, weighted_mean
from anyorder.questions.particles import Particles


@dataclass(frozen=True, repr=False)
class OrderSpread:
    """The log-probability of the same values along several orders, in nats: how much an answer depends on the order.

    Made by :meth:`Conditional.order_spread <anyorder.questions.conditional.Conditional.order_spread>`.

    Parameters
    ----------
    log_probs
        One number an order; the first is that of the model's own order.

    Examples
    --------
    >>> spread = model.given(rooms=6).order_spread(price=40.0, river="yes", orders=4)
    >>> len(spread.log_probs), spread.deviation >= 0
    (4, True)
    >>> min(spread.log_probs) <= spread.average <= max(spread.log_probs)
    True
    """

    log_probs: tuple[float, ...]

    def __repr__(self) -> str:
        least, most = min(self.log_probs), max(self.log_probs)
        average = f"log p {self.average:.4g} on average"
        return f"OrderSpread({len(self.log_probs)} orders: {average}, {least:.4g} .. {most:.4g})"

    @property
    def average(self) -> float:
        """The log of the mean probability."""
        return float(np.logaddexp.reduce(self.log_probs)) - math.log(len(self.log_probs))

    @property
    def deviation(self) -> float:
        """The standard deviation over orders: 0 for a coherent model."""
        return float(np.std(self.log_probs))

    @property
    def left(self) -> float:
        """The deviation over pairs of opposite orders, each averaged: how a log-probability is answered."""
        each = np.array(self.log_probs)[: len(self.log_probs) // 2 * 2].reshape(-1, 2)
        return float(np.std(np.logaddexp.reduce(each, axis=1))) if len(each) else 0.0


def order_spread(
    model: AnyOrderModel,
    row: Float[Tensor, "1 variables"],
    known: Bool[Tensor, "1 variables"],
    wanted: Mapping[str, Any],
    *,
    orders: int,
    seed: int,
) -> OrderSpread:
    """log p(wanted | the known values of a row), along each of some orders."""
    rows, query = _asked_for(model, row, known[0], wanted)
    return OrderSpread(tuple(log_probs(model, rows, query, orders=orders, seed=seed)[:, 0].tolist()))


def log_prob_over(
    model: AnyOrderModel, particles: Particles, wanted: Mapping[str, Any], *, orders: int, seed: int, method: str
) -> Estimate:
    """log p(wanted | ranges): the log of the weighted mean of the probabilities given each draw of the ranges."""
    rows, query = _asked_for(model, particles.values, particles.known, wanted)
    nats = np.logaddexp.reduce(log_probs(model, rows, query, orders=orders, seed=seed)) - math.log(orders)
    top = float(nats.max())
    if top == -math.inf:
        return Estimate(-math.inf)
    mean, error = (float(part) for part in weighted_mean(particles.weights, np.exp(nats - top)))
    return Estimate(top + math.log(mean), error / mean, method)


def _asked_for(
    model: AnyOrderModel,
    rows: Float[Tensor, "rows variables"],
    known: Bool[Tensor, " variables"],
    wanted: Mapping[str, Any],
) -> tuple[Float[Tensor, "rows variables"], Query]:
    """The rows with the wanted values in them, and the query that asks for those."""
    rows, asked = rows.clone(), torch.zeros_like(known)
    for name, value in wanted.items():
        index = model.schema.asked(name)
        rows[:, index] = model.encoding.encode_value(name, value)
        asked[index] = True
    return rows, Query(known.expand(len(rows), -1), asked.expand(len(rows), -1))
