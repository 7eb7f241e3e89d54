r"""Few-step sampling: several variables per network call, in parallel, where that costs least.

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
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.errors import UserError, nearest
from anyorder.model.any_order import AnyOrderModel, row_chunks
from anyorder.model.sampling import Sampler
from anyorder.query import Chain, Query, lowest, padded_left
from anyorder.support.checks import checked_seed, positive, whole
from anyorder.support.threads import answering

FINEST = 1024  # positions at which a call may begin, of a measured surprise

Watch: TypeAlias = Callable[[Tensor, Tensor, Tensor], None]
"""Sees every call: the values so far, which of them are known, and the network's features of all variables."""


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


@answering
@torch.no_grad()
def surprise_matrix(
    model: AnyOrderModel, values: Float[Tensor, "texts variables"], *, seed: int = 0
) -> Float[np.ndarray, "known steps"]:
    r"""$\ell(k, t)$ for k <= t, measured on complete held-out rows; infinite below the diagonal."""
    variables = values.shape[1]
    everything = torch.ones(values.shape, dtype=torch.bool)
    # Drawn on the CPU and for all rows at once, so that it depends on no device and on no size of a part.
    order = model.chain(Query.marginal(everything), torch.Generator().manual_seed(checked_seed(seed))).order
    loss = np.full((variables, variables), math.inf)
    nats = torch.zeros(values.shape, dtype=torch.float64)
    for known in range(variables):
        for rows in row_chunks(model, len(values)):
            part, steps = values[rows].to(model.device), order[rows].to(model.device)
            prefix = steps[:, :known]
            marks = torch.zeros_like(part, dtype=torch.bool).scatter(1, prefix, True)
            features = model.network.beside(part.where(marks, 0.0), marks, prefix)
            nats[rows] = model.heads.log_prob_beside(features, part).gather(1, steps).double().cpu()
        loss[known, known:] = -nats[:, known:].mean(dim=0).numpy()
    return loss


def cheapest(loss: Float[np.ndarray, "known steps"], calls: int) -> Budget:
    """Where ``calls`` calls should begin so that drawing side by side costs least."""
    steps = len(loss)
    calls = min(whole("calls", calls), steps)
    own = np.concatenate([[0.0], np.cumsum(np.diagonal(loss))])
    ahead = np.zeros((steps, steps + 1))  # [i, j]: the surprise of steps i..j-1 when i are known
    for i in range(steps):
        ahead[i, i + 1 :] = np.cumsum(loss[i, i:])
    cost = np.where(
        np.arange(steps + 1) > np.arange(steps)[:, None], ahead - (own[None, :] - own[:steps, None]), np.inf
    )
    starts, nats = _shortest(cost, calls)
    return Budget(starts, steps, nats)


