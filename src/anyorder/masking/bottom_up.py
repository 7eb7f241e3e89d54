"""Bottom up: a lower part first, then what lies above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from anyorder.masking.two_stage import TwoStage, uniform_cut


@dataclass(frozen=True)
class BottomUp(TwoStage):
    """The region is all rows below a uniform cut."""

    name: ClassVar[str] = "bottom_up"

    def region(self, batch: int, generator: torch.Generator) -> Bool[Tensor, "batch height width"]:
        cut = uniform_cut(batch, self.height, generator)
        lower = torch.arange(self.height, device=generator.device) >= self.height - cut[:, None]
        return lower[:, :, None].expand(-1, -1, self.width)
