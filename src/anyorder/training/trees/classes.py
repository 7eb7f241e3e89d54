"""What trees can tell apart: the classes of a variable, which are its levels, its atoms and bins of its numbers."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from anyorder.heads import Binned, Categorical, Head
from anyorder.variables.warp import Warp

FEWEST_IN_A_BIN = 6  # known cells


def tree_head(
    head: Head, values: Float[np.ndarray, " cells"], bins: int, shift: float, warp: Warp | None = None
) -> Head:
    """The variable's head with bins in place of its smooth family; ``values`` are its known cells.

    ``warp`` leads to their normal scores, if it is known already.
    """

    def histogram(family: Head, cells: Float[np.ndarray, " cells"]) -> Head:
        if family.levels:
            return family if family.free else Categorical(family.levels)
        lattice = getattr(family, "lattice", None)
        if not len(cells):
            return Binned(lattice=lattice)
        # Bins of a few cells each would be noise.
        few = max(4, min(bins, len(cells) // FEWEST_IN_A_BIN))
        return Binned.fit(cells.astype(np.float64), few, shift, lattice, warp)

    return head.with_family(histogram, values)
