"""``stages``: one pass of a mask network at a uniformly drawn step of a masking mode's trajectory (SFARM eqs. 8 to 10).

The pixels that may be next are weighted by their transition probabilities; the network is given the mode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.support.checks import check_fields
from anyorder.training.objectives.base import Drawn, Objective, Scores


@dataclass(frozen=True)
class Staged(Drawn):
    """All pixels beside each other by one pass in the mode of every row; ``modes``: None if the network has none."""

    known: Bool[Tensor, "batch variables"]
    modes: Int[Tensor, " batch"] | None

    def rows(self, index: Tensor | slice) -> Self:
        modes = None if self.modes is None else self.modes[index]
        return replace(self, weight=self.weight[index], known=self.known[index], modes=modes)

    def scores(self, model: AnyOrderModel, values: Tensor, log_det: Tensor) -> Scores:
        features = model.staged_pass(values, self.known, self.modes)
        return Scores(model.heads.log_prob_beside(features, values), log_det, self.weight)


@dataclass(frozen=True)
class Stages(Objective):
    """For a masking mode or a mixture of them. ``untold``: how often a row's mode is kept from the network.

    Whoever asks for a picture with an arbitrary mask has no mode to name, so that must be learned as well.
    """

    name: ClassVar[str] = "stages"

    untold: float = 0.5

    def __post_init__(self) -> None:
        check_fields(self, within={"untold": "[0, 1]"})
        if not self.masking.staged:
            raise UserError("the objective 'stages' needs a masking of modes (random_pixels, left_to_right, ... modes)")
        if self.reweight:
            raise UserError("the objective 'stages' has weights of its own: leave reweight out, or use 'parallel'")

    def draw(self, model: AnyOrderModel, values: Tensor, observed: Tensor, generator: torch.Generator) -> Staged:
        batch, variables = values.shape
        stage = self.masking.stage(batch, variables, generator)
        modes = None
        if model.network.modes:
            unheard = torch.rand(batch, generator=generator, device=generator.device) < self.untold
            modes = stage.mode.masked_fill(unheard, model.network.modes)
        following = (stage.next & observed).to(values.dtype)
        weight = following / following.sum(dim=1, keepdim=True).clamp(min=1)
        return Staged(weight, stage.known & observed, modes)
