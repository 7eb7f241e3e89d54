r"""How far a trained model is from being one coherent distribution, and what averaging over orders gains.

There are two ways to a conditional (MAC section 5.2): the direct chain from e to e + u, which is always normalised, and
the ratio p(x_e, x_u) / p(x_e) of two marginal chains, which may exceed one. A coherent model has no gap, and the
same log-probability along every order.

A mean of probabilities over K orders that were fixed before any row was seen,

$$\bar p(x_u \mid x_e) = \frac1K \sum_{k=1}^K \prod_t p(x_{u_t} \mid x_e, x_{u_{<t}}; \text{order } k),$$

is a mixture of K normalised densities, so it is one itself. By Jensen's inequality it is never below the mean over
the orders of their log-probabilities.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.model.likelihood import log_probs
from anyorder.query import Query
from anyorder.support import html
from anyorder.tasks.hidden_cells import random_known
from anyorder.variables.context import context_mask
from anyorder.variables.encoding import Unseen

ORDERS = (1, 2, 4, 8)


@dataclass(frozen=True, repr=False)
class Coherence:
    """How far answers depend on the order of asking, in nats per row.

    Made by :meth:`TableModel.coherence <anyorder.modalities.tables.model.TableModel.coherence>`.

    Parameters
    ----------
    rows
        How many rows it was measured on.
    spread
        The standard deviation over orders of log p of a row's known cells, averaged over rows.
    left
        The same over pairs of opposite orders, each averaged, as ``log_prob`` averages the first of them.
    gap
        The log of the ratio of marginals minus log p along the direct chain, averaged over rows with random evidence.
    gap_error
        Its standard error.
    gap_size
        The root of its mean square.
    gain
        For K fixed orders, the mean log-probability of their mixture minus that of the model's own order, and its
        standard error.

    Examples
    --------
    >>> found = model.coherence(held_out, seed=0)
    >>> found.rows == len(held_out), sorted(found.gain)
    (True, [1, 2, 4, 8])
    """

    rows: int
    spread: float
    left: float
    gap: float
    gap_error: float
    gap_size: float
    gain: dict[int, tuple[float, float]]

    def __repr__(self) -> str:
        facts = f"the order changes log p by {self.spread:.3f} nats, by {self.left:.3f} averaged over opposite orders"
        return f"Coherence({self.rows} rows: {facts}; gap {self.gap:.3f} ± {self.gap_error:.3f})"

    def _repr_html_(self) -> str:
        lines = [
            ["log p of a row differs from order to order by", f"{self.spread:.3f}"],
            ["averaged over opposite orders, by", f"{self.left:.3f}"],
            ["the ratio of marginals is off by", f"{self.gap:.3f} ± {self.gap_error:.3f}"],
        ]
        for orders, (gain, error) in self.gain.items():
            if orders > 1:
                lines.append([f"averaging over {orders} orders gains", f"{gain:.3f} ± {error:.3f}"])
        return html.titled(
            f"How far answers depend on the order of asking, on {self.rows} rows",
            html.table(["", "nats per row"], lines, [1]),
            html.remark("A model that never contradicts itself has zeros throughout."),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values, as the command line prints them.

        Returns
        -------
        dict

        Examples
        --------
        >>> model.coherence(held_out, seed=0).to_json()["unit"]
        'nats per row'
        """
        gain = {str(orders): {"gain": gain, "standard_error": error} for orders, (gain, error) in self.gain.items()}
        return {**asdict(self), "gain": gain, "unit": "nats per row"}


def coherence(
    model: AnyOrderModel,
    frame: pd.DataFrame,
    *,
    orders: tuple[int, ...] = ORDERS,
    seed: int = 0,
    unseen: Unseen = "refuse",
) -> Coherence:
    """Measured on these rows: the spread over orders, the gap between the two ways, the gain of averaging."""
    if not len(frame):
        raise UserError("coherence is measured on rows, and the table has none")
    if not orders or min(orders) < 1:
        raise UserError(f"orders must be numbers from 1 up, got {orders}")
    array, observed = model.encoding.encode(frame, unseen)
    values = torch.as_tensor(array)
    # One set of orders for every row; the first one is the model's own.
    everything = _given_context(model, torch.as_tensor(observed))
    nats = log_probs(model, values, everything, orders=max(*orders, 2), seed=seed)
    gains = {count: _mean(mixture_log_prob(nats[:count]) - nats[0]) for count in orders}
    known = random_known(observed, np.random.default_rng(seed), model.schema.context)
    gap = ratio_gap(model, values, Query(torch.as_tensor(known), torch.as_tensor(observed & ~known)), seed=seed)
    mean, error = _mean(gap)
    spread = float(nats.std(axis=0, ddof=1).mean())
    pairs = np.stack([mixture_log_prob(nats[first : first + 2]) for first in range(0, len(nats) - 1, 2)])
    left = float(pairs.std(axis=0, ddof=1).mean()) if len(pairs) > 1 else math.nan
    return Coherence(len(frame), spread, left, mean, error, float(np.sqrt((gap**2).mean())), gains)


def mixture_log_prob(nats: Float[np.ndarray, "orders rows"]) -> NDArray[np.float64]:
    """log of the mean probability over the orders (SFARM eq. 14)."""
    mixed: NDArray[np.float64] = np.logaddexp.reduce(nats, axis=0) - math.log(len(nats))
    return mixed


def ratio_gap(
    model: AnyOrderModel, values: Float[Tensor, "rows variables"], query: Query, *, seed: int = 0
) -> NDArray[np.float64]:
    """log of the ratio of marginals minus log p along the direct chain, per row, in nats."""
    direct = log_probs(model, values, query, seed=seed)[0]
    joint = log_probs(model, values, _given_context(model, query.evidence | query.asked), seed=seed)[0]
    evidence = log_probs(model, values, _given_context(model, query.evidence), seed=seed)[0]
    gap: NDArray[np.float64] = joint - evidence - direct
    return gap


def _given_context(model: AnyOrderModel, cells: Bool[Tensor, "rows variables"]) -> Query:
    """p(these cells), or given those of them that are context."""
    known = cells & torch.as_tensor(context_mask(model.schema))
    return Query(known, cells & ~known)


def _mean(numbers: NDArray[np.float64]) -> tuple[float, float]:
    error = float(numbers.std(ddof=1)) / math.sqrt(len(numbers)) if len(numbers) > 1 else math.nan
    return float(numbers.mean()), error
