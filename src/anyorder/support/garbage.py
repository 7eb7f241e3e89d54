"""How often a command looks for garbage: objects that refer to each other in circles and to which nothing else refers.

Modules stay to the end once they are imported. Python's collector goes through all of them again and again while more
are imported, and once more when the process ends: a third of a short command, for next to nothing found.
"""

from __future__ import annotations

import atexit
import gc

SELDOM = (10_000, 20, 20)  # new objects, in place of 700, and how many rounds over young ones go with one over old ones


def collect_seldom() -> None:
    """Look for garbage seldom, and not at all when the process ends. For a process that is one command."""
    gc.set_threshold(*SELDOM)
    atexit.register(gc.freeze)
