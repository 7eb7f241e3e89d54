"""No head at all: what stands in the place of one where a variable is context, which nobody asks for.

It reads no feature, so no network spends an output on the variable. It says how many levels the variable has, and which
atoms, because networks read its values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.errors import UserError
from anyorder.heads.base import Head
from anyorder.support.checks import inside, whole

LARGEST = 1e30  # of an atom


@dataclass(eq=False)
class Context(Head):
    """A variable of so many ``levels``, 0 for a number; ``atoms``: single values that many rows have."""

    name: ClassVar[str] = "context"
    wraps: ClassVar[bool] = True  # a column is context or not: it is nobody's choice of a family

    levels: int = 0
    atoms: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.levels = whole("levels", self.levels, 0)
        self.atoms = tuple(self.atoms)
        if not all(inside(atom, f"[{-LARGEST}, {LARGEST}]") for atom in self.atoms):
            raise UserError(f"atoms of context must be numbers, got {self.atoms!r:.80}")
        if list(self.atoms) != sorted(set(self.atoms)) or (self.atoms and self.levels):
            raise UserError(f"atoms of context must increase and be numbers, got {self.atoms!r:.80}")

    @property
    def size(self) -> int:
        return 0

    def with_family(
        self, family: Callable[[Head, Float[np.ndarray, " values"]], Head], values: Float[np.ndarray, " values"]
    ) -> Head:
        return self

    def forward(self, features: Float[Tensor, "*batch size"]) -> Distribution:
        raise TypeError("a variable of the context has no distribution: the schema says who can be asked for")
