"""Patches: around a rectangle and then inside (a hole is filled), or inside first (a picture is continued outwards)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor

from anyorder.masking.two_stage import TwoStage, uniform_patch


@dataclass(frozen=True)
class InteriorPatch(TwoStage):
    """The region is the outside of a uniform patch."""

    name: ClassVar[str] = "interior_patch"

    def region(self, batch: int, generator: torch.Generator) -> Bool[Tensor, "batch height width"]:
        return ~uniform_patch(batch, self.height, self.width, generator)


@dataclass(frozen=True)
class ExteriorPatch(TwoStage):
    """The region is the inside of a uniform patch."""

    name: ClassVar[str] = "exterior_patch"

    def region(self, batch: int, generator: torch.Generator) -> Bool[Tensor, "batch height width"]:
        return uniform_patch(batch, self.height, self.width, generator)
