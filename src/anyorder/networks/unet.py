"""The U-Net: the mask network of pictures (ARDM, SFARM appendix A.2, MAC section 4.2).

The known picture and its mask enter through 1 x 1 maps, three quarters of the channels for the picture and one quarter
for the mask, and go through residual blocks on the way down and, joined with what was set aside there, on the way up.
Every block hears of the step (how much of the picture is known) and, if the model was trained in several masking modes,
of the mode. One level keeps the full resolution throughout, as the papers do on 28 x 28 and 32 x 32; more levels halve
it in between, which costs less. A value of an unknown pixel is zeroed before anything sees it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.errors import UserError
from anyorder.networks.base import FARTHEST, MaskNetwork
from anyorder.networks.unet_parts import Double, Halve, PixelAttention, ResidualBlock, StepEmbedding, norm


@dataclass(eq=False)
class UNet(MaskNetwork):
    """``channels`` wide, ``blocks`` residual blocks a level each way, ``levels`` resolutions, each twice as deep.

    ``attention``: pixels attend to each other at the lowest resolution, after every block there (``"every"``), in the
    middle alone (``"middle"``) or nowhere (``"none"``). ``modes``: how many masking modes it can be told of. ``entry``:
    the width at which picture and mask come in, ``channels`` if it is 0.
    """

    name: ClassVar[str] = "unet"

    channels: int = 32
    blocks: int = 2
    levels: int = 1
    attention: str = "middle"
    dropout: float = 0.0
    modes: int = 0
    entry: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        grid = self.layout.grid
        if len(grid) not in (2, 3):
            raise UserError(f"a U-Net needs variables on a grid of pixels, height x width (x channels), got {grid}")
        if self.channels < 4 or self.channels % 4 or self.entry % 4 or self.entry < 0:
            raise UserError(f"unet: channels and entry must be multiples of 4, got {self.channels} and {self.entry}")
        if self.blocks < 1 or self.levels < 1 or self.attention not in ("every", "middle", "none"):
            raise UserError("unet: blocks and levels must be 1 or more, attention every, middle or none")
        if min(grid[:2]) < 2 ** (self.levels - 1):
            raise UserError(f"unet: a picture of {grid[0]} x {grid[1]} cannot be halved {self.levels - 1} times")
        self.planes = grid[2] if len(grid) == 3 else 1
        self.mode: int | None = None
        depth, told = self.channels, 4 * self.channels
        entry = self.entry or depth
        self.enter_picture = nn.Conv2d(self.planes, entry - entry // 4, 1)
        self.enter_mask = nn.Conv2d(self.planes, entry // 4, 1)
        self.gather = nn.Conv2d(entry, depth, 1) if entry != depth else nn.Identity()
        self.step = StepEmbedding(depth)
        # The last row stands for no mode in particular, which is what most questions come with.
        self.mode_table = nn.Embedding(self.modes + 1, told) if self.modes else None
        depths = [depth * 2**level for level in range(self.levels)]
        lowest, every = self.levels - 1, self.attention == "every"
        down, up, kept = [], [], [depth]
        for level, size in enumerate(depths):
            here = []
            for _ in range(self.blocks):
                here.append(_Pair(kept[-1], size, told, self.dropout, attend=every and level == lowest))
                kept.append(size)
            down.append(nn.ModuleList(here))
            if level < lowest:
                down.append(nn.ModuleList([Halve(size, depths[level + 1])]))
                kept.append(depths[level + 1])
        self.down = nn.ModuleList(down)
        size = depths[-1]
        self.middle_first = ResidualBlock(size, size, told, self.dropout)
        self.middle_attention = PixelAttention(size) if self.attention != "none" else None
        self.middle_second = ResidualBlock(size, size, told, self.dropout)
        for level in range(lowest, -1, -1):
            here = []
            for _ in range(self.blocks + 1):
                here.append(
                    _Pair(size + kept.pop(), depths[level], told, self.dropout, attend=every and level == lowest)
                )
                size = depths[level]
            up.append(nn.ModuleList(here))
            if level > 0:
                up.append(nn.ModuleList([Double(size, depths[level - 1])]))
                size = depths[level - 1]
        self.up = nn.ModuleList(up)
        self.norm = norm(depth)
        self.leave = nn.Conv2d(depth, self.planes * self.layout.width, 1)
        nn.init.zeros_(self.leave.weight)
        scale = torch.tensor([2 / (levels - 1) if levels > 1 else 0.0 for levels in self.layout.levels])
        self.scale: Tensor
        self.coded: Tensor
        self.register_buffer("scale", scale, persistent=False)
        self.register_buffer("coded", torch.tensor(self.layout.levels) > 0, persistent=False)

    def begin(self, starts: Float[Tensor, "variables width"]) -> None:
        # One bias for all pixels: that of the first one, since pixels share their head.
        assert self.leave.bias is not None
        with torch.no_grad():
            self.leave.bias.copy_(starts[: self.planes].flatten())

    @contextmanager
    def told(self, mode: int | None) -> Iterator[None]:
        """Within, all questions are asked in this masking mode."""
        if mode is not None and not 0 <= mode < self.modes:
            raise UserError(f"this network knows the masking modes 0 to {self.modes - 1}, got {mode}")
        before, self.mode = self.mode, mode
        try:
            yield
        finally:
            self.mode = before

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
        *,
        modes: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        """``modes``: the masking mode of each row, ``self.modes`` for none; all are in ``self.mode`` without it."""
        dtype = self.leave.weight.dtype
        # Codes 0..K-1 become -1..1; real values are standardised already.
        picture = torch.where(self.coded, values * self.scale - 1, values.clamp(-FARTHEST, FARTHEST))
        picture = picture.where(known, 0.0).to(dtype)
        pixels = torch.cat(
            [self.enter_picture(self._planes(picture)), self.enter_mask(self._planes(known.to(dtype)))], dim=1
        )
        pixels = self.gather(pixels)
        told = self._embedding(known, modes)
        aside = [pixels]
        for stage in self.down:
            for block in stage:  # type: ignore[attr-defined]
                pixels = block(pixels, told) if isinstance(block, _Pair) else block(pixels)
                aside.append(pixels)
        pixels = self.middle_first(pixels, told)
        if self.middle_attention is not None:
            pixels = self.middle_attention(pixels)
        pixels = self.middle_second(pixels, told)
        for stage in self.up:
            for block in stage:  # type: ignore[attr-defined]
                if isinstance(block, _Pair):
                    pixels = block(torch.cat([pixels, aside.pop()], dim=1), told)
                else:
                    pixels = block(pixels, tuple(aside[-1].shape[-2:]))
        out = self.leave(nn.functional.silu(self.norm(pixels)))
        # [batch, planes * width, height, row] -> [batch, variables, width]; channels of a pixel are neighbours.
        return out.unflatten(1, (self.planes, -1)).permute(0, 3, 4, 1, 2).flatten(1, 3)  # type: ignore[no-any-return]

    def _planes(self, flat: Float[Tensor, "batch variables"]) -> Float[Tensor, "batch planes height width"]:
        height, width = self.layout.grid[:2]
        return flat.view(-1, height, width, self.planes).permute(0, 3, 1, 2).contiguous()

    def _embedding(self, known: Tensor, modes: Tensor | None) -> Float[Tensor, "batch embedding"]:
        share = known.to(self.leave.weight.dtype).mean(dim=1)
        told: Tensor = self.step(1000 * share)  # as many steps as DDPM has, whatever the size of the picture
        if self.mode_table is None:
            return told
        if modes is None:
            modes = torch.full((len(known),), self.modes if self.mode is None else self.mode, device=known.device)
        out: Tensor = told + self.mode_table(modes)
        return out


class _Pair(nn.Module):
    """A residual block, and attention behind it where it is wanted."""

    def __init__(self, entering: int, leaving: int, told: int, dropout: float, *, attend: bool) -> None:
        super().__init__()
        self.block = ResidualBlock(entering, leaving, told, dropout)
        self.attention = PixelAttention(leaving) if attend else None

    def forward(self, pixels: Tensor, told: Tensor) -> Tensor:
        pixels = self.block(pixels, told)
        return pixels if self.attention is None else self.attention(pixels)
