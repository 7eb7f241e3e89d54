"""The body of a U-Net: pixels in, pixels of the same width out, with shortcuts between equal resolutions.

Down: residual blocks, then half the resolution at twice the width, level by level; then the middle; then up again,
every block joined with what was set aside on the way down. One level keeps the full resolution throughout, as ARDM,
SFARM and MAC do on small pictures.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from anyorder.errors import UserError
from anyorder.networks.parts.unet_parts import Double, Halve, PixelAttention, ResidualBlock

ATTENTION = ("every", "middle", "none")


class Trunk(nn.Module):
    """``blocks`` a level each way. ``attention``: after every block of the lowest level, in the middle, or nowhere."""

    def __init__(
        self, channels: int, *, blocks: int, levels: int, attention: str, embedding: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        if blocks < 1 or levels < 1 or attention not in ATTENTION:
            raise UserError("unet: blocks and levels must be 1 or more, attention every, middle or none")
        depths = [channels * 2**level for level in range(levels)]
        lowest, every = levels - 1, attention == "every"
        down, up, kept = [], [], [channels]
        for level, size in enumerate(depths):
            here: list[nn.Module] = []
            for _ in range(blocks):
                here.append(_Pair(kept[-1], size, embedding, dropout, attend=every and level == lowest))
                kept.append(size)
            if level < lowest:
                here.append(Halve(size, depths[level + 1]))
                kept.append(depths[level + 1])
            down.append(nn.ModuleList(here))
        size = depths[-1]
        self.down = nn.ModuleList(down)
        self.middle_first = ResidualBlock(size, size, embedding, dropout)
        self.middle_attention = PixelAttention(size) if attention != "none" else None
        self.middle_second = ResidualBlock(size, size, embedding, dropout)
        for level in range(lowest, -1, -1):
            here = []
            for _ in range(blocks + 1):
                here.append(
                    _Pair(size + kept.pop(), depths[level], embedding, dropout, attend=every and level == lowest)
                )
                size = depths[level]
            if level > 0:
                here.append(Double(size, depths[level - 1]))
                size = depths[level - 1]
            up.append(nn.ModuleList(here))
        self.up = nn.ModuleList(up)

    @property
    def blocks(self) -> list[nn.Module]:
        """The residual blocks, with the attention behind them."""
        return [part for part in self.modules() if isinstance(part, _Pair)] + [self.middle_first, self.middle_second]

    def forward(
        self, pixels: Float[Tensor, "batch channels height row"], embedding: Float[Tensor, "batch embedding"]
    ) -> Float[Tensor, "batch channels height row"]:
        aside = [pixels]
        for level in self.down:
            for block in level:  # type: ignore[attr-defined]
                pixels = block(pixels, embedding) if isinstance(block, _Pair) else block(pixels)
                aside.append(pixels)
        pixels = self.middle_first(pixels, embedding)
        if self.middle_attention is not None:
            pixels = self.middle_attention(pixels)
        pixels = self.middle_second(pixels, embedding)
        for level in self.up:
            for block in level:  # type: ignore[attr-defined]
                if isinstance(block, _Pair):
                    pixels = block(torch.cat([pixels, aside.pop()], dim=1), embedding)
                else:
                    pixels = block(pixels, tuple(aside[-1].shape[-2:]))
        return pixels


class _Pair(nn.Module):
    """A residual block, and attention behind it where it is wanted."""

    def __init__(self, entering: int, leaving: int, embedding: int, dropout: float, *, attend: bool) -> None:
        super().__init__()
        self.block = ResidualBlock(entering, leaving, embedding, dropout)
        self.attention = PixelAttention(leaving) if attend else None

    def forward(self, pixels: Tensor, embedding: Tensor) -> Tensor:
        pixels = self.block(pixels, embedding)
        return pixels if self.attention is None else self.attention(pixels)
