r"""How well a distribution foretold a value, in the units of the data: what a codec asks of a distribution, and gets.

The continuous ranked probability score is $\int (F(y) - 1[x \le y])^2 dy$; on a line it is taken as the mean pinball
loss over the quantiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from anyorder.support.legendre import legendre
from anyorder.variables.cells import Numbers

NODES = 24  # Gauss-Legendre nodes on either side of x, where the quantile function is smooth


class Law(Protocol):
    """A batch of one-dimensional distributions over the model values of one variable.

    Every :class:`~anyorder.distributions.base.Distribution` is one; codecs stand below those in the house.
    """

    @property
    def shape(self) -> torch.Size: ...
    def log_prob(self, value: Tensor, /) -> Tensor: ...
    def mass_at(self, value: Tensor, /) -> Tensor: ...
    def cdf(self, value: Tensor, /) -> Tensor: ...
    def quantile(self, level: Tensor, /) -> Tensor: ...
    def expect(self, function: Callable[[Tensor], Tensor], /, *, fine: bool = True) -> Tensor: ...


@dataclass(frozen=True)
class Standing:
    """Where values stand in their own distributions: P(X < x), P(X = x) and log p(x), one entry a value.

    Levels without an order are put in the order of their probability: ``below`` is the mass of the more likely ones.
    """

    below: Numbers
    at: Numbers
    log_prob: Numbers


def mean_pinball_loss(law: Law, values: Tensor, measure: Callable[[Numbers], Numbers]) -> Numbers:
    """2 int (1[x <= q_t] - t) (q_t - x) dt for each value, in two parts that meet where q_t = x."""
    actual = measure(values.numpy())
    upto = law.cdf(values).double().numpy()
    nodes, weights = legendre(NODES)
    nodes, weights = (nodes[:, None] + 1) / 2, weights[:, None] / 2
    left = nodes * upto
    right = upto + nodes * (1 - upto)
    levels = torch.as_tensor(np.concatenate([left, right]).clip(1e-12, 1 - 1e-12))
    reached = measure(law.quantile(levels).double().numpy())
    lower = (weights * upto * 2 * left * np.maximum(actual - reached[:NODES], 0.0)).sum(axis=0)
    upper = (weights * (1 - upto) * 2 * (1 - right) * np.maximum(reached[NODES:] - actual, 0.0)).sum(axis=0)
    return np.asarray(lower + upper)
