"""The drawing loop: one joint draw of what is asked for every row, by any sampler, under any seed.

A *sampler* says how the asked variables of one batch are drawn: one by one along the model's chain (the model's own
distribution), drafted and checked (the same distribution, :mod:`anyorder.model.speculative`), or several a call (not
quite, :mod:`anyorder.model.few_steps`). The loop cuts the rows to what fits into memory, draws indicators of missing
cells before the cells, and gives one generator to all: orders and draws both follow the seed. Where likelihoods are
means over several orders (:mod:`anyorder.model.likelihood`), each row is drawn along one of them, whichever.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from anyorder.model.any_order import AnyOrderModel, Limits, Score, row_chunks
from anyorder.model.likelihood import along, order_protocols
from anyorder.query import Query
from anyorder.support.advance import tracked
from anyorder.support.checks import checked_seed
from anyorder.support.threads import answering
from anyorder.variables.missingness import indicators_first, present_first


class Sampler(Protocol):
    """Draws the asked variables of one batch."""

    def __call__(
        self, model: AnyOrderModel, values: Float[Tensor, "batch variables"], query: Query, generator: torch.Generator
    ) -> Float[Tensor, "batch variables"]:
        """``values`` with the asked variables drawn given the evidence; other values are not read."""


def one_by_one(
    model: AnyOrderModel, values: Float[Tensor, "batch variables"], query: Query, generator: torch.Generator
) -> Float[Tensor, "batch variables"]:
    """One variable a network call, along the model's own chain."""
    return model.draw(values, model.chain(query, generator), generator)


@answering
@torch.no_grad()
def draws(
    model: AnyOrderModel,
    values: Float[Tensor, "rows variables"],
    query: Query,
    *,
    seed: int = 0,
    sampler: Sampler = one_by_one,
    orders: int = 1,
) -> NDArray[np.float64]:
    """One joint draw of the asked variables for every row, in model units; everything else is left as it is.

    With ``orders`` each row is drawn along one of so many, those of which the likelihood is the mean.
    """
    out: NDArray[np.float64] = values.double().numpy().copy()
    generator = seeded(model, seed)
    views = [along(model, protocol) for protocol in order_protocols(model, orders)] if orders > 1 else [model]
    for chunk in tracked(row_chunks(model, len(values)), len(values)):
        for view, rows in _shared_out(views, query.rows(chunk), chunk, generator):
            part = query.rows(rows).to(model.device)
            drawn = values[rows].to(model.device)
            for stage in indicators_first(part, model.schema):
                for now in present_first(stage, model.schema, drawn):
                    drawn = drawn.where(~now.asked, sampler(view, drawn, now, generator))
            out[rows] = np.where(part.asked.cpu().numpy(), drawn.double().cpu().numpy(), out[rows])
    return out


def _shared_out(
    views: list[AnyOrderModel], query: Query, chunk: slice, generator: torch.Generator
) -> Iterator[tuple[AnyOrderModel, Int[Tensor, " rows"] | slice]]:
    """Which rows of a chunk are drawn along which order; where one variable is asked for, there is but one."""
    asked = query.asked.sum(dim=1)
    if not bool(asked.any()):
        return
    if len(views) == 1 or int(asked.max()) == 1:
        yield views[0], chunk
        return
    which = torch.randint(len(views), asked.shape, generator=generator, device=generator.device).cpu()
    for number, view in enumerate(views):
        rows = (which == number).nonzero()[:, 0]
        if len(rows):
            yield view, rows + chunk.start


@answering
@torch.no_grad()
def scored_draws(
    model: AnyOrderModel,
    values: Float[Tensor, "rows variables"],
    query: Query,
    generator: torch.Generator,
    *,
    greedy: bool = False,
    limits: Limits | None = None,
    score: Score | None = None,
) -> tuple[Float[Tensor, "rows variables"], Float[Tensor, "rows variables"]]:
    """A draw (or the most probable level at each step) and the log-probability of each asked variable when chosen.

    ``limits`` and ``score``: as in
    :meth:`AnyOrderModel.scored_draw <anyorder.model.any_order.AnyOrderModel.scored_draw>`.
    """
    out, nats = values.double().clone(), torch.zeros(values.shape, dtype=torch.float64)
    for rows in row_chunks(model, len(values)):
        part = query.rows(rows).to(model.device)
        chain = model.chain(part, generator)
        drawn, own = model.scored_draw(
            values[rows].to(model.device), chain, generator, greedy=greedy, limits=limits, score=score
        )
        out[rows] = drawn.double().cpu().where(part.asked.cpu(), out[rows])
        nats[rows] = own.cpu()
    return out, nats


def seeded(model: AnyOrderModel, seed: int) -> torch.Generator:
    """A generator on the model's device."""
    return torch.Generator(device=model.device).manual_seed(checked_seed(seed))
