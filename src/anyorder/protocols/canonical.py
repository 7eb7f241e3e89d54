"""Canonical order: w-MAC, one global order of the variables that every query is answered in.

    w_e(j) = 1 if j is the greatest element of e    (MAC section 3.2 A)

Removing the greatest first means answering in ascending order, so paths of different queries overlap as much
as they can and the training masks concentrate. "Greatest" is by a canonical order of the variables: as they stand
(lexicographic), strided (0, k, 2k, ..., 1, k+1, ...: MAC section 5.1 found it better for images), or a given one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.protocols.base import Protocol


@dataclass(frozen=True)
class Canonical(Protocol):
    """Answers by ascending rank in one order: ``order`` if given, else every ``stride``-th variable first."""

    name: ClassVar[str] = "canonical"

    order: tuple[int, ...] | None = None
    stride: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.stride, int) or self.stride < 1:
            raise UserError(f"canonical protocol: stride must be a whole number from 1 up, got {self.stride!r}")
        if self.order is None:
            return
        if self.stride != 1:
            raise UserError("canonical protocol: give an order or a stride, not both")
        if sorted(self.order) != list(range(len(self.order))):
            raise UserError(
                f"canonical protocol: order must hold every index 0..{len(self.order) - 1} exactly once, "
                f"got {self.order!r:.80}"
            )

    def sequence(self, variables: int) -> list[int]:
        """The variables in canonical order."""
        if self.order is None:
            return [i for start in range(min(self.stride, variables)) for i in range(start, variables, self.stride)]
        if len(self.order) != variables:
            raise UserError(f"canonical protocol: its order has {len(self.order)} variables, the data {variables}")
        return list(self.order)

    def ranks(self, variables: int) -> Int[Tensor, " variables"]:
        """The position of each variable in canonical order: all different, so the order is total."""
        # Sorting a permutation gives its inverse.
        return torch.tensor(self.sequence(variables), dtype=torch.long).argsort()

    def keys(
        self, mask: Bool[Tensor, "batch variables"], generator: torch.Generator | None
    ) -> Int[Tensor, "batch variables"]:
        return self.ranks(mask.shape[1]).to(mask.device).expand_as(mask)
