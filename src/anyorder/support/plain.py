"""Values of numpy, pandas and torch as what JSON knows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Values of numpy, pandas and torch as what JSON knows; a number that is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, Sequence | set | frozenset):
        return [plain(item) for item in value]
    # Dates print themselves as ISO text; their `.item()`, where they have one, would lose the unit.
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return str(value)
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):  # an Estimate too, which prints itself with its error
        return float(value) if math.isfinite(value) else None
    return value if isinstance(value, int | bool) else str(value)
