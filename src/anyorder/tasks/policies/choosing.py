r"""How an action is chosen from p(action | state, what is given), in model units.

*sample*: one joint draw, of the law that :meth:`Conditional.sample <anyorder.questions.conditional.Conditional.sample>`
draws from, bit for bit where it is asked for one row under the same seed.

*mean*: E[a_i | state, given] of every action asked, each by itself, in one pass and without a draw. The mean of a joint
law is the vector of the means of its marginals, so this is the mean of the joint law wherever the model's answer for
one action agrees with what its chains say of it. Where there are several ways to act, a mean may be none of them.

*most probable*: of k joint draws along the model's own order u_1, u_2, ... the one with the highest

$$\log p(a_u \mid s, g) = \sum_t \log p(a_{u_t} \mid s, g, a_{u_{<t}}),$$

in the units of the data and from the same walk as the draws: a log-density where an action is continuous.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.model import AnyOrderModel
from anyorder.model.any_order import Limits
from anyorder.model.likelihood import usual_orders
from anyorder.model.sampling import draws, scored_draws, seeded
from anyorder.protocols import Protocol
from anyorder.query import Chain, Query
from anyorder.support.memory import check_room
from anyorder.support.threads import answering
from anyorder.variables.codecs import Codec, Space
from anyorder.variables.missingness import indicators_first, present_first


def sample(
    model: AnyOrderModel,
    values: Float[Tensor, "rows variables"],
    query: Query,
    seed: int,
    limits: Limits | None,
    chains: dict[Protocol, Chain] | None = None,
) -> NDArray[np.float64]:
    """A joint draw of what is asked in every row.

    ``chains``: those of this query that were made before, by protocol; new ones are added.
    """
    kept = None if model.schema.pairs or model.protocol.random else chains  # a query in stages has several

    def one_by_one(model: AnyOrderModel, values: Tensor, query: Query, generator: torch.Generator) -> Tensor:
        chain = None if kept is None else kept.get(model.protocol)
        if chain is None:
            chain = model.chain(query, generator)
            if kept is not None:
                kept[model.protocol] = chain
        return model.draw(values, chain, generator, limits=limits)

    return draws(model, values, query, seed=seed, sampler=one_by_one, orders=usual_orders(model))


@answering
@torch.no_grad()
def mean(
    model: AnyOrderModel, values: Float[Tensor, "rows variables"], query: Query, limits: Limits | None
) -> NDArray[np.float64]:
    """The model value of the mean of everything asked, and the most probable one of levels."""
    out = values.double().numpy().copy()
    features = model.features_beside(values.to(model.device), query.evidence.to(model.device)).cpu()
    for variable in query.asked.any(dim=0).nonzero()[:, 0].tolist():
        rows = query.asked[:, variable].nonzero()[:, 0]
        law = model.heads.distribution(features[rows, variable], variable)
        codec = model.encoding.codecs[variable]
        if codec.space is Space.LEVELS:
            out[rows.numpy(), variable] = codec.point(law)
            continue
        ends = (-math.inf, math.inf) if limits is None else (float(limits[0][variable]), float(limits[1][variable]))
        out[rows.numpy(), variable] = codec.from_measure(_mean_in_units(codec, law, *ends))
    return out


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
    """The draw of the highest joint density, of ``count`` for every row."""
    check_room("draws", count, len(values) * model.variables, "ask for fewer draws, or fewer states at a time")
    many = Query(query.evidence.repeat_interleave(count, 0), query.asked.repeat_interleave(count, 0))
    drawn, nats = scored(model, values.double().repeat_interleave(count, 0), many, seed, limits)
    best = nats.reshape(-1, count).argmax(axis=1)
    chosen: NDArray[np.float64] = drawn.reshape(len(values), count, -1)[np.arange(len(values)), best]
    return chosen


def scored(
    model: AnyOrderModel, values: Float[Tensor, "rows variables"], query: Query, seed: int, limits: Limits | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draws along the model's own order, and the log-density of each given its evidence, in the units of the data."""
    generator, nats = seeded(model, seed), torch.zeros(len(values), dtype=torch.float64)
    for stage in indicators_first(query, model.schema):
        for now in present_first(stage, model.schema, values):
            values, own = scored_draws(model, values, now, generator, limits=limits)
            nats += own.sum(dim=1)
    drawn, asked = values.numpy(), query.asked.numpy()
    total = nats.numpy()
    for variable in np.flatnonzero(asked.any(axis=0)).tolist():
        slope = model.encoding.codecs[variable].log_slope(drawn[:, variable])
        total = total + np.where(asked[:, variable], slope, 0.0)
    return drawn, total


WAYS = ("sample", "mean", "most probable")
