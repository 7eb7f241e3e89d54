"""The contract of a masking: a distribution over queries (MAC's test mask distribution M)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.query import Query


@dataclass(frozen=True)
class Stage:
    """Where a batch of trajectories stands: what is active, what can be next (each alike), and the mode of each row."""

    known: Bool[Tensor, "batch variables"]
    next: Bool[Tensor, "batch variables"]
    mode: Int[Tensor, " batch"]


@dataclass(frozen=True)
class Masking(ABC):
    """Which questions we train for. A final subclass states its law in its docstring and has a ``name``."""

    name: ClassVar[str]

    staged: ClassVar[bool] = False
    """Whether it is a law of whole trajectories of masks, whose states :meth:`stage` draws."""

    @property
    def mode_names(self) -> tuple[str, ...]:
        """The masking modes among which it draws, by name; none unless a network could be asked in them."""
        return ()

    @property
    def always_known(self) -> tuple[int, ...]:
        """Variables that every query knows: its law is that of :attr:`beyond_context` about all others."""
        return ()

    @property
    def beyond_context(self) -> Masking:
        """The masking about the variables that are not always known, counted as if there were no others."""
        return self

    @abstractmethod
    def draw(self, batch: int, variables: int, generator: torch.Generator) -> Query:
        """``batch`` independent queries over ``variables`` variables."""

    def draw_for(self, values: Float[Tensor, "batch variables"], generator: torch.Generator) -> Query:
        """One query for each of these rows; only a masking that must look at the data (whole words) differs."""
        return self.draw(len(values), values.shape[1], generator)

    def stage(self, batch: int, variables: int, generator: torch.Generator) -> Stage:
        """A state of a trajectory for every row; only a ``staged`` masking has any."""
        raise UserError(f"the masking {self.name!r} has no stages")

    def cardinalities(self, variables: int) -> Float[Tensor, " sizes"] | None:
        """P(|asked| = c) for c = 0..variables, if queries have no evidence and are exchangeable given c.

        That symmetry is what lets cardinality reweighting be drawn exactly. ``None`` where it does not hold.
        """
        return None
