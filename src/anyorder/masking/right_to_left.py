"""Right to left: a right part first, then what lies left of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from anyorder.masking.two_stage import TwoStage, uniform_cut


@dataclass(frozen=True)
class RightToLeft(TwoStage):
    """The region is all columns right of a uniform cut."""

    name: ClassVar[str] = "right_to_left"

    def region(self, batch: int, generator: torch.Generator) -> Bool[Tensor, "batch height width"]:
        cut = uniform_cut(batch, self.width, generator)
        right = torch.arange(self.width, device=generator.device) >= self.width - cut[:, None]
        return right[:, None, :].expand(-1, self.height, -1)
