"""``parallel``: the mean over i not in e of log p(x_i | x_e), e from the induced distribution (MAC eq. 7, ARDM eq. 4).

One pass of a mask network, including edges that inference never walks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from anyorder.model import AnyOrderModel
from anyorder.training.induced import Induced
from anyorder.training.objectives.base import Beside, Objective
from anyorder.training.unbiased_edges import unbiased_edges


@dataclass(frozen=True)
class Parallel(Objective):
    """All unknown cells beside each other."""

    name: ClassVar[str] = "parallel"

    def draw(self, model: AnyOrderModel, values: Tensor, observed: Tensor, generator: torch.Generator) -> Beside:
        batch, variables = values.shape
        induced = Induced(self.masking, self.protocol, reweight=self.reweight)
        if model.schema.pairs:
            edges = unbiased_edges(induced.draw(batch, variables, generator), observed, model.schema.partners)
            return Beside(edges.weight.to(values.dtype), edges.known)
        drawn = induced.draw(batch, variables, generator, None if bool(observed.all()) else observed)
        known = drawn.known
        # A row of which the masking can ask nothing (its target is missing, say) does not count.
        asked = (observed & ~known & (drawn.next >= 0)[:, None]).to(values.dtype)
        # Each row counts once, whatever the number of its unknown cells: the 1 / (N - |e|) of eq. 7.
        weight = asked / asked.sum(dim=1, keepdim=True).clamp(min=1)
        return Beside(weight, known)
