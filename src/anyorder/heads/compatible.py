r"""A head's levels, some of which go badly with what else is known: their probability is held below a limit.

The last features are the logarithms of limits, one a level, which :mod:`anyorder.networks.dependent` reads off the
columns that fix this one; 0 is no limit. From the lowest limit r to the highest, the levels whose limit is r or less
are made rarer together, if their mass U is above r of all; with R the mass of the others,

$$U \leftarrow \min\Big(U, \frac{r}{1 - r} R\Big).$$

The result is normalised over the levels, so every step of a chain stays a distribution and every answer exact. How the
levels of one limit compare with each other, and those without one, is left to the head inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from anyorder.distributions.base import Distribution
from anyorder.errors import UserError
from anyorder.heads.base import Head
from anyorder.heads.categorical import CategoricalDistribution
from anyorder.support.checks import whole

TINY = 1e-12
ENOUGH = 1e9  # a limit that is none


@dataclass(eq=False)
class Compatible(Head):
    """``base``, and from feature ``after`` on the log of a limit for every level; with ``after`` 0 there are none."""

    name: ClassVar[str] = "compatible"
    wraps: ClassVar[bool] = True

    base: Head
    after: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.base, Head):
            raise UserError(f"a compatible head needs another head inside, got {self.base!r:.80}")
        self.after = whole("after", self.after, 0)
        if self.after and not self.base.levels:
            raise UserError(f"only levels can have limits, and the head {self.base.name!r} has none")
        if 0 < self.after < self.base.size:
            raise UserError(f"limits from feature {self.after} on overlap the {self.base.size} of the head")
        self.parts = nn.ModuleList([self.base])

    @property
    def size(self) -> int:
        return self.after + self.base.levels if self.after else self.base.size

    @property
    def levels(self) -> int:
        return self.base.levels

    @property
    def blended(self) -> tuple[Head, ...]:
        return (self.base,)

    @property
    def atom_count(self) -> int:
        return self.base.atom_count

    def only(self, parts: Sequence[int], widths: Sequence[int]) -> Compatible:
        gone = sum(widths) - sum(widths[part] for part in parts)
        return Compatible(self.base.only(parts, widths), self.after - gone if self.after else 0)

    def classes(self, values: Float[Tensor, "*batch"]) -> tuple[Int[Tensor, "*batch"], int]:
        return self.base.classes(values)

    def forward(self, features: Float[Tensor, "*batch size"]) -> Distribution:
        law: Distribution = self.base(features[..., : self.base.size])
        if not self.after:
            return law
        codes = torch.arange(self.levels, dtype=features.dtype, device=features.device)
        each = law.log_prob(codes.reshape(-1, *(1,) * len(law.shape)).expand(-1, *law.shape)).movedim(0, -1)
        return CategoricalDistribution(limited(each, features[..., self.after :].to(each.dtype)))

    def start(self) -> Float[Tensor, " size"]:
        """The features of the head inside, and no limits."""
        return torch.cat([self.base.start(), torch.zeros(self.size - self.base.size)])


def limited(
    log_probs: Float[Tensor, "*batch levels"], log_limits: Float[Tensor, "*batch levels"]
) -> Float[Tensor, "*batch levels"]:
    """Log-probabilities, not yet normalised, in which the levels of every limit have no more than that together."""
    limit, order = log_limits.double().sort(dim=-1, stable=True)
    mass = log_probs.double().gather(-1, order).exp()
    # What comes after each level: at the last one of a limit, all that may have more.
    after = F.pad(mass.flip(-1).cumsum(-1).flip(-1)[..., 1:], (0, 1))
    last = F.pad(limit[..., 1:] > limit[..., :-1], (0, 1))  # where all levels are ruled out alike, nothing is said
    most = (limit - torch.log1p(-limit.clamp(max=-TINY).exp())).exp() * after
    most = most.masked_fill(~last | (limit >= 0) | (after <= 0), ENOUGH)
    # U_k = min(U_{k-1} + p_k, most_k) for every k at once: U_k - P_k is a running minimum, with P the sum of all p.
    whole = mass.cumsum(-1)
    gone = (most - whole).clamp(max=0.0).cummin(-1).values
    before = F.pad((whole + gone)[..., :-1], (1, 0)) + mass
    share = (most / before.clamp(min=1e-300)).clamp(max=1.0)
    factor = share.clamp(min=1e-300).log().flip(-1).cumsum(-1).flip(-1)
    held = log_probs.gather(-1, order) + factor.to(log_probs.dtype)
    return torch.zeros_like(log_probs).scatter(-1, order, held)
