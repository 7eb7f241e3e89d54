"""``edges``: the pass of ``parallel``, but each edge (i, e) counted as often as inference walks it (MAC eq. 6).

By closed form under M_card and a canonical order, by the one edge that was drawn otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from anyorder.masking import Cardinality
from anyorder.model import AnyOrderModel
from anyorder.protocols import Canonical
from anyorder.training.induced import Induced, edge_weights
from anyorder.training.objectives.base import Beside, Objective
from anyorder.training.unbiased_edges import unbiased_edges


@dataclass(frozen=True)
class Edges(Objective):
    """One pass, its edges weighted as inference walks them: exactly MAC eq. 6 without ``reweight``."""

    name: ClassVar[str] = "edges"

    def draw(self, model: AnyOrderModel, values: Tensor, observed: Tensor, generator: torch.Generator) -> Beside:
        batch, variables = values.shape
        complete = bool(observed.all())
        induced = Induced(self.masking, self.protocol, reweight=self.reweight, prefix="visits")
        paired = bool(model.schema.pairs)
        drawn = induced.draw(batch, variables, generator, None if complete or paired else observed)
        known = drawn.known
        cardinal, context = self.masking.beyond_context == Cardinality(), self.masking.always_known
        if complete and not paired and cardinal and isinstance(self.protocol, Canonical):
            weight = edge_weights(known, self.protocol, context).to(values.dtype)
        else:
            weight = torch.zeros_like(values)
            row = (drawn.next >= 0).nonzero()[:, 0]
            weight[row, drawn.next[row]] = 1.0
        if paired:
            edges = unbiased_edges(drawn, observed, model.schema.partners)
            known, weight = edges.known, weight * (edges.weight > 0)
        return Beside(weight, known)
