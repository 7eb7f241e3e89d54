r"""How an action is chosen from p(action | state, what is given), in model units.

*sample*: one joint draw, of the law that :meth:`Conditional.sample <anyorder.questions.conditional.Conditional.sample>`
draws from, bit for bit where it is asked for one row under the same seed.

*mean*: E[a_i | state, given] of every action asked, each by itself, in one pass and without a draw. The mean of a joint
law is the vector of the means of its marginals, so without bounds this is the mean of the joint law wherever the
model's answer for one action agrees with what its chains say of it. With bounds it is the mean of each action clipped
by itself: in a joint draw, an action that follows another also follows from the bound that the other was moved to,
which this leaves out. Where there are several ways to act, a mean may be none of them.

*most probable*: of k joint draws along the model's own order u_1, u_2, ... the one with the highest

$$\sum_t \log P(|A_{u_t} - a_{u_t}| \le \delta_{u_t} \mid s, g, a_{u_{<t}}),$$

from the same walk as the draws: the probability that the action, clipped to its bounds, comes within delta of the one
drawn. Of a number delta is 0.02 (``NEAR``) of half the distance between the values of its column at -1 and at 1 of
model units, about its standard deviation; whole numbers and levels have probabilities of their own. So all draws have
one measure, and the mass behind a bound or on an atom counts for what it is, where a density would be compared with a
probability. Where an action is all but certain, all draws within delta of it are as good as each other.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.row_regions import RowIntervals
from anyorder.model import AnyOrderModel, row_chunks
from anyorder.model.any_order import Limits
from anyorder.model.likelihood import usual_orders
from anyorder.model.sampling import draws, scored_draws, seeded
from anyorder.protocols import Protocol
from anyorder.query import Chain, Query
from anyorder.questions.particles import doubled
from anyorder.support.memory import check_room
from anyorder.support.threads import answering
from anyorder.variables.codecs import Codec, Space
from anyorder.variables.missingness import indicators_first, present_first

NEAR = 0.02  # of the spread of a column: numbers so close are one action

Chains: TypeAlias = dict[tuple[Protocol, torch.device], Chain]
"""The chains of one question, by protocol and by where the model was: it may be moved between two calls."""


def sample(
    model: AnyOrderModel,
    values: Float[Tensor, "rows variables"],
    query: Query,
    seed: int,
    limits: Limits | None,
    chains: Chains | None = None,
) -> NDArray[np.float64]:
    """A joint draw of what is asked in every row.

    ``chains``: those of this query that were made before; new ones are added.
    """
    kept = None if model.schema.pairs or model.protocol.random else chains  # a query in stages has several

    def one_by_one(model: AnyOrderModel, values: Tensor, query: Query, generator: torch.Generator) -> Tensor:
        key = model.protocol, model.device
        chain = None if kept is None else kept.get(key)
        if chain is None:
            chain = model.chain(query, generator)
            if kept is not None:
                kept[key] = chain
        return model.draw(values, chain, generator, limits=limits)

    return draws(model, values, query, seed=seed, sampler=one_by_one, orders=usual_orders(model))


@answering
@torch.no_grad()
def mean(
    model: AnyOrderModel, values: Float[Tensor, "rows variables"], query: Query, limits: Limits | None
) -> NDArray[np.float64]:
    """The model value of the mean of everything asked, and the most probable one of levels."""
    out = values.double().numpy().copy()
    for chunk in row_chunks(model, len(values)):
        part = query.rows(chunk)
        features = model.features_beside(values[chunk].to(model.device), part.evidence.to(model.device)).cpu()
        for variable in part.asked.any(dim=0).nonzero()[:, 0].tolist():
            rows = part.asked[:, variable].nonzero()[:, 0]
            law = model.heads.distribution(features[rows, variable], variable)
            ends = (-math.inf, math.inf) if limits is None else (float(limits[0][variable]), float(limits[1][variable]))
            out[chunk][rows.numpy(), variable] = _point(model.encoding.codecs[variable], law, *ends)
    return out


def _point(codec: Codec, law: Distribution, low: float, high: float) -> NDArray[np.float64]:
    """The model value of the mean, or the most probable level within."""
    if codec.space is not Space.LEVELS:
        return codec.from_measure(_mean_in_units(codec, law, low, high))
    codes = torch.arange(len(codec.variable.levels), dtype=torch.float64)
    codes = codes[(codes >= low) & (codes <= high)]
    best = law.log_prob(codes[:, None].expand(-1, *law.shape)).argmax(dim=0)
    return np.asarray(codes[best].numpy())


def _mean_in_units(codec: Codec, law: Distribution, low: float, high: float) -> NDArray[np.float64]:
    """The mean of a law whose draws are clipped, in the units of the data."""

    def in_units(values: Tensor) -> Tensor:
        return torch.as_tensor(codec.measure(values.double().clamp(low, high).numpy()))

    steps = tuple(end for end in (low, high) if math.isfinite(end))
    found = law.expect_within(in_units, -math.inf, math.inf, steps) if steps else None
    units = law.expect(in_units) if found is None else found[0] / found[1]
    return np.asarray(units.double().numpy())


def most_probable(
    model: AnyOrderModel,
    values: Float[Tensor, "rows variables"],
    query: Query,
    seed: int,
    limits: Limits | None,
    *,
    count: int,
) -> NDArray[np.float64]:
    """The draw with the highest probability of what lies near it, among ``count`` for every row."""
    check_room("draws", count, len(values) * model.variables, "ask for fewer draws, or fewer states at a time")
    many = Query(query.evidence.repeat_interleave(count, 0), query.asked.repeat_interleave(count, 0))
    drawn, nats = scored(model, values.double().repeat_interleave(count, 0), many, seed, limits)
    best = nats.reshape(-1, count).argmax(axis=1)
    chosen: NDArray[np.float64] = drawn.reshape(len(values), count, -1)[np.arange(len(values)), best]
    return chosen


def scored(
    model: AnyOrderModel, values: Float[Tensor, "rows variables"], query: Query, seed: int, limits: Limits | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draws along the model's own order, and the log-probability of what lies near each, given its evidence."""
    generator, nats = seeded(model, seed), torch.zeros(len(values), dtype=torch.float64)
    score = partial(_log_nearby, model, limits)
    for stage in indicators_first(query, model.schema):
        for now in present_first(stage, model.schema, values):
            values, own = scored_draws(model, values, now, generator, limits=limits, score=score)
            nats += own.sum(dim=1)
    return values.numpy(), nats.numpy()


