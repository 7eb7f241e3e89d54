"""What the mixture heads share: how 3K features become logits, means and log scales, and how a component is drawn.

A log scale s is the feature itself between -5 and 5 and approaches -7 and 7 outside, with a gradient that falls like
1/s^2 and never vanishes: no component can collapse to a spike or stay stuck as one. Between -5 and 5, scaling a
distribution is exactly adding to the feature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.heads.base import Head

PLAIN = 5.0  # |log scale| up to which the feature is the log scale itself
REACH = 2.0  # how much further it can go: scales stay within e^-7 .. e^7 model units


def bounded(feature: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """The log scale that a feature stands for: smooth, increasing, the identity in the middle."""
    middle = feature.clamp(-PLAIN, PLAIN)
    excess = feature - middle
    return middle + excess / (1 + excess.abs() / REACH)


def broad(components: int, deviation: float) -> Float[Tensor, " size"]:
    """Features of equal components whose means share out [-1.5, 1.5] evenly.

    ``deviation`` is the scale at which the family has unit standard deviation.
    """
    means = 1.5 * (2 * torch.arange(components) + 1 - components) / components
    scale = deviation * (0.7 if components > 1 else 1.0)
    return torch.cat([torch.zeros(components), means, torch.full((components,), math.log(scale))])


def draw(logits: Float[Tensor, "*batch choices"], generator: torch.Generator | None) -> Int[Tensor, "*batch"]:
    """One choice per element by inversion; a choice of probability zero is never drawn."""
    total = logits.softmax(-1).cumsum(-1)
    level = torch.rand(logits.shape[:-1], generator=generator, dtype=logits.dtype, device=logits.device)
    # Relative to the rounded total, so that a level just below one stays inside.
    return (total <= level[..., None] * total[..., -1:]).sum(-1).clamp(max=logits.shape[-1] - 1)


@dataclass(eq=False)
class MixtureHead(Head):
    """Three features per component: all logits, then all means, then all log scales."""

    components: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.components < 1:
            raise UserError(f"a mixture needs at least one component, got components={self.components}")

    @property
    def size(self) -> int:
        return 3 * self.components

    @property
    def locations(self) -> tuple[int, ...]:
        return tuple(range(self.components, 2 * self.components))

    @property
    def log_scales(self) -> tuple[int, ...]:
        return tuple(range(2 * self.components, 3 * self.components))
