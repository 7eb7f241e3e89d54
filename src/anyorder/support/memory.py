"""Whether a result fits into memory, asked before any of it is taken.

A number of draws or rows that is far too large would otherwise end in an allocator's error, or in the system ending the
process. The estimate counts the result alone, so it refuses what cannot work and never what can.
"""

from __future__ import annotations

import os
import sys

from anyorder.errors import UserError

NUMBER = 8  # bytes


def check_room(name: str, count: int, numbers: int, advice: str = "ask for fewer at a time") -> None:
    """Refuse ``count`` parts of so many ``numbers`` each if they cannot fit into this machine's memory.

    ``name`` is what the user calls the count.
    """
    needed, there = NUMBER * count * max(numbers, 1), machine_memory()
    if needed > there:
        raise UserError(
            f"{name}={count} needs at least {_gigabytes(needed)} of memory, and this machine has {_gigabytes(there)}; "
            f"{advice}"
        )


def machine_memory() -> int:
    """The bytes of memory that this machine has; where it does not tell, as many as can be addressed."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return sys.maxsize


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count < 1e18 else f"{count / 1e9:.1g} GB"
