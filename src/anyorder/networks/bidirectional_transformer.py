"""The bidirectional transformer: the mask network of ARDM and MAC for text.

Every variable is a token: its value where known, a learned "unknown" vector where not. All tokens see each other,
so one pass answers every p(x_i | x_known). The unknown vector is an input only; no probability can go to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.networks.base import MaskNetwork
from anyorder.networks.parts.attention import SIZES, TransformerBlock, begin_blocks, check_heads
from anyorder.networks.parts.ends import Readout, ValueEmbedding
from anyorder.networks.parts.positions import Rotary, check_positions, positions_table


@dataclass(eq=False)
class BidirectionalTransformer(MaskNetwork):
    """All variables beside each other in one pass."""

    name: ClassVar[str] = "bidirectional_transformer"

    width: int = 128
    blocks: int = 4
    heads: int = 4
    dropout: float = 0.0
    positions: str = "learned"

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = SIZES

    def __post_init__(self) -> None:
        super().__post_init__()
        check_heads(self.width, self.heads)
        self.embed = ValueEmbedding(self.layout, self.width)
        self.unknown = nn.Parameter(torch.randn(self.width) * 0.5)
        check_positions(self.positions)
        self.rotary = Rotary(self.layout, self.width // self.heads) if self.positions == "rotary" else None
        if self.rotary is None:
            self.here = positions_table(self.layout, self.width)
        self.trunk = nn.ModuleList(TransformerBlock(self.width, self.heads, self.dropout) for _ in range(self.blocks))
        self.norm = nn.LayerNorm(self.width)
        self.readout = Readout(self.layout, self.width)
        begin_blocks(self.trunk)

    def begin(self, starts: Float[Tensor, "variables width"]) -> None:
        self.readout.begin(starts)

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
