r"""Evidence that is a range: truncated draws with weights, no rejection.

The variables of a range event R are drawn one after another, after the exact evidence e and in the protocol's order,
each from its exact one-dimensional conditional *cut to its range*. With the masses before the cut as weight,

$$w = \prod_r P(x_r \in R_r \mid x_e, x_{<r}), \qquad E[w] = P(R \mid e), \qquad
E[w\, g(x_R)] = P(R \mid e)\, E[g(x_R) \mid e, R],$$

so the mean weight is an unbiased estimate of P(R | e), and answers under R are weighted means. However rare the event,
every draw lies inside it. With one range variable, all weights are equal and P(R | e) is exact.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.region import Region
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel, row_chunks
from anyorder.model.likelihood import along, order_protocols, usual_orders
from anyorder.query import Chain, Query
from anyorder.questions.estimate import Estimate, mean_of
from anyorder.support.advance import checked
from anyorder.support.randomness import drawn_seed
from anyorder.support.threads import answering


@dataclass(frozen=True, repr=False)
class Particles:
    """Weighted draws: rows of model values in which ``known`` holds the exact evidence and the drawn variables."""

    values: Float[Tensor, "draws variables"]
    known: Bool[Tensor, " variables"]
    log_weights: Float[Tensor, " draws"]

    def __repr__(self) -> str:
        return f"Particles({len(self.values)} weighted draws of {int(self.known.sum())} variables)"

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights relative to the greatest one."""
        top = self.log_weights.max()
        return np.asarray((self.log_weights - top).exp().numpy())

    @property
    def effective(self) -> float:
        """How many equally weighted draws these are worth: (sum w)^2 / sum w^2."""
        weights = self.weights
        return float(weights.sum() ** 2 / (weights**2).sum())

    def possible(self, said: str) -> Particles:
        """These, if the event can happen at all."""
        if not bool((self.log_weights > -np.inf).any()):
            raise UserError(f"the event {said} has probability 0 under the model, so nothing can be said given it")
        return self

    def probability(self, method: str) -> Estimate:
        """The probability of the event they were drawn in: the mean weight."""
        top = float(self.log_weights.max())
        if top == -np.inf:
            return Estimate(0.0)
        mean = mean_of(self.weights, method)
        return Estimate(mean.value * float(np.exp(top)), mean.standard_error * float(np.exp(top)), mean.method)


@torch.no_grad()
def ranged_draws(
    model: AnyOrderModel,
    values: Float[Tensor, "rows variables"],
    known: Bool[Tensor, " variables"],
    regions: Mapping[int, Region],
    generator: torch.Generator,
    *,
    draw_last: bool = True,
) -> Particles:
    """Each row of ``values`` with the variables of ``regions`` drawn inside them, and the log weights of the rows.

    Without ``draw_last`` the last variable is only weighed: enough for the probability of the event.
    """
    values = values.double()
    log_weights = torch.zeros(len(values), dtype=torch.float64)
    asked = torch.zeros_like(known)
    asked[list(regions)] = True
    if not regions:
        return Particles(values, known, log_weights)
    out = values.clone()
    views = [model]
    if len(regions) > 1:  # along the orders of which a likelihood is the mean, some rows each
        views = [along(model, protocol) for protocol in order_protocols(model, usual_orders(model))]
    which = torch.arange(len(values)) % len(views)
    for number, view in enumerate(views):
        mine = (which == number).nonzero()[:, 0]
        for chunk in row_chunks(model, len(mine)):
            rows = mine[chunk]
            query = Query(known.expand(len(rows), -1).to(model.device), asked.expand(len(rows), -1).to(model.device))
            chain = view.chain(query, order_generator(model.device, generator))
            out[rows], log_weights[rows] = _walk(view, values[rows], chain, regions, generator, draw_last)
    return Particles(out, known | asked, log_weights)


@answering
def _walk(
    model: AnyOrderModel,
    values: Tensor,
    chain: Chain,
    regions: Mapping[int, Region],
    generator: torch.Generator,
    draw_last: bool,
) -> tuple[Tensor, Tensor]:
    values = values.clone()
    log_weights = torch.zeros(len(values), dtype=torch.float64)
    evidence = values.to(model.device).where(chain.evidence, 0.0)
    walk = model.network.walk(evidence, chain)
    alike = bool((evidence == evidence[:1]).all() and (chain.order == chain.order[:1]).all())
    first = torch.zeros(1, dtype=torch.long, device=model.device)
    for step in range(chain.steps):
        checked()
        target = chain.order[:, step].cpu()
        # Before the first draw all rows may be the same: then one is asked for all.
        features = walk.features(first if alike and step == 0 else None).double().cpu()
        features = features.expand(len(target), -1)
        last = step == chain.steps - 1
        for variable in target.unique().tolist():  # one, unless the order is drawn for each row
            rows = (target == variable).nonzero()[:, 0]
            own = features if len(rows) == len(features) else features[rows]
            distribution = doubled(model, one_where_alike(own), variable)
            region = regions[variable]
            log_weights[rows] += region.log_mass(distribution)
            if draw_last or not last:
                level = torch.rand(len(rows), generator=generator, dtype=torch.float64)
                values[rows, variable] = region.draw(distribution, level)
        if not last:
            walk.tell(values.gather(1, target[:, None])[:, 0].to(model.device))
    return values, log_weights


def one_where_alike(features: Float[Tensor, "rows width"]) -> Float[Tensor, "some width"]:
    """One row where all are the same, as they are before the first draw: one distribution then serves every draw."""
    # Most that differ at all differ from the very next.
    alike = all(bool((part == features[:1]).all()) for part in (features[:2], features))
    return features[:1] if alike else features


@answering
@torch.no_grad()
def members(model: AnyOrderModel, particles: Particles, variable: int) -> Distribution:
    """p(variable | each row), a batch in float64."""
    known = particles.known.to(model.device)
    parts = []
    for rows in row_chunks(model, len(particles.values)):
        values = particles.values[rows].to(model.device)
        features = model.features_of(values, known.expand(len(values), -1), variable)
        parts.append(features.double().cpu())
    return doubled(model, torch.cat(parts), variable)


def doubled(model: AnyOrderModel, features: Float[Tensor, "rows width"], variable: int) -> Distribution:
    """The head's distribution in double precision: a mass of 1e-9 is lost in the rounding of single."""
    head = model.heads.of(variable)
    if any(parameter.dtype != torch.float64 for parameter in head.parameters()):
        head = copy.deepcopy(head).double()
    return head(features.double()[..., : head.size])  # type: ignore[no-any-return]


def order_generator(device: torch.device, generator: torch.Generator) -> torch.Generator:
    """A generator for the order of the chains; drawn from the one given, which stays on the CPU."""
    return torch.Generator(device=device).manual_seed(drawn_seed(generator))
