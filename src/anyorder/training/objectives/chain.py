"""``chain``: every step of the chain *evidence, then asked* in one pass of a chain network (MAC Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.training.objectives.base import Objective, Scores


@dataclass(frozen=True)
class WholeChain(Objective):
    """Every step of the chain, evidence part and asked part both counted.

    Each step of a drawn chain is walked once, so there is nothing to reweight.
    """

    name: ClassVar[str] = "chain"

    def __post_init__(self) -> None:
        if self.reweight:
            raise UserError("the objective 'chain' counts every step once: leave reweight out, or use 'parallel'")

    def scores(
        self, model: AnyOrderModel, values: Tensor, observed: Tensor, log_det: Tensor, generator: torch.Generator
    ) -> Scores:
        query = self.masking.draw_for(values, generator).among(observed)
        chain = self.protocol.chain(query, generator).whole()
        steps = model.step_log_prob(values, chain)
        shift = log_det.gather(1, chain.order.clamp(min=0))
        return Scores(steps, shift, chain.counted.to(log_det.dtype))
