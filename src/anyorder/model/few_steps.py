r"""Few-step sampling: several variables a network call, side by side, where that costs least.

Drawing the variables of one call independently, each given what was known before the call, is not the model's own
distribution. What it costs is known in advance: with $\ell(k, t)$ the mean surprise $-\log p(x_t \mid x_{<k})$ of the
t-th variable of a chain when the first k are known, drawing t = i..j-1 in one call costs

$$c(i, j) = \sum_{t=i}^{j-1} \ell(i, t) - \ell(t, t)$$

nats a text (its divergence from the model, if texts come from the model). The cheapest way through a chain of N in S
calls is a shortest path, found by dynamic programming (ARDM section 3.3, where $\ell(k, t)$ depends on k alone because
its order is random).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.errors import UserError, whole
from anyorder.model import AnyOrderModel
from anyorder.query import Chain, Query, lowest, padded_left


@dataclass(frozen=True)
class Budget:
    """``starts``: the step of the chain at which each call begins. ``nats``: what it costs a text, predicted.

    Measured, so it can come out a little below zero where a call's variables hardly depend on each other.
    """

    starts: tuple[int, ...]
    steps: int
    nats: float

    @property
    def calls(self) -> int:
        return len(self.starts)


@torch.no_grad()
def surprise_matrix(
    model: AnyOrderModel, values: Float[Tensor, "texts variables"], *, seed: int = 0
) -> Float[np.ndarray, "known steps"]:
    r"""$\ell(k, t)$ for k <= t, measured on complete held-out rows; infinite below the diagonal."""
    variables = values.shape[1]
    everything = torch.ones(values.shape, dtype=torch.bool)
    order = model.chain(Query.marginal(everything), torch.Generator().manual_seed(seed)).order
    loss = np.full((variables, variables), math.inf)
    for known in range(variables):
        prefix = order[:, :known]
        marks = torch.zeros(values.shape, dtype=torch.bool).scatter(1, prefix, True)
        features = model.network.beside(values.where(marks, 0.0), marks, prefix)
        nats = model.heads.log_prob_beside(features, values).gather(1, order).double()
        loss[known, known:] = -nats[:, known:].mean(dim=0).numpy()
    return loss


def cheapest(loss: Float[np.ndarray, "known steps"], calls: int) -> Budget:
    """Where ``calls`` calls should begin so that drawing side by side costs least."""
    steps = len(loss)
    if not calls >= 1:
        raise UserError(f"sampling needs 1 call or more, got {calls}")
    calls = min(calls, steps)
    own = np.concatenate([[0.0], np.cumsum(np.diagonal(loss))])
    ahead = np.zeros((steps, steps + 1))  # [i, j]: the surprise of steps i..j-1 when i are known
    for i in range(steps):
        ahead[i, i + 1 :] = np.cumsum(loss[i, i:])
    cost = np.where(
        np.arange(steps + 1) > np.arange(steps)[:, None], ahead - (own[None, :] - own[:steps, None]), np.inf
    )
    best = np.full((calls + 1, steps + 1), np.inf)
    best[0, 0] = 0.0
    came = np.zeros((calls + 1, steps + 1), dtype=np.int64)
    for call in range(1, calls + 1):
        total = best[call - 1, :steps, None] + cost
        came[call], best[call] = total.argmin(axis=0), total.min(axis=0)
    starts, end = [], steps
    for call in range(calls, 0, -1):
        end = int(came[call, end])
        starts.append(end)
    return Budget(tuple(reversed(starts)), steps, float(best[calls, steps]))


def even(steps: int, calls: int) -> tuple[int, ...]:
    """Groups of equal size, as they are without a measurement."""
    return tuple(sorted({round(call * steps / calls) for call in range(calls)}))


def call_starts(calls: int | Budget, steps: int) -> tuple[int, ...]:
    """Where the calls for a chain of so many steps begin: in equal groups, or by a budget for one as long or longer."""
    if isinstance(calls, Budget):
        return tuple(start for start in calls.starts if start < max(steps, 1))
    if not steps:
        return (0,)
    return even(steps, min(whole("calls", calls), steps))


@torch.no_grad()
def draw_in_groups(
    model: AnyOrderModel,
    values: Float[Tensor, "batch variables"],
    chain: Chain,
    starts: tuple[int, ...],
    generator: torch.Generator | None = None,
    *,
    temperature: float = 1.0,
    watch: Callable[[Tensor, Tensor, Tensor], None] | None = None,
) -> Float[Tensor, "batch variables"]:
    """``values`` with the asked variables drawn group by group: one call a group, its members side by side.

    ``watch`` sees every call: the values so far, which of them were known, and the network's features of all variables.
    """
    if not starts or starts[0] != 0 or list(starts) != sorted(set(starts)):
        raise UserError(f"the calls must begin at rising steps, the first at 0; got {starts}")
    values = values.where(chain.evidence, 0.0)
    for start, end in zip(starts, (*starts[1:], chain.steps), strict=True):
        prefix = torch.cat([chain.prefix, chain.order[:, :start]], dim=1)
        known = chain.known_before(start)
        features = model.network.beside(values, known, padded_left(prefix))
        if watch is not None:
            watch(values, known, features)
        for step in range(start, end):
            target = chain.order[:, step]
            rows = (target >= 0).nonzero()[:, 0]
            if len(rows):
                drawn = model.heads.sample_at(features[rows, target[rows]], target[rows], generator, temperature)
                values = values.index_put((rows, target[rows]), drawn.to(values.dtype))
    return values


@torch.no_grad()
def draw_by_confidence(
    model: AnyOrderModel,
    values: Float[Tensor, "batch variables"],
    query: Query,
    calls: int | None = None,
    generator: torch.Generator | None = None,
    *,
    temperature: float = 1.0,
) -> Float[Tensor, "batch variables"]:
    """``values`` with the asked variables drawn where the model is surest (of least entropy) first.

    Not the model's own distribution, even one variable a call: which variable comes next depends on the values so far,
    and a chain that was never trained for is walked. Sure things first is what people like to look at, not what is
    likely to come out.
    """
    if calls is not None and calls < 1:
        raise UserError(f"sampling needs 1 call or more, got {calls}")
    known, left = query.evidence.clone(), query.asked.clone()
    values = values.where(known, 0.0)
    longest = int(left.sum(dim=1).max()) if left.numel() else 0
    for more in range(min(calls or longest, longest), 0, -1):
        features = model.one_pass(values, known)
        row, target = left.nonzero(as_tuple=True)
        entropy = features.new_full(left.shape, math.inf)
        entropy[row, target] = model.heads.entropy_at(features[row, target], target)
        share = -(-left.sum(dim=1) // more)
        row, target = lowest(entropy, share, left).nonzero(as_tuple=True)
        drawn = model.heads.sample_at(features[row, target], target, generator, temperature).to(values.dtype)
        values = values.index_put((row, target), drawn)
        known[row, target], left[row, target] = True, False
    return values
