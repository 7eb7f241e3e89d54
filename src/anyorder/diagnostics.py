"""How far a trained model is from being one coherent distribution.

There are two ways to a conditional (MAC section 5.2): the direct chain from e to e + u, which is always normalised, and
the ratio p(x_e, x_u) / p(x_e) of two marginal chains, which may exceed one. A coherent model has no gap.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from anyorder.conditional import log_probs
from anyorder.model import AnyOrderModel
from anyorder.query import Query


def ratio_gap(
    model: AnyOrderModel, values: Float[Tensor, "rows variables"], query: Query, *, seed: int = 0
) -> NDArray[np.float64]:
    """log of the ratio of marginals minus log p along the direct chain, per row, in nats."""
    direct = log_probs(model, values, query, seed=seed)[0]
    joint = log_probs(model, values, Query.marginal(query.evidence | query.asked), seed=seed)[0]
    evidence = log_probs(model, values, Query.marginal(query.evidence), seed=seed)[0]
    gap: NDArray[np.float64] = joint - evidence - direct
    return gap
