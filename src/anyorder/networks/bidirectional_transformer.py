"""The bidirectional transformer: the mask network of ARDM and MAC for text.

Every variable is a token: its value where known, a learned "unknown" vector where not. All tokens see each other,
so one pass answers every p(x_i | x_known). The unknown vector is an input only; no probability can go to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.networks.base import MaskNetwork
from anyorder.networks.parts.transformer import Transformer


@dataclass(eq=False)
class BidirectionalTransformer(Transformer, MaskNetwork):
    """All variables beside each other in one pass."""

    name: ClassVar[str] = "bidirectional_transformer"

    def add_inputs(self) -> None:
        self.unknown = self.vector()
        if self.rotary is None:
            self.here = self.table()

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        everyone = torch.arange(self.layout.variables, device=values.device).expand_as(known)
        held = self.embed(everyone, values.where(known, 0.0))
        tokens = torch.where(known[..., None], held, self.unknown)
        turns = None
        if self.rotary is None:
            tokens = tokens + self.here.weight
        else:
            turns = (self.rotary(everyone[:1]),) * 2
        for block in self.trunk:
            tokens = block(tokens, turns=turns)
        return self.readout.each(self.norm(tokens))
