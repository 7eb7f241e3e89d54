"""The order in which a masking mode activates the pixels of a picture: the mode's own trajectory (SFARM Algorithm 2).

A picture that is drawn or scored from nothing in a mode is walked along a trajectory of that mode, as it was trained:
first the pixels of a random region, then the others. Where something is known there is a mask and no trajectory to be
drawn: what is known stands for the region, and the rest follows in the model's own order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.masking.two_stage import TwoStage
from anyorder.protocols import Protocol


@dataclass(frozen=True)
class Trajectory(Protocol):
    """A trajectory of ``mode`` for every query about a whole picture; ``otherwise`` says the order of all others."""

    name: ClassVar[str] = "trajectory"
    random: ClassVar[bool] = True

    mode: TwoStage
    otherwise: Protocol

    def keys(
        self, mask: Bool[Tensor, "batch variables"], generator: torch.Generator | None
    ) -> Int[Tensor, "batch variables"]:
        if generator is None:
            raise UserError("a trajectory is drawn: give a generator (or a seed)")
        whole = mask.all(dim=1, keepdim=True)
        usual = self.otherwise.keys(mask, generator).argsort(dim=1, stable=True).argsort(dim=1)
        if not bool(whole.any()):  # no trajectory is drawn that nobody walks
            return usual
        return torch.where(whole, self.mode.ranks(len(mask), mask.shape[1], generator).to(mask.device), usual)
