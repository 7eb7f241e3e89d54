"""What trees can tell apart: the classes of a variable, which are its levels, its atoms and bins of its numbers."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.heads import Bernoulli, Binned, Bounded, Categorical, Head, Spiked
from anyorder.variables.warp import Warp

FEWEST_IN_A_BIN = 6  # known cells


def tree_head(
    head: Head, values: Float[np.ndarray, " cells"], bins: int, shift: float, warp: Warp | None = None
) -> Head:
    """The same variable's head with bins in place of its smooth family; ``values`` are its known cells.

    ``warp`` leads to their normal scores, if it is known already.
    """
    if isinstance(head, Bounded):
        return Bounded(tree_head(head.base, values, bins, shift, warp), head.low, head.high)
    if isinstance(head, Spiked):
        atoms = np.asarray(head.atoms, dtype=values.dtype)
        return Spiked(head.atoms, tree_head(head.base, values[~np.isin(values, atoms)], bins, shift, warp))
    if head.levels:
        return head if isinstance(head, Bernoulli) else Categorical(head.levels)
    lattice = getattr(head, "lattice", None)
    if not len(values):
        return Binned(lattice=lattice)
    # Bins of a few cells each would be noise.
    few = max(4, min(bins, len(values) // FEWEST_IN_A_BIN))
    return Binned.fit(values.astype(np.float64), few, shift, lattice, warp)


def classes_of(head: Head, values: Float[Tensor, " cells"]) -> tuple[Int[Tensor, " cells"], int]:
    """Which class of a tree's head each value is, and how many there are."""
    if isinstance(head, Bounded):
        return classes_of(head.base, values)
    if isinstance(head, Spiked):
        found = values[:, None] == torch.tensor(head.atoms, dtype=values.dtype)
        rest, count = classes_of(head.base, values)
        atoms = len(head.atoms)
        return torch.where(found.any(1), found.long().argmax(1), atoms + rest), atoms + count
    if isinstance(head, Binned):
        return head.bin_of(values), head.size
    return values.long(), head.levels


def atoms_of(head: Head) -> int:
    """How many of the classes are atoms; they come first."""
    return atoms_of(head.base) if isinstance(head, Bounded) else len(head.atoms) if isinstance(head, Spiked) else 0
