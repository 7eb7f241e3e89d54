"""What mixtures share: how 3K features become logits, means and log scales, how a component is drawn, and tails.

A log scale s is the feature itself between -5 and 5 and approaches -7 and 7 outside, with a gradient that falls like
1/s^2 and never vanishes: no component can collapse to a spike or stay stuck as one. Between -5 and 5, scaling a
distribution is exactly adding to the feature.

A column says how far its values reach in model units. Then no component lies beyond, or is wider than a part of it, in
the same smooth way: a wide component far out costs nothing in training, and its draws would be absurd.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.curves import Components
from anyorder.distributions.quadrature import composite, tail_breaks
from anyorder.errors import UserError
from anyorder.heads.base import Head
from anyorder.support.checks import inside

Array = TypeVar("Array", Tensor, NDArray[np.float64])

REACHES = "[1, 1e9]"  # of columns, in model units
PLAIN = 5.0  # |log scale| up to which the feature is the log scale itself
REACH = 2.0  # how much further it can go: scales stay within e^-7 .. e^7 model units
WIDEST = 0.4  # scale of a component, as a share of how far the column reaches
SOFT = 0.5  # the last part of the way to a limit, which is only approached: model units, and nats of a log scale


def bounded(feature: Array) -> Array:
    """The log scale that a feature stands for: smooth, increasing, the identity in the middle."""
    return limited(feature, -PLAIN, PLAIN, REACH)


def limited(feature: Array, low: float, high: float, further: float) -> Array:
    """The feature itself between ``low`` and ``high``, approaching what lies ``further`` outside."""
    middle = feature.clip(low, high)
    if not torch.is_grad_enabled() and bool((middle == feature).all()):
        return feature  # as nearly always
    excess = feature - middle
    found: Array = middle + excess / (1 + abs(excess) / further)
    return found


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


def by_lower_tail(
    level: Float[Tensor, "*batch"], search: Callable[[Tensor, Tensor], Tensor]
) -> Float[Tensor, "*batch"]:
    """Quantiles in float64 of a family that can be mirrored, both tails solved as lower ones.

    ``search(sign, tail)`` finds where the family, mirrored where ``sign`` is -1, reaches ``tail``, at most one half:
    1 - level is exact where level is above that. The ends of the line stand at the levels 0 and 1.
    """
    level = level.double()
    sign = torch.where(level > 0.5, -1.0, 1.0).double()
    root = sign * search(sign, torch.minimum(level, 1 - level))
    root = root.masked_fill(level == 0, -math.inf).masked_fill(level == 1, math.inf)
    return root.masked_fill(~((level >= 0) & (level <= 1)), math.nan)


@dataclass(frozen=True, eq=False)
class LineMixture(Distribution):
    """A batch of mixtures on the line whose components have a mean and a scale each."""

    breaks: ClassVar[tuple[float, ...]]  # panel edges of each component, in its own scales

    logits: Float[Tensor, "*batch components"]
    means: Float[Tensor, "*batch components"]
    log_scales: Float[Tensor, "*batch components"]

    @property
    def shape(self) -> torch.Size:
        return self.logits.shape[:-1]

    def mean(self) -> Float[Tensor, "*batch"]:
        return (self.logits.softmax(-1) * self.means).sum(-1)

    def nodes(self, low: float, high: float) -> tuple[Float[Tensor, "*batch nodes"], Float[Tensor, "*batch nodes"]]:
        means, scales = self.means.detach().double(), self.log_scales.detach().double().exp()
        reach = torch.tensor(self.breaks, dtype=torch.float64, device=means.device)
        breaks = (means[..., None] + scales[..., None] * reach).flatten(-2)
        # The widest component has the heaviest tail, and is what is left beyond the others' reach.
        return composite(torch.cat([breaks, tail_breaks(low, high, scales.amax(-1))], dim=-1), low, high)

    def _standard(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch components"]:
        return (value[..., None] - self.means) * torch.exp(-self.log_scales)


def components_of(
    logits: Float[Tensor, "*batch components"],
    means: Float[Tensor, "*batch components"],
    log_scales: Float[Tensor, "*batch components"],
    *,
    logistic: bool = False,
) -> Components | None:
    """The curve of a batch of one mixture; None for other batches, and where a gradient could be lost with it."""
    if math.prod(logits.shape[:-1]) != 1 or torch.is_grad_enabled():
        return None
    shares, centres, scales = (part.double().cpu().numpy().reshape(-1) for part in (logits, means, log_scales))
    weights = np.exp(shares - shares.max())
    return Components(weights / weights.sum(), centres, np.exp(scales), logistic)


@dataclass(eq=False)
class MixtureHead(Head):
    """Three features per component: all logits, then all means, then all log scales."""

    deviation: ClassVar[float]  # the scale at which a component has unit standard deviation, or about that

    components: int
    # Of the column, in model units; None: without limits.
    reach: float | None = field(default=None, kw_only=True, metadata={"later": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.components < 1:
            raise UserError(f"a mixture needs at least one component, got components={self.components}")
        if self.reach is not None and not inside(self.reach, REACHES):
            raise UserError(f"the reach of a mixture must be a number in {REACHES} or None, got {self.reach!r:.80}")

    @property
    def size(self) -> int:
        return 3 * self.components

    @property
    def locations(self) -> tuple[int, ...]:
        return tuple(range(self.components, 2 * self.components))

    @property
    def log_scales(self) -> tuple[int, ...]:
        return tuple(range(2 * self.components, 3 * self.components))

    def parts(
        self, features: Float[Tensor, "*batch size"]
    ) -> tuple[
        Float[Tensor, "*batch components"], Float[Tensor, "*batch components"], Float[Tensor, "*batch components"]
    ]:
        """Logits, means and log scales."""
        logits, means, log_scales = features.chunk(3, dim=-1)
        return logits, *self._kept_within(means, log_scales)

    def arrays(
        self, features: Float[np.ndarray, "*batch size"]
    ) -> tuple[
        Float[np.ndarray, "*batch components"],
        Float[np.ndarray, "*batch components"],
        Float[np.ndarray, "*batch components"],
    ]:
        """Logits, means and scales, in NumPy."""
        count = self.components
        means, log_scales = self._kept_within(features[..., count : 2 * count], features[..., 2 * count :])
        return features[..., :count], means, np.exp(log_scales)

    def _kept_within(self, means: Array, log_scales: Array) -> tuple[Array, Array]:
        """Means and log scales within what the column allows."""
        if self.reach is None:
            return means, bounded(log_scales)
        widest = math.log(WIDEST * self.reach)
        log_scales = limited(bounded(log_scales), -math.inf, widest - SOFT, SOFT)
        return limited(means, -self.reach, self.reach, SOFT), log_scales

    def start(self) -> Float[Tensor, " size"]:
        return broad(self.components, self.deviation)
