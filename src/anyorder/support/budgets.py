"""How many minutes a fit may take, unless its modality or somebody says otherwise."""

from __future__ import annotations

MINUTES = 2.0
FEW_CELLS, QUICK_MINUTES = 40_000, 0.5
"""At the command line a table of fewer cells has less time: more hardly gains anything, and a fit says if it would."""
