"""The U-Net: the mask network of pictures (ARDM, SFARM appendix A.2, MAC section 4.2).

The known picture and its mask enter together, as numbers for three quarters of the channels and as embeddings of their
levels for one quarter (:mod:`anyorder.networks.parts.unet_entry`), and go through the trunk
(:mod:`anyorder.networks.parts.unet_trunk`). Every block is conditioned on the step (how much of the picture is known)
and, if the model was trained in several masking modes, on the mode. A value of an unknown pixel is zeroed before
anything sees it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from anyorder.errors import UserError
from anyorder.networks.base import FARTHEST, MaskNetwork, rows_at_once
from anyorder.networks.parts.colour import CHANNELS, PER_COMPONENT, coupled
from anyorder.networks.parts.unet_entry import Entry, from_separate_entries
from anyorder.networks.parts.unet_parts import FromPatches, StepEmbedding, norm
from anyorder.networks.parts.unet_trunk import Trunk
from anyorder.query import Chain, Step
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
    a fraction of the time where positions are what is dear. ``embedded``: how many levels a value has, each of which
    gets an embedding of its own; 0 where values have none, and then all known values share one.
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
    embedded: int = 0

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": {"channels": 16, "blocks": 1, "levels": 2},
        "small": {"channels": 32, "blocks": 1, "levels": 2, "patch": 2},
        # SFARM's table 4; its widths on CIFAR-10 and at 64 x 64 are 256 in the entry and 128 in the blocks.
        "mnist": {"channels": 32, "blocks": 4, "levels": 1},
        "fashion_mnist": {"channels": 32, "blocks": 4, "levels": 1},
        "cifar10": {"channels": 128, "entry": 256, "blocks": 32, "levels": 1, "attention": "every"},
        "64x64": {"channels": 128, "entry": 256, "blocks": 16, "levels": 2, "attention": "every"},
        # ARDM's and MAC's (appendix D of MAC: 32 blocks of 256 channels, interleaved with attention).
        "mac": {"channels": 256, "blocks": 32, "levels": 1, "attention": "every"},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        grid = self.layout.grid
        if len(grid) not in (2, 3):
            raise UserError(f"a U-Net needs variables on a grid of pixels, height x width (x channels), got {grid}")
        if self.channels < 4 or self.channels % 4 or self.entry % 4 or self.entry < 0:
            raise UserError(f"unet: channels and entry must be multiples of 4, got {self.channels} and {self.entry}")
        counts = {"patch": 1, "modes": 0, "coupled": 0, "embedded": 0, "levels": 1, "blocks": 0}
        check_fields(self, whole=counts, section="unet")
        if self.coupled == 1:
            raise UserError("unet: coupled is the number of levels of a channel, 2 or more, or 0; got 1")
        if self.embedded == 1 or (self.embedded and {*self.layout.levels} not in ({0}, {self.embedded})):
            raise UserError(
                f"unet: embedded is the number of levels of a value, 2 or more, or 0 for none; got {self.embedded}"
            )
        if (min(grid[:2]) // self.patch).bit_length() < self.levels:  # no power of two: levels may be any number
            raise UserError(
                f"unet: a picture of {grid[0]} x {grid[1]}, {self.patch} pixels a patch, "
                f"cannot be halved {self.levels - 1} times"
            )
        self.planes = grid[2] if len(grid) == 3 else 1
        self._mode = self.modes  # that of a view; the last row of the table stands for none
        self._remembers = False  # a view's last pass: what went in, and what came out
        self._last: tuple[tuple[Tensor, Tensor, Tensor | None], Tensor] | None = None
        depth, embedding = self.channels, 4 * self.channels
        entry = self.entry or depth
        self.enter = Entry(self.planes, entry, self.patch, max(self.embedded, 1))
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

    @classmethod
    def from_version_1(
        cls, described: dict[str, Any], tensors: dict[str, Tensor]
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        if "enter_picture.weight" not in tensors:  # today's network, described as version 1 described things
            return described, tensors
        return {**described, "embedded": 0}, from_separate_entries(tensors)

    @property
    def repeated(self) -> Sequence[nn.Module]:
        return self.trunk.blocks

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

    def remembering(self) -> Self:
        if not self.coupled:
            return self
        view = copy.copy(self)
        view._remembers = True
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

    def at(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        target: Int[Tensor, " batch"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch width"]:
        if not self.coupled:
            return super().at(values, known, target, prefix)
        out = self._by_pixel(self._passed(values, self._whole(known), None))
        return self._channel(out[_each(target), target // self.planes], values, known, target)

    def along(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Float[Tensor, "batch steps width"]:
        """One pass a pixel where channels are coupled: those that follow each other in one pixel need no other."""
        if not self.coupled:
            return super().along(values, chain)

        def answer(step: Step) -> Float[Tensor, "edges width"]:
            whole = self._whole(step.known)
            changed = (step.row[1:] != step.row[:-1]) | (whole[1:] != whole[:-1]).any(dim=1)
            first = torch.cat([changed.new_ones(min(1, len(whole))), changed])
            needed = first.nonzero()[:, 0]
            out = self._by_pixel(self._passed(values[step.row[needed]], whole[needed], None))
            pixel = out[first.cumsum(0) - 1, step.target // self.planes]
            return self._channel(pixel, values[step.row], step.known, step.target)

        return self.unrolled(chain, answer, edges=self.planes * rows_at_once(self.layout))

    def _features(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        modes: Int[Tensor, " batch"] | None,
        *,
        all_channels: bool = False,
    ) -> Float[Tensor, "batch variables width"]:
        """``modes``: of each row; all are in the view's without it. ``all_channels``: those before each are known."""
        if self.coupled:
            channels = known.unflatten(1, (-1, self.planes))
            out = self._by_pixel(self._passed(values, self._whole(known), modes))
            seen = torch.ones_like(channels) if all_channels else channels
            return coupled(out, values.unflatten(1, (-1, self.planes)), seen, self.coupled).flatten(1, 2)
        out = self._passed(values, known, modes)
        # [batch, planes * width, height, row] -> [batch, variables, width]; channels of a pixel are neighbours.
        return out.unflatten(1, (self.planes, -1)).permute(0, 3, 4, 1, 2).flatten(1, 3)  # type: ignore[no-any-return]

    def _whole(self, known: Bool[Tensor, "batch variables"]) -> Bool[Tensor, "batch variables"]:
        """What is an input of coupled channels: a pixel once all of it is known."""
        channels = known.unflatten(1, (-1, self.planes))
        whole: Tensor = channels.all(dim=2, keepdim=True).expand_as(channels)
        return whole.flatten(1)

    def _channel(
        self,
        out: Float[Tensor, "batch numbers"],
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        target: Int[Tensor, " batch"],
    ) -> Float[Tensor, "batch width"]:
        """Features of one channel a row, from what came out at its pixel and the channels of it that are known."""
        pixel, channel = target // self.planes, target % self.planes
        own, seen = (part.unflatten(1, (-1, self.planes))[_each(pixel), pixel] for part in (values, known))
        return coupled(out[:, None], own[:, None], seen[:, None], self.coupled)[_each(pixel), 0, channel]

    @staticmethod
    def _by_pixel(out: Float[Tensor, "batch numbers height row"]) -> Float[Tensor, "batch pixels numbers"]:
        return out.flatten(2).transpose(1, 2)

    def _passed(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        modes: Int[Tensor, " batch"] | None,
    ) -> Float[Tensor, "batch leaving height row"]:
        """One pass: what leaves the network at every pixel, given the values that are known."""
        # Codes 0..K-1 become -1..1; real values are standardised already.
        picture = torch.where(self.coded, values * self.scale - 1, values.clamp(-FARTHEST, FARTHEST))
        picture = picture.where(known, 0.0).to(self.leave.weight.dtype)
        if self._last is not None and all(map(_same, self._last[0], (picture, known, modes))):
            return self._last[1]
        pixels = self.gather(self.enter(self._planes(picture), self._planes(known)))
        pixels = self.trunk(pixels, self._embedding(known, modes))
        out: Tensor = self.leave(F.silu(self.norm(pixels)), self.layout.grid)
        if self._remembers:
            self._last = (picture, known, modes), out
        return out

    def _planes(self, flat: Shaped[Tensor, "batch variables"]) -> Shaped[Tensor, "batch planes height width"]:
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


def _each(rows: Tensor) -> Int[Tensor, " rows"]:
    """The number of each row."""
    return torch.arange(len(rows), device=rows.device)


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    return one is other or (one is not None and other is not None and torch.equal(one, other))
