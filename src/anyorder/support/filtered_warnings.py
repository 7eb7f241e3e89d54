"""Warnings ignored or raised for a moment, by one thread at a time.

Python keeps its filters for the whole process. Of two threads that change them at once, the second to begin takes the
changed filters for the usual ones, and puts them back at its end, for good.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

_LOCK = threading.RLock()


@contextmanager
def warnings_set(action: Literal["error", "ignore"], category: type[Warning] = Warning) -> Iterator[None]:
    """Within, warnings of that category are errors or nothing; no generator should yield within."""
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter(action, category)
        yield
