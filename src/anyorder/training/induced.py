"""The known sets that inference walks through: the induced distribution D(M, w) of MAC, for mask networks.

Answering a query u drawn from a masking M, in the order that a protocol w gives it, passes through |u| known sets.
Taking one of them uniformly gives the law that MAC trains on (its appendix B),

    D(e) = sum_u M(u) / |u| * P_w(the first |e| variables of u are e),    0 <= |e| < |u|        (prefix="uniform")

while counting every step of every path alike gives the edge frequencies of eq. 6, D(i, e) proportional to
sum_u M(u) P_w(path of u has edge (i, e))  (prefix="visits"). Cardinality reweighting turns either into

    D_CR(e) proportional to (1 + |e|) D(e)                                                       (MAC eq. 7)

MAC draws D_CR by sampling a hundred times too many sets and resampling. But all that the weight asks of a query is
its number of known variables k and of asked ones T: the stop t < T has weight 1 + k + t, which is drawn in closed form,
and the query as a whole has weight T (1 + k + (T - 1) / 2), over T if prefixes are uniform. If M depends on the size of
a query only, drawing T in proportion to P(T) times that weight and then a uniform set of this size is exact and costs
one draw. Queries of any other masking are accepted or rejected by that weight, which is exact too, once accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.masking.base import Masking
from anyorder.masking.cardinality import masks_of_size
from anyorder.masking.known_context import spread
from anyorder.protocols.base import Protocol
from anyorder.protocols.canonical import Canonical
from anyorder.query import PAD, Chain, Query, members


@dataclass(frozen=True)
class Known:
    """A batch of edges (next, known): the known sets, and for each the variable whose turn it is (or -1)."""

    known: Bool[Tensor, "batch variables"]
    next: Int[Tensor, " batch"]


@dataclass(frozen=True)
class Induced:
    """D(M, w), or D_CR(M, w) with ``reweight``.

    Queries that ask nothing walk nothing: all laws are conditional on at least one asked variable.
    ``resample`` is the most proposals a row gets where reweighting has to accept and reject; a row that none of them
    settled keeps the one that sampling-importance-resampling among them would have picked.
    """

    masking: Masking
    protocol: Protocol
    reweight: bool = True
    resample: int = 100
    prefix: Literal["uniform", "visits"] = "uniform"

    def __post_init__(self) -> None:
        if self.prefix not in ("uniform", "visits"):
            raise UserError(f"induced masks: prefix must be 'uniform' or 'visits', got {self.prefix!r}")
        if not isinstance(self.resample, int) or self.resample < 1:
            raise UserError(f"induced masks: resample must be a whole number from 1 up, got {self.resample!r}")

    def is_exact(self, variables: int) -> bool:
        """Whether fully observed rows are drawn without any resampling."""
        plain = self.prefix == "uniform" and not self.reweight
        rest = variables - len(self.masking.always_known)
        return plain or self.masking.beyond_context.cardinalities(rest) is not None

    def draw(
        self,
        batch: int,
        variables: int,
        generator: torch.Generator,
        observed: Bool[Tensor, "batch variables"] | None = None,
    ) -> Known:
        """One edge a row, on the generator's device.

        ``observed`` tells which cells exist: the others are never known and never next, and the law of a row is
        that over queries about its own cells. A row of which nothing can be asked knows nothing and has next -1.
        """
        if observed is not None and observed.shape != (batch, variables):
            raise ValueError(f"observed must be [{batch}, {variables}], got {tuple(observed.shape)}")
        if context := self.masking.always_known:
            return self._given(context, batch, variables, generator, observed)
        query = self._query(batch, variables, generator, observed)
        stop = self._stop(query.evidence.sum(dim=1), query.asked.sum(dim=1), generator)
        return _cut(self.protocol.chain(query, generator), stop)

    def _given(
        self,
        context: tuple[int, ...],
        batch: int,
        variables: int,
        generator: torch.Generator,
        observed: Bool[Tensor, "batch variables"] | None,
    ) -> Known:
        """The law about the other variables, drawn as if there were no context, and then all of that known."""
        rest = [index for index in range(variables) if index not in set(context)]
        own = replace(self, masking=self.masking.beyond_context)
        seen = None if observed is None else observed[:, rest]
        query = own._query(batch, len(rest), generator, None if seen is None or bool(seen.all()) else seen)
        stop = self._stop(query.evidence.sum(dim=1), query.asked.sum(dim=1), generator)
        whole = Query(spread(query.evidence, rest, variables), spread(query.asked, rest, variables))
        drawn = _cut(self.protocol.chain(whole, generator), stop)
        known = drawn.known.clone()
        known[:, list(context)] = True
        return Known(known if observed is None else known & observed.to(known.device), drawn.next)

    def _query(self, batch: int, variables: int, generator: torch.Generator, observed: Tensor | None) -> Query:
        sizes = None if observed is not None else self.masking.cardinalities(variables)
        if sizes is not None:
            return self._by_size(sizes, batch, variables, generator)
        return self._by_acceptance(batch, variables, generator, observed)

    def _weight(self, known: Tensor, asked: Tensor) -> Float[Tensor, " batch"]:
        """How often a query with so many known and asked variables is to be used, relative to how often it is drawn."""
        weight = asked.double() if self.prefix == "visits" else (asked > 0).double()
        return weight * (1 + known + (asked - 1) / 2) if self.reweight else weight

    def _most(self, present: Tensor) -> Float[Tensor, " batch"]:
        """The greatest weight of any query about ``present`` variables: one asked last, or all asked from nothing."""
        return torch.maximum(
            self._weight(present - 1, torch.ones_like(present)), self._weight(torch.zeros_like(present), present)
        )

    def _by_size(self, sizes: Tensor, batch: int, variables: int, generator: torch.Generator) -> Query:
        counts = torch.arange(variables + 1)
        law = sizes.cpu() * self._weight(torch.zeros_like(counts), counts)
        if batch == 0 or law.sum() == 0:
            return Query.marginal(torch.zeros(batch, variables, dtype=torch.bool, device=generator.device))
        chosen = torch.multinomial(law.to(generator.device), batch, replacement=True, generator=generator)
        return Query.marginal(masks_of_size(chosen, variables, generator))

    def _by_acceptance(self, batch: int, variables: int, generator: torch.Generator, observed: Tensor | None) -> Query:
        device = generator.device
        everything = torch.ones(batch, variables, dtype=torch.bool, device=device)
        observed = everything if observed is None else observed.to(device)
        most = self._most(observed.sum(dim=1))
        evidence, asked = torch.zeros_like(everything), torch.zeros_like(everything)
        seen = torch.zeros(batch, dtype=torch.float64, device=device)
        pending = observed.any(dim=1).nonzero().squeeze(1)
        for _ in range(self.resample):
            if len(pending) == 0:
                break
            proposal = self.masking.draw(len(pending), variables, generator).among(observed[pending])
            weight = self._weight(proposal.evidence.sum(dim=1), proposal.asked.sum(dim=1))
            seen[pending] += weight
            luck = torch.rand(2, len(pending), generator=generator, device=device, dtype=torch.float64)
            accepted = luck[0] * most[pending] < weight
            # Replacing with probability weight / (all weight so far) leaves each proposal kept in proportion to its
            # weight: importance resampling in one sweep, for the rows that end without an acceptance.
            kept = accepted | (luck[1] * seen[pending] < weight)
            evidence[pending[kept]] = proposal.evidence[kept]
            asked[pending[kept]] = proposal.asked[kept]
            pending = pending[~accepted]
        return Query(evidence, asked)

    def _stop(self, known: Tensor, asked: Tensor, generator: torch.Generator) -> Int[Tensor, " batch"]:
        """Where on its path each query stops: uniform on 0..asked-1, or in proportion to 1 + known + stop."""
        luck = torch.rand(len(asked), generator=generator, device=generator.device, dtype=torch.float64)
        if not self.reweight:
            stop = luck * asked
        else:
            # The weights of the first s stops add up to s^2 / 2 + s (known + 1/2): invert that at luck * total.
            slope = known + 0.5
            total = asked * (asked / 2 + slope)
            stop = (slope**2 + 2 * luck * total).sqrt() - slope
        return stop.long().clamp(max=(asked - 1).clamp(min=0))


def _cut(chain: Chain, stop: Int[Tensor, " batch"]) -> Known:
    """The edge at which each chain stands after ``stop`` steps."""
    if chain.steps == 0:
        return Known(chain.evidence, torch.full_like(stop, PAD))
    before = torch.arange(chain.steps, device=stop.device) < stop[:, None]
    known = chain.evidence | members(chain.order.where(before, PAD), chain.variables)
    return Known(known, chain.order.gather(1, stop[:, None]).squeeze(1))


def edge_weights(
    known: Bool[Tensor, "batch variables"], protocol: Canonical, context: Sequence[int] = ()
) -> Float[Tensor, "batch variables"]:
    """D(i | e): how often each variable comes next after each known set, under M_card and a canonical order.

    The edge (i, e) lies on the path of u if u is e, i and anything ranked above i. Summing M_card over
    those u with 1 / C(N, k) = (N + 1) B(k + 1, N - k + 1) leaves, for rank i from 0 and i > max(e),

        D(i, e) proportional to (N + 1) / (N (i + 2) C(i + 1, |e| + 1))

    and zero for other i. With known sets drawn from ``Induced(..., reweight=False, prefix="visits")`` these weights
    make the parallel objective count exactly the edges that inference walks (MAC eq. 6). Rows sum to one, or to zero
    where the last variable is known and nothing comes next. Variables of the ``context``, which are always known, have
    no weight, and the law is that of the others.
    """
    variables = known.shape[1]
    rank = protocol.ranks(variables).to(known.device)
    if context:
        rest = [index for index in range(variables) if index not in set(context)]
        order = Canonical(order=tuple(rank[rest].argsort().tolist()))
        weights = torch.zeros(known.shape, device=known.device)
        weights[:, rest] = edge_weights(known[:, rest], order)
        return weights
    greatest = torch.where(known, rank, -1).amax(dim=1, keepdim=True)
    size = known.sum(dim=1, keepdim=True).double()
    position = rank.double()
    # log of (i + 2) C(i + 1, |e| + 1); in logarithms, since C overflows long before an image is that small.
    walked = rank > greatest
    log_cost = (
        (position + 2).log()
        + torch.lgamma(position + 2)
        - torch.lgamma(size + 2)
        - torch.lgamma((position - size + 1).clamp(min=1))
    )
    score = (-log_cost).masked_fill(~walked, -torch.inf)
    # A row with nothing to walk is all -inf, whose softmax is not a number; it becomes zero.
    weights = torch.softmax(score, dim=1)
    return torch.where(walked, weights, 0.0).to(torch.get_default_dtype())
