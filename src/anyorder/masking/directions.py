"""The four directions: one side of a straight cut first, then the other (SFARM's left-to-right, top-down, ...)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from anyorder.masking.two_stage import TwoStage, uniform_cut


@dataclass(frozen=True)
class LeftToRight(TwoStage):
    """The region is all columns left of a uniform cut."""

    name: ClassVar[str] = "left_to_right"

    def region(self, batch: int, generator: torch.Generator) -> Bool[Tensor, "batch height width"]:
        cut = uniform_cut(batch, self.width, generator)
        left = torch.arange(self.width, device=generator.device) < cut[:, None]
        return left[:, None, :].expand(-1, self.height, -1)


@dataclass(frozen=True)
class RightToLeft(TwoStage):
    """The region is all columns right of a uniform cut."""

    name: ClassVar[str] = "right_to_left"

    def region(self, batch: int, generator: torch.Generator) -> Bool[Tensor, "batch height width"]:
        cut = uniform_cut(batch, self.width, generator)
        right = torch.arange(self.width, device=generator.device) >= self.width - cut[:, None]
        return right[:, None, :].expand(-1, self.height, -1)


@dataclass(frozen=True)
class TopDown(TwoStage):
    """The region is all rows above a uniform cut."""

    name: ClassVar[str] = "top_down"

    def region(self, batch: int, generator: torch.Generator) -> Bool[Tensor, "batch height width"]:
        cut = uniform_cut(batch, self.height, generator)
        upper = torch.arange(self.height, device=generator.device) < cut[:, None]
        return upper[:, :, None].expand(-1, -1, self.width)


@dataclass(frozen=True)
class BottomUp(TwoStage):
    """The region is all rows below a uniform cut."""

    name: ClassVar[str] = "bottom_up"

    def region(self, batch: int, generator: torch.Generator) -> Bool[Tensor, "batch height width"]:
        cut = uniform_cut(batch, self.height, generator)
        lower = torch.arange(self.height, device=generator.device) >= self.height - cut[:, None]
        return lower[:, :, None].expand(-1, -1, self.width)
