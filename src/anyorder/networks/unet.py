"""The U-Net: the mask network of pictures (ARDM, SFARM appendix A.2, MAC section 4.2).

The known picture and its mask enter pixel by pixel, or in small squares of pixels, three quarters of the channels for
the picture and one quarter for the mask, and go through the trunk (:mod:`anyorder.networks.parts.unet_trunk`). Every
block is conditioned on the step (how much of the picture is known) and, if the model was trained in several masking
modes, on the mode. A value of an unknown pixel is zeroed before anything sees it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.errors import UserError
from anyorder.networks.base import FARTHEST, MaskNetwork
from anyorder.networks.parts.colour import CHANNELS, PER_COMPONENT, coupled
from anyorder.networks.parts.unet_parts import FromPatches, StepEmbedding, ToPatches, norm
from anyorder.networks.parts.unet_trunk import Trunk
from anyorder.support.checks import check_fields


@dataclass(eq=False)
class UNet(MaskNetwork):
    """``channels`` wide, ``blocks`` residual blocks a level each way, ``levels`` resolutions, each twice as deep.

    ``attention``: pixels attend to each other at the lowest resolution, after every block there (``"every"``), in the
    middle alone (``"middle"``) or nowhere (``"none"``). ``modes``: how many masking modes it can be asked in.
    ``entry``: the width at which picture and mask come in, ``channels`` if it is 0. ``coupled``: the number of levels
    of a colour picture whose channels share one mixture a pixel (:mod:`anyorder.networks.parts.colour`); 0 answers for
    them apart.
    ``patch``: so many pixels a side come in as one position of the trunk and leave it as theirs again, which costs
    a fraction of the time where positions are what is dear.
    """

    name: ClassVar[str] = "unet"

    channels: int = 32
    blocks: int = 2
    levels: int = 1
    attention: str = "middle"
    dropout: float = 0.0
    modes: int = 0
    entry: int = 0
    coupled: int = 0
    patch: int = 1

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": {"channels": 16, "blocks": 1, "levels": 2},
        "small": {"channels": 32, "blocks": 1, "levels": 2, "patch": 2},
        # SFARM's table 4; its widths on CIFAR-10 and at 64 x 64 are 256 in the entry and 128 in the blocks.
        "mnist": {"channels": 32, "blocks": 4, "levels": 1},
        "fashion_mnist": {"channels": 32, "blocks": 4, "levels": 1},
        "cifar10": {"channels": 128, "entry": 256, "blocks": 32, "levels": 1, "attention": "every"},
        "64x64": {"channels": 128, "entry": 256, "blocks": 16, "levels": 2, "attention": "every"},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        grid = self.layout.grid
        if len(grid) not in (2, 3):
            raise UserError(f"a U-Net needs variables on a grid of pixels, height x width (x channels), got {grid}")
        if self.channels < 4 or self.channels % 4 or self.entry % 4 or self.entry < 0:
            raise UserError(f"unet: channels and entry must be multiples of 4, got {self.channels} and {self.entry}")
        check_fields(self, whole={"patch": 1, "modes": 0, "coupled": 0, "levels": 1, "blocks": 0}, section="unet")
        if self.coupled == 1:
            raise UserError("unet: coupled is the number of levels of a channel, 2 or more, or 0; got 1")
        if (min(grid[:2]) // self.patch).bit_length() < self.levels:  # no power of two: levels may be any number
            raise UserError(
                f"unet: a picture of {grid[0]} x {grid[1]}, {self.patch} pixels a patch, "
                f"cannot be halved {self.levels - 1} times"
            )
        self.planes = grid[2] if len(grid) == 3 else 1
        self._mode = self.modes  # that of a view; the last row of the table stands for none
        depth, embedding = self.channels, 4 * self.channels
        entry = self.entry or depth
        self.enter_picture = ToPatches(self.planes, entry - entry // 4, self.patch)
        self.enter_mask = ToPatches(self.planes, entry // 4, self.patch)
        self.gather = nn.Conv2d(entry, depth, 1) if entry != depth else nn.Identity()
        self.step = StepEmbedding(depth)
        # The last row stands for no mode in particular, which is what most questions come with.
        self.mode_table = nn.Embedding(self.modes + 1, embedding) if self.modes else None
        self.trunk = Trunk(
            depth,
            blocks=self.blocks,
            levels=self.levels,
            attention=self.attention,
            embedding=embedding,
            dropout=self.dropout,
        )
        self.norm = norm(depth)
        leaving = self.planes * self.layout.width
        if self.coupled:
            if self.planes != CHANNELS or self.layout.width % 3 or any(self.layout.levels):
                raise UserError("unet: coupled channels need colour pictures and a mixture of logistics as head")
            leaving = self.layout.width // 3 * PER_COMPONENT
        self.leave = FromPatches(depth, leaving, self.patch)
        nn.init.zeros_(self.leave.weight)
        scale = torch.tensor([2 / (levels - 1) if levels > 1 else 0.0 for levels in self.layout.levels])
        self.scale: Tensor
        self.coded: Tensor
        self.register_buffer("scale", scale, persistent=False)
        self.register_buffer("coded", torch.tensor(self.layout.levels) > 0, persistent=False)

    def begin(self, starts: Float[Tensor, "variables width"]) -> None:
        # One bias for all pixels: that of the first one, since pixels share their head.
        assert self.leave.bias is not None
        bias = starts[: self.planes].flatten()
        if self.coupled:
            logits, means, scales = starts[0].chunk(3)
            bias = torch.cat([logits, *(3 * [means]), *(3 * [scales]), torch.zeros(3 * len(logits))])
        with torch.no_grad():
            self.leave.bias.copy_(bias.repeat_interleave(self.patch**2))

    def in_mode(self, mode: int | None) -> Self:
        if mode is None or not self.modes:
            return super().in_mode(mode)
        if not 0 <= mode < self.modes:
            raise UserError(f"this network knows the masking modes 0 to {self.modes - 1}, got {mode}")
        # The copy has the same parameters and parts, but a dictionary of its own for plain attributes.
        view = copy.copy(self)
        view._mode = mode
        return view

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        return self._features(values, known, None)

    def staged(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        modes: Int[Tensor, " batch"] | None,
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        return self._features(values, known, modes, all_channels=bool(self.coupled))

    def _features(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        modes: Int[Tensor, " batch"] | None,
        *,
        all_channels: bool = False,
    ) -> Float[Tensor, "batch variables width"]:
        """``modes``: of each row; all are in the view's without it. ``all_channels``: those before each are known."""
        dtype = self.leave.weight.dtype
        channels = known.unflatten(1, (-1, self.planes))
        if self.coupled:  # a pixel is an input once all of it is known
            known = channels.all(dim=2, keepdim=True).expand_as(channels).flatten(1)
        # Codes 0..K-1 become -1..1; real values are standardised already.
        picture = torch.where(self.coded, values * self.scale - 1, values.clamp(-FARTHEST, FARTHEST))
        picture = picture.where(known, 0.0).to(dtype)
        pixels = torch.cat(
            [self.enter_picture(self._planes(picture)), self.enter_mask(self._planes(known.to(dtype)))], dim=1
        )
        pixels = self.gather(pixels)
        pixels = self.trunk(pixels, self._embedding(known, modes))
        out = self.leave(F.silu(self.norm(pixels)), self.layout.grid)
        if self.coupled:
            raw = out.flatten(2).transpose(1, 2)
            pixels_values = values.unflatten(1, (-1, self.planes))
            seen = torch.ones_like(channels) if all_channels else channels
            return coupled(raw, pixels_values, seen, self.coupled).flatten(1, 2)
        # [batch, planes * width, height, row] -> [batch, variables, width]; channels of a pixel are neighbours.
        return out.unflatten(1, (self.planes, -1)).permute(0, 3, 4, 1, 2).flatten(1, 3)  # type: ignore[no-any-return]

    def _planes(self, flat: Float[Tensor, "batch variables"]) -> Float[Tensor, "batch planes height width"]:
        height, width = self.layout.grid[:2]
        return flat.view(-1, height, width, self.planes).permute(0, 3, 1, 2).contiguous()

    def _embedding(self, known: Tensor, modes: Tensor | None) -> Float[Tensor, "batch embedding"]:
        share = known.to(self.leave.weight.dtype).mean(dim=1)
        out: Tensor = self.step(1000 * share)  # as many steps as DDPM has, whatever the size of the picture
        if self.mode_table is None:
            return out
        if modes is None:
            modes = torch.full((len(known),), self._mode, device=known.device)
        return out + self.mode_table(modes)  # type: ignore[no-any-return]
