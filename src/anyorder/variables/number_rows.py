"""Rows of plain numbers to model values, all columns at once.

A column is read by its own codec, one call a column, which costs more than the numbers where there are many columns and
one row. The warps of columns of numbers are stacked here: one look-up and one formula for all, the bits as from
:meth:`Warp.forward_array <anyorder.variables.warp.Warp.forward_array>`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from anyorder.variables.warp import Warp, bent


class StackedWarps:
    """Several warps, each of a column of its own."""

    def __init__(self, warps: Sequence[Warp]) -> None:
        self.straight = np.array([warp.straight for warp in warps], dtype=bool)
        curved = [warp for warp in warps if not warp.straight]
        self._lines = np.array([(warp.x[0], warp.slope[0], warp.z[0]) for warp in warps if warp.straight]).reshape(
            -1, 3
        )
        self._ends = np.array([(warp.x[0], warp.x[-1], warp.slope[0], warp.slope[-1]) for warp in curved]).reshape(
            -1, 4
        )
        most = max((len(warp.x) - 2 for warp in curved), default=0)
        # Never reached behind the last knot of a short one.
        self._inner = np.full((len(curved), most), np.inf)
        self._tables = np.ones((6, len(curved), most + 1))
        for number, warp in enumerate(curved):
            inner, table = warp.lookup
            self._inner[number, : len(inner)] = inner
            self._tables[:, number, : table.shape[1]] = table
        self._columns = np.arange(len(curved))

    def forward(self, units: Float[np.ndarray, " columns"]) -> Float[np.ndarray, " columns"]:
        """The model values of one row of numbers."""
        out = np.empty(len(units))
        if len(self._lines):
            first, slope, bottom = self._lines.T
            out[self.straight] = (units[self.straight] - first) * slope + bottom
        if len(self._ends):
            x = units[~self.straight]
            bins = (self._inner <= x[:, None]).sum(axis=1)
            out[~self.straight] = bent(x, self._tables[:, self._columns, bins], *self._ends.T)
        return out
