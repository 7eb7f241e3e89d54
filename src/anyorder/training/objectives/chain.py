"""``chain``: every step of the chain *evidence, then asked* in one pass of a chain network (MAC Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.query import Chain, Query
from anyorder.training.objectives.base import Drawn, Objective, Scores


@dataclass(frozen=True)
class Along(Drawn):
    """Every step of one chain a row."""

    chain: Chain

    def rows(self, index: Tensor | slice) -> Self:
        return replace(self, weight=self.weight[index], chain=self.chain.rows(index))

    def scores(self, model: AnyOrderModel, values: Tensor, log_det: Tensor) -> Scores:
        shift = log_det.gather(1, self.chain.order.clamp(min=0))
        return Scores(model.step_log_prob(values, self.chain), shift, self.weight)


@dataclass(frozen=True)
class WholeChain(Objective):
    """Every step of the chain, evidence part and asked part both counted, but no context.

    Each step of a drawn chain is walked once, so there is nothing to reweight.
    """

    name: ClassVar[str] = "chain"

    def __post_init__(self) -> None:
        if self.reweight:
            raise UserError("the objective 'chain' counts every step once: leave reweight out, or use 'parallel'")

    def draw(self, model: AnyOrderModel, values: Tensor, observed: Tensor, generator: torch.Generator) -> Along:
        query = self.masking.draw_for(values, generator).among(observed)
        if context := self.masking.always_known:
            chain = self._after_context(query, context, generator)
        else:
            chain = self.protocol.chain(query, generator).whole()
        return Along(chain.counted.to(values.dtype), chain)

    def _after_context(self, query: Query, context: tuple[int, ...], generator: torch.Generator) -> Chain:
        """The context is read first and does not count; then evidence and asked do."""
        first = torch.zeros_like(query.evidence)
        first[:, list(context)] = True
        path = self.protocol.chain(Query(query.evidence & ~first, query.asked), generator).whole()
        known = Query(query.evidence & first, torch.zeros_like(first))
        return Chain(self.protocol.chain(known, generator).prefix, path.order, query.variables)