def cheapest_in_random_order(surprise: Float[np.ndarray, " steps"], calls: int) -> Budget:
    """Where calls should begin if the surprise of a variable depends on how many are known alone: ``surprise[known]``.

    That is how it is under a random order (ARDM), and how pictures are measured. Of more than a thousand steps, calls
    begin at about a thousand only, or the search would take seconds.
    """
    steps = len(surprise)
    calls = min(whole("calls", calls), steps)
    stride = max(1, min(-(-steps // FINEST), steps // (4 * calls)))
    begins = np.arange(0, steps, stride)
    ends = np.append(begins, steps)
    own = np.concatenate([[0.0], np.cumsum(surprise)])
    length = ends - begins[:, None]
    cost = np.where(length > 0, length * surprise[begins, None] - (own[ends] - own[begins, None]), np.inf)
    starts, nats = _shortest(cost, calls)
    return Budget(tuple(int(begins[start]) for start in starts), steps, nats)


def _shortest(cost: Float[np.ndarray, "begins ends"], calls: int) -> tuple[tuple[int, ...], float]:
    """The cheapest way from the first position to behind the last in so many calls: where each begins, and its cost."""
    positions = len(cost)
    best = np.full((calls + 1, positions + 1), np.inf)
    best[0, 0] = 0.0
    came = np.zeros((calls + 1, positions + 1), dtype=np.int64)
    for call in range(1, calls + 1):
        total = best[call - 1, :positions, None] + cost
        came[call], best[call] = total.argmin(axis=0), total.min(axis=0)
    starts, end = [], positions
    for call in range(calls, 0, -1):
        end = int(came[call, end])
        starts.append(end)
    return tuple(reversed(starts)), float(best[calls, positions])


def even(steps: int, calls: int) -> tuple[int, ...]:
    """Groups of equal size, as they are without a measurement."""
    return tuple(sorted({round(call * steps / calls) for call in range(calls)}))


def call_starts(
    calls: int | Budget | None, steps: int, known: int = 0, surprise: tuple[float, ...] = ()
) -> tuple[int, ...]:
    """Where the calls for a chain of so many steps begin.

    At every step; by a measured budget; where they cost least by a ``surprise`` that was measured for every number of
    known variables; or in equal groups. A budget was measured from nothing: the variables that are ``known`` already
    are as much of its way.
    """
    if isinstance(calls, Budget):
        return (0, *(start - known for start in calls.starts if known < start < known + steps))
    if not steps:
        return (0,)
    if calls is not None and whole("calls", calls) < steps and surprise:
        return _measured(surprise[known : known + steps], calls)
    return even(steps, steps if calls is None else min(whole("calls", calls), steps))


@lru_cache(maxsize=64)  # a stack of pictures is drawn in parts
def _measured(surprise: tuple[float, ...], calls: int) -> tuple[int, ...]:
    return cheapest_in_random_order(np.array(surprise), calls).starts


def grouped(
    chain: Chain, calls: int | Budget | None, channels: int = 1, surprise: tuple[float, ...] = ()
) -> tuple[Chain, tuple[int, ...]]:
    """The chain and where its calls begin; ``surprise`` as in :func:`call_starts`.

    Where the ``channels`` of a pixel depend on each other within one call's answers, a group of pixels takes a call for
    each channel: all reds, then all greens, then all blues. Budgets and surprises are of whole pixels then.
    """
    known = int(chain.evidence.sum(dim=1).min()) // channels if chain.batch else 0
    starts = call_starts(calls, chain.steps // channels, known, surprise)
    if channels == 1 or not chain.steps:
        return chain, starts
    pixels = chain.order.unflatten(1, (-1, channels))
    groups = list(zip(starts, (*starts[1:], pixels.shape[1]), strict=True))
    order = torch.cat([pixels[:, start:end].transpose(1, 2).flatten(1) for start, end in groups], dim=1)
    begins = [channels * start + channel * (end - start) for start, end in groups for channel in range(channels)]
    return Chain(chain.prefix, order, chain.variables), tuple(begins)


@dataclass(frozen=True)
class InGroups:
    """A sampler: ``calls`` network calls (one a variable if None), the variables of a call drawn side by side.

    ``surprise``: what was measured of the model, by which so many calls begin where they cost least.
    """

    calls: int | Budget | None = None
    temperature: float = 1.0
    watch: Watch | None = None
    surprise: tuple[float, ...] = ()

    def __call__(self, model: AnyOrderModel, values: Tensor, query: Query, generator: torch.Generator) -> Tensor:
        chain, starts = grouped(model.chain(query, generator), self.calls, model.channels_in_turn, self.surprise)
        return draw_in_groups(model, values, chain, starts, generator, temperature=self.temperature, watch=self.watch)


@dataclass(frozen=True)
class ByConfidence:
    """A sampler: the variables that the model is surest of first, in ``calls`` calls (one a variable if None)."""

    calls: int | None = None
    temperature: float = 1.0

    def __call__(self, model: AnyOrderModel, values: Tensor, query: Query, generator: torch.Generator) -> Tensor:
        return draw_by_confidence(model, values, query, self.calls, generator, temperature=self.temperature)


def check_calls(model: AnyOrderModel, calls: int | Budget | None, noun: str = "calls") -> int | Budget | None:
    """``calls``, once they make sense for this model; ``noun`` is what the user calls them."""
    if calls is None:
        return None
    if not isinstance(calls, Budget):
        return whole(noun, calls)
    if calls.steps != model.variables // model.channels_in_turn:
        raise UserError("this budget was measured for another model; measure one with this model's budget(...)")
    return calls


def sampler_for(
    model: AnyOrderModel,
    calls: int | Budget | None,
    order: str = "model",
    temperature: float = 1.0,
    *,
    noun: str = "calls",
    surprise: tuple[float, ...] = (),
) -> Sampler:
    """The sampler that a user's words describe, once they make sense for this model.

    ``noun`` is what the user calls the calls; ``surprise`` as in :class:`InGroups`.
    """
    if order not in ("model", "confidence"):
        raise UserError(f"unknown order {order!r}; {nearest(order, ('model', 'confidence'))}")
    temperature = positive("temperature", temperature)
    if isinstance(calls, Budget) and order == "confidence":
        raise UserError(f"a measured budget works only with order='model'; give the number of {noun}")
    calls = check_calls(model, calls, noun)
    if order == "model":
        return InGroups(calls, temperature, surprise=surprise)
    if model.channels_in_turn > 1:
        raise UserError("order='confidence' works only for grey pictures or with variables='channels'")
    assert not isinstance(calls, Budget)
    return ByConfidence(calls, temperature)


@answering
@torch.no_grad()
def draw_in_groups(
    model: AnyOrderModel,
    values: Float[Tensor, "batch variables"],
    chain: Chain,
    starts: tuple[int, ...],
    generator: torch.Generator | None = None,
    *,
    temperature: float = 1.0,
    watch: Watch | None = None,
) -> Float[Tensor, "batch variables"]:
    """``values`` with the asked variables drawn group by group: one call a group, its members side by side."""
    if not starts or starts[0] != 0 or list(starts) != sorted(set(starts)):
        raise UserError(f"the calls must begin at rising steps, the first at 0; got {starts}")
    values = values.where(chain.evidence, 0.0)
    network = model.network.remembering()
    for start, end in zip(starts, (*starts[1:], chain.steps), strict=True):
        prefix = torch.cat([chain.prefix, chain.order[:, :start]], dim=1)
        known = chain.known_before(start)
        features = network.beside(values, known, padded_left(prefix))
        if watch is not None:
            watch(values, known, features)
        for step in range(start, end):
            target = chain.order[:, step]
            rows = (target >= 0).nonzero()[:, 0]
            if len(rows):
                drawn = model.heads.sample_at(features[rows, target[rows]], target[rows], generator, temperature)
                values = values.index_put((rows, target[rows]), drawn.to(values.dtype))
    return values


@answering
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
    if calls is not None:
        calls = whole("calls", calls)
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
