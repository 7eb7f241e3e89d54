"""The usual column, told apart quickly: numbers written plainly, with nothing but empty cells and marks among them.

It only ever says yes or "cannot tell"; the slow way, cell by cell with regular expressions, decides the rest. Without
pyarrow it cannot tell anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anyorder.variables.cells import CODE, LEADING_ZERO, Series

try:
    import pyarrow
    import pyarrow.compute
except ImportError:  # it is optional
    pyarrow = None

WHOLE = r"^-?(?:0|[1-9][0-9]{0,17})$"
PADDED = rf"^(?:{LEADING_ZERO})"
LONG = r"^[+-]?[0-9]{17,}$"
FEW = 100


@dataclass(frozen=True)
class PlainNumbers:
    """What the cells are: whole numbers or also fractions, and the texts of the missing ones."""

    whole: bool
    unknown: set[str]


def plain_numbers(texts: Series, marks: Sequence[str]) -> PlainNumbers | None:
    """What these cells are if they are plain numbers, none so long that digits would be lost.

    None has a leading zero or a plus before it either: these would not come back as they were written.
    """
    if pyarrow is None or not len(texts) or getattr(texts.dtype, "storage", "") != "pyarrow":
        return None
    compute = pyarrow.compute
    cells = pyarrow.array(texts)
    missing = compute.is_in(cells, pyarrow.array(["", *marks], cells.type))
    unknown: set[str] = set()
    if compute.any(missing).as_py():
        unknown = set(compute.unique(cells.filter(missing)).to_pylist())
        cells = cells.filter(compute.invert(missing))
    if not len(cells):
        return None
    long = compute.max(compute.binary_length(cells)).as_py() >= 17
    if _all(cells[:FEW], WHOLE) and _all(cells, WHOLE):  # most columns that fail do so at once
        return None if long and _any(cells, LONG) else PlainNumbers(True, unknown)
    try:
        numbers = cells.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        return None
    if np.isnan(numbers).any() or not np.isfinite(numbers).any():
        return None
    if compute.any(compute.starts_with(cells, "+")).as_py():
        return None
    signs = any(compute.any(compute.match_substring(cells, sign)).as_py() for sign in ("e", "E"))
    if signs and _any(cells, rf"^(?:{CODE})$"):
        return None
    zeros = any(compute.any(compute.starts_with(cells, begin)).as_py() for begin in ("0", "-0"))
    return None if (zeros and _any(cells, PADDED)) or (long and _any(cells, LONG)) else PlainNumbers(False, unknown)


def _all(cells: pyarrow.Array, pattern: str) -> bool:
    return bool(pyarrow.compute.all(pyarrow.compute.match_substring_regex(cells, pattern)).as_py())


def _any(cells: pyarrow.Array, pattern: str) -> bool:
    return bool(pyarrow.compute.any(pyarrow.compute.match_substring_regex(cells, pattern)).as_py())
