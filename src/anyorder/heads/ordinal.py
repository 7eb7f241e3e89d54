"""Levels with an order: a mixture of logistics on a line, cut at thresholds (McCullagh's cumulative logit, mixed).

    P(code <= k) = sum_c w_c sigmoid((threshold_k - mean_c) / scale_c),   threshold_0 < threshold_1 < ...

Moving one mean moves probability to the neighbouring levels, which a softmax has to learn level by level; the
thresholds, features as well, let any distribution be reached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from anyorder.errors import UserError
from anyorder.heads._mixture import bounded, broad
from anyorder.heads.base import Head
from anyorder.heads.categorical import CategoricalDistribution
from anyorder.variables.codecs import Space

FAR = 1e4  # the outer thresholds: every sigmoid is flat there, and 0 * FAR is no NaN in a gradient


@dataclass(eq=False)
class Ordinal(Head):
    """Three features for each of ``components``, then the first threshold and the log gaps to the next ones."""

    name: ClassVar[str] = "ordinal"
    space: ClassVar[Space] = Space.LEVELS
    own_components: ClassVar[bool] = True  # of the latent line behind the levels

    levels: int = 3
    components: int = 3

    def __post_init__(self) -> None:
        if self.levels < 1 or self.components < 1:
            raise UserError(
                f"an ordinal head needs a level and a component, got levels={self.levels}, components={self.components}"
            )

    @property
    def size(self) -> int:
        return 3 * self.components + self.levels - 1

    def forward(self, features: Float[Tensor, "*batch size"]) -> CategoricalDistribution:
        mixture, cuts = features.split([3 * self.components, self.levels - 1], dim=-1)
        logits, means, log_scales = mixture.chunk(3, dim=-1)
        gaps = torch.cat([cuts[..., :1], bounded(cuts[..., 1:]).exp()], dim=-1)
        edges = F.pad(F.pad(gaps.cumsum(-1), (1, 0), value=-FAR), (0, 1), value=FAR)
        log_scales = bounded(log_scales)
        # sigmoid(a) - sigmoid(b) = sigmoid(a) sigmoid(-b) (1 - exp(b - a)), without cancellation.
        scaled = (edges[..., None] - means[..., None, :]) * torch.exp(-log_scales)[..., None, :]
        widths = scaled.diff(dim=-2).clamp(1e-30, 30.0)
        terms = F.logsigmoid(scaled[..., 1:, :]) + F.logsigmoid(-scaled[..., :-1, :]) + torch.log(-torch.expm1(-widths))
        return CategoricalDistribution((logits.log_softmax(-1)[..., None, :] + terms).logsumexp(-1))

    def start(self) -> Float[Tensor, " size"]:
        """All levels about equally probable."""
        inner = torch.arange(1, self.levels, dtype=torch.float64) / self.levels
        edges = torch.logit(inner) * math.sqrt(3) / math.pi
        gaps = edges.diff().log() if self.levels > 2 else edges[:0]
        return torch.cat([broad(self.components, math.sqrt(3) / math.pi), edges[:1].float(), gaps.float()])