def _log_nearby(
    model: AnyOrderModel,
    limits: Limits | None,
    features: Float[Tensor, "steps width"],
    variable: Int[Tensor, " steps"],
    drawn: Float[Tensor, " steps"],
) -> Float[Tensor, " steps"]:
    """The log-probability that each variable named, clipped to the limits, lies near the value beside it."""
    features, variable, drawn = features.cpu(), variable.cpu(), drawn.double().cpu()
    nats = torch.zeros(len(drawn), dtype=torch.float64)
    for number in variable.unique().tolist():
        rows = (variable == number).nonzero()[:, 0]
        before, upto = _around(model.encoding.codecs[number], drawn[rows])
        if limits is not None:  # what is drawn beyond one is moved to it
            before = before.masked_fill(before <= limits[0][number], -math.inf)
            upto = upto.masked_fill(upto >= limits[1][number], math.inf)
        nats[rows] = RowIntervals(before, upto, before, upto).log_mass(doubled(model, features[rows], number))
    return nats


def _around(codec: Codec, values: Float[Tensor, " rows"]) -> tuple[Float[Tensor, " rows"], Float[Tensor, " rows"]]:
    """The ends of what is near: a level or a point of a lattice alone, on a line what lies within delta."""
    if codec.space is Space.LEVELS:
        return values - 0.5, values + 0.5
    low, high = codec.measure(np.array([-1.0, 1.0])).tolist()
    delta = NEAR * (high - low) / 2 if codec.lattice is None else codec.lattice.step / 2
    units = codec.measure(values.numpy())
    before, upto = (torch.as_tensor(codec.from_measure(units + side)) for side in (-delta, delta))
    return before, upto


WAYS = ("sample", "mean", "most probable")
