"""Top down: an upper part first, then what lies below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from anyorder.masking.two_stage import TwoStage, uniform_cut


@dataclass(frozen=True)
class TopDown(TwoStage):
    """The region is all rows above a uniform cut."""

    name: ClassVar[str] = "top_down"

    def region(self, batch: int, generator: torch.Generator) -> Bool[Tensor, "batch height width"]:
        cut = uniform_cut(batch, self.height, generator)
        upper = torch.arange(self.height, device=generator.device) < cut[:, None]
        return upper[:, :, None].expand(-1, -1, self.width)
