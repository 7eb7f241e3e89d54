"""What both transformers are made of: embedded values, positions, a trunk of blocks, one readout per group."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from anyorder.networks.base import Network
from anyorder.networks.parts.attention import SIZES, TransformerBlock, begin_blocks, check_heads
from anyorder.networks.parts.ends import Readout, ValueEmbedding
from anyorder.networks.parts.positions import Rotary, check_positions, positions_table


@dataclass(eq=False)
class Transformer(Network):
    """``width`` and ``heads`` of attention, so many ``blocks``; ``positions``: ``learned`` or ``rotary``.

    A final subclass adds its inputs: the vector that stands where no value does, and its tables of learned positions.
    """

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
        check_positions(self.positions)
        self.rotary = Rotary(self.layout, self.width // self.heads) if self.positions == "rotary" else None
        self.add_inputs()
        self.trunk = nn.ModuleList(TransformerBlock(self.width, self.heads, self.dropout) for _ in range(self.blocks))
        self.norm = nn.LayerNorm(self.width)
        self.readout = Readout(self.layout, self.width)
        begin_blocks(self.trunk)

    @property
    def repeated(self) -> Sequence[nn.Module]:
        return list(self.trunk)

    @abstractmethod
    def add_inputs(self) -> None:
        """Make the parameters that stand beside the embedded values."""

    def vector(self) -> nn.Parameter:
        """A vector that stands where there is no value."""
        return nn.Parameter(torch.randn(self.width) * 0.5)

    def table(self) -> nn.Embedding:
        """A learned vector for every position."""
        return positions_table(self.layout, self.width)

    def begin(self, starts: Float[Tensor, "variables width"]) -> None:
        self.readout.begin(starts)
