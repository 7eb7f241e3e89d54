"""Evidence in random order, what is asked in canonical order: a chain that learns from every way to be told.

Under w-MAC evidence is read in the order in which it would have been answered, so a whole chain (evidence, then what is
asked) trains few sets of known variables. Here a share of the questions has its evidence read in a uniformly drawn
order; what is asked follows in canonical order, so MAC's argument for that order stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from anyorder.errors import UserError
from anyorder.protocols.base import Protocol
from anyorder.protocols.canonical import Canonical
from anyorder.protocols.random import Random
from anyorder.support.checks import inside


@dataclass(frozen=True)
class AnyEvidence(Protocol):
    """``share`` of the questions read their evidence in random order; ``stride`` is that of the canonical order."""

    name: ClassVar[str] = "any_evidence"

    random: ClassVar[bool] = True

    share: float = 1.0
    stride: int = 1

    def __post_init__(self) -> None:
        if not inside(self.share, "[0, 1]"):
            raise UserError(f"any_evidence protocol: share must be a number from 0 to 1, got {self.share!r}")
        self._canonical()  # refuses a stride that is none

    def keys(
        self, mask: Bool[Tensor, "batch variables"], generator: torch.Generator | None
    ) -> Int[Tensor, "batch variables"]:
        return self._canonical().keys(mask, generator)

    def evidence_keys(
        self, mask: Bool[Tensor, "batch variables"], generator: torch.Generator | None
    ) -> Shaped[Tensor, "batch variables"]:
        drawn = Random().keys(mask, generator)
        assert generator is not None  # Random has refused none
        chosen = torch.rand(len(mask), 1, generator=generator, device=generator.device) < self.share
        return drawn.where(chosen.to(mask.device), self.keys(mask, generator).to(drawn.dtype))

    def _canonical(self) -> Canonical:
        return Canonical(stride=self.stride)
