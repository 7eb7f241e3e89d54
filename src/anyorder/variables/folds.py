"""The fold of a row: a pure function of what its cells say, so that nothing has to be kept to find it again.

A table may be fitted in K parts, each of which learns from the rows outside one fold. A row's fold is

    fold(x) = hash(x) mod K

with the hash of its known cells as numbers in the units of the data: levels as codes, times as days, all of them
rounded to float32 (so that 0.1 is 0.1 whatever the precision of its column), whichever way the columns are then bent.
Equal rows share a fold: a copy of a row that a part has learned from is never taken for one that it has not seen. The
hash is made of whole numbers alone (the finaliser of SplitMix64), so it is the same on every machine.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from anyorder.support.checks import whole
from anyorder.variables.encoding import Encoding

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
UNKNOWN = np.uint64(1 << 40)  # what no float32 is


def folds_of(encoding: Encoding, frame: pd.DataFrame, folds: int) -> Int[np.ndarray, " rows"]:
    """The fold of each row of ``frame``, out of ``folds``."""
    cells, known = encoding.cells(frame)
    return fold_of(cells, known, folds)


def fold_of(
    cells: Float[np.ndarray, "rows variables"], known: Bool[np.ndarray, "rows variables"], folds: int
) -> Int[np.ndarray, " rows"]:
    """The fold of each row, from its cells as :meth:`Encoding.cells` gives them."""
    whole("folds", folds)
    hashed: Int[np.ndarray, " rows"] = (row_hash(cells, known) % np.uint64(folds)).astype(np.int64)
    return hashed


def row_hash(
    cells: Float[np.ndarray, "rows variables"], known: Bool[np.ndarray, "rows variables"]
) -> Int[np.ndarray, " rows"]:
    """A number of 64 bits for each row, equal for equal rows."""
    with np.errstate(over="ignore"):  # too large for float32 is infinite, like others of its size
        bits = (np.where(known, cells, 0.0).astype(np.float32) + np.float32(0)).view(np.uint32).astype(np.uint64)
    bits = np.where(known, bits, UNKNOWN)
    state = np.zeros(len(cells), dtype=np.uint64)
    for column in bits.T:
        state = _mixed((state ^ column) + _GOLDEN)
    return state


def _mixed(state: Int[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    """Every bit of the state spread over all of them."""
    state = (state ^ (state >> np.uint64(30))) * _FIRST
    state = (state ^ (state >> np.uint64(27))) * _SECOND
    spread: Int[np.ndarray, " rows"] = state ^ (state >> np.uint64(31))
    return spread
