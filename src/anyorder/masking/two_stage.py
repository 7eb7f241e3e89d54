r"""Two-stage maskings of pictures: SFARM's masking modes (section 3.5, eqs. 4 to 12).

A mode is a law of whole trajectories z_0, z_1, ..., z_S of activation masks, from nothing to everything, one pixel a
step. It is given by a random region A alone: first the pixels of A are activated in uniformly random order (stage a),
then those outside of it, given all of A (stage b). The chain is never walked to train on it, since

    z_i  =  a uniform i-subset of A                       for i <= |A|
            A and a uniform (i - |A|)-subset of the rest   for i > |A|

can be drawn at once for any i, and the transition probabilities of eq. 10, which weigh the loss, are

    p(j is next | z_i)  =  1 / (pixels of the running stage that are not active yet),   0 for all other j.

With A = everything this is the uniform mode alone, ARDM: p(j active at step i) = i / S (appendix B.1).
As a masking, a mode asks for the rest of the picture given the region. Pixels may have several channels: known together
(the variable is a pixel, as in SFARM), or one by one (the variable is a channel of a pixel, as in MAC).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from anyorder.errors import UserError
from anyorder.masking.base import Masking, Stage
from anyorder.query import Query, random_subset


@dataclass(frozen=True)
class TwoStage(Masking):
    """A mode of pictures of ``height`` x ``width`` pixels with ``channels`` values each, active ``together`` or not."""

    staged: ClassVar[bool] = True

    height: int
    width: int
    channels: int = 1
    together: bool = True

    def __post_init__(self) -> None:
        for option in ("height", "width", "channels"):
            value = getattr(self, option)
            if not isinstance(value, int) or value < 1:
                raise UserError(f"{self.name} masking: {option} must be a whole number from 1 up, got {value!r}")

    @abstractmethod
    def region(self, batch: int, generator: torch.Generator) -> Bool[Tensor, "batch height width"]:
        """The pixels of the first stage, one draw a row."""

    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        """The question of the second stage: the rest given the region; a mode without rest asks for everything."""
        region = self._region(batch, generator)
        region = region & ~region.all(dim=1, keepdim=True)
        known = self._spread(region, variables)
        return Query(known, ~known)

    def stage(
        self, batch: int, variables: int, generator: torch.Generator, step: Int[Tensor, " batch"] | None = None
    ) -> Stage:
        """The state of each trajectory before ``step`` (0 .. steps - 1, uniform if not given), drawn at once."""
        region = self._region(batch, generator)
        size = region.sum(dim=1)
        if step is None:
            step = torch.randint(region.shape[1], (batch,), generator=generator, device=generator.device)
        first = step < size
        running = torch.where(first[:, None], region, ~region)
        active = random_subset(running, torch.where(first, step, step - size), generator)
        known = torch.where(first[:, None], active, region | active)
        return Stage(
            self._spread(known, variables),
            self._spread(running & ~active, variables),
            torch.zeros(batch, dtype=torch.long, device=generator.device),
        )

    def ranks(self, batch: int, variables: int, generator: torch.Generator) -> Int[Tensor, "batch variables"]:
        """When each variable of whole trajectories becomes active: the chain, walked. Channels of a pixel in turn."""
        region = self._region(batch, generator)
        luck = torch.rand(region.shape, generator=generator, device=generator.device, dtype=torch.float64)
        order = (luck + (~region).double()).argsort(dim=1)  # all of the region before all of the rest
        channels = self.channels if self.together else 1
        rank = self._spread(order.argsort(dim=1) * channels, variables)
        return rank + torch.arange(variables, device=rank.device) % channels

    def _region(self, batch: int, generator: torch.Generator) -> Bool[Tensor, "batch elements"]:
        region = self.region(batch, generator).flatten(1)
        return region if self.together else region.repeat_interleave(self.channels, dim=1)

    def _spread(self, elements: Shaped[Tensor, "batch elements"], variables: int) -> Shaped[Tensor, "batch variables"]:
        """All variables of these elements; the channels of a pixel are each other's neighbours."""
        count = self.height * self.width * self.channels
        if count != variables:
            raise UserError(
                f"{self.name} masking: {self.height} x {self.width} pixels of {self.channels} channels are "
                f"{count} variables, not {variables}"
            )
        return elements.repeat_interleave(self.channels, dim=1) if self.together else elements


def uniform_cut(batch: int, size: int, generator: torch.Generator) -> Int[Tensor, " batch"]:
    """Where to cut ``size`` lines in two, neither part empty if that can be."""
    if size < 2:
        return torch.full((batch,), size, device=generator.device)
    return torch.randint(1, size, (batch,), generator=generator, device=generator.device)


def uniform_patch(
    batch: int, height: int, width: int, generator: torch.Generator
) -> Bool[Tensor, "batch height width"]:
    """A rectangle: its sides uniform between a quarter and three quarters of the picture's, its position uniform."""
    inside = []
    for size in (height, width):
        least, most = max(1, size // 4), max(1, (3 * size) // 4)
        side = torch.randint(least, most + 1, (batch,), generator=generator, device=generator.device)
        luck = torch.rand(batch, generator=generator, device=generator.device, dtype=torch.float64)
        start = (luck * (size - side + 1)).long()
        position = torch.arange(size, device=generator.device)
        inside.append((position >= start[:, None]) & (position < (start + side)[:, None]))
    return inside[0][:, :, None] & inside[1][:, None, :]
