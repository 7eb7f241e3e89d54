"""Pixel by pixel: the pixels of a picture in random order, the channels of each one after the other.

w: the next pixel is drawn uniformly; within it red, green, blue    (SFARM: the variable is a pixel)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.protocols.base import Protocol


@dataclass(frozen=True)
class Pixelwise(Protocol):
    """``channels`` neighbouring variables are one pixel; a fresh order of the pixels for every query."""

    name: ClassVar[str] = "pixelwise"

    random: ClassVar[bool] = True
    channels: int = 3

    def __post_init__(self) -> None:
        if not isinstance(self.channels, int) or self.channels < 1:
            raise UserError(f"pixelwise protocol: channels must be a whole number from 1 up, got {self.channels!r}")

    def keys(
        self, mask: Bool[Tensor, "batch variables"], generator: torch.Generator | None
    ) -> Int[Tensor, "batch variables"]:
        if generator is None:
            raise UserError("the pixelwise protocol draws its order: give a generator (or a seed)")
        batch, variables = mask.shape
        if variables % self.channels:
            raise UserError(f"{variables} variables are no whole number of pixels of {self.channels} channels")
        pixels = variables // self.channels
        noise = torch.rand(batch, pixels, generator=generator, device=generator.device, dtype=torch.float64)
        rank = noise.argsort(dim=1).argsort(dim=1)
        channel = torch.arange(self.channels, device=rank.device)
        return (rank[:, :, None] * self.channels + channel).flatten(1).to(mask.device)
