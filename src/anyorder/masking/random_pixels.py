"""Random pixels: one stage, every pixel alike at every step. SFARM's uniform mode; alone it is ARDM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from anyorder.masking.two_stage import TwoStage


@dataclass(frozen=True)
class RandomPixels(TwoStage):
    """The region is the whole picture."""

    name: ClassVar[str] = "random_pixels"

    def region(self, batch: int, generator: torch.Generator) -> Bool[Tensor, "batch height width"]:
        return torch.ones(batch, self.height, self.width, dtype=torch.bool, device=generator.device)
