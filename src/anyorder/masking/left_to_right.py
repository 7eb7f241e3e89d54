"""Left to right: a left part first, then what lies right of it."""

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
