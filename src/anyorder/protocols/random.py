"""Random order: w-RND, the protocol of ARDM, ACE and of SFARM's uniform mode.

    w_e(j) = 1 / |e|    (MAC section 3.1: the next variable to remove is drawn uniformly)

so all |u|! orders of a query are equally likely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.errors import UserError
from anyorder.protocols.base import Protocol


@dataclass(frozen=True)
class Random(Protocol):
    """A fresh, uniformly drawn order for every query, decided by the generator."""

    name: ClassVar[str] = "random"

    random: ClassVar[bool] = True

    def keys(
        self, mask: Bool[Tensor, "batch variables"], generator: torch.Generator | None
    ) -> Float[Tensor, "batch variables"]:
        if generator is None:
            raise UserError("the random protocol draws its order: give a generator (or a seed)")
        noise = torch.rand(mask.shape, generator=generator, device=generator.device, dtype=torch.float64)
        return noise.to(mask.device)
