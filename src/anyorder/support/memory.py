"""Whether a result fits into memory, asked before any of it is taken.

A number of draws or rows that is far too large would otherwise end in an allocator's error, or in the system ending the
process. The estimate counts the result alone, so it refuses what cannot work and never what can.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from anyorder.errors import UserError

NUMBER = 8  # bytes
LITTLE = 1 << 22  # bytes that every machine has: to ask the system takes longer than a small question


def check_room(name: str, count: int, numbers: int, advice: str = "ask for fewer at a time") -> None:
    """Refuse ``count`` parts of so many ``numbers`` each if they cannot fit into this machine's memory.

    ``name`` is what the user calls the count.
    """
    needed = NUMBER * count * max(numbers, 1)
    if needed > LITTLE and needed > (there := machine_memory()):
        raise UserError(
            f"{name}={count} needs at least {_gigabytes(needed)} of memory, and this machine has {_gigabytes(there)}; "
            f"{advice}"
        )


def machine_memory() -> int:
    """The bytes of memory that this process may have: the machine's, or its container's where that has less.

    Where nobody tells, as many as can be addressed.
    """
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        there = sys.maxsize
    return min([there, *_group_limits()])


def _group_limits(groups: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> Iterator[int]:
    """The limits of the control groups that this process is in (Linux), of both versions, and of those around them."""
    try:
        lines = groups.read_text().splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        number, kinds, name = line.split(":", 2)
        if number == "0" and not kinds:
            top, limit = root, "memory.max"
        elif "memory" in kinds.split(","):
            top, limit = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        inner = PurePosixPath(name.lstrip("/"))  # within a container it may be a name that only the outside knows
        for group in (inner, *inner.parents):
            with suppress(OSError, ValueError):  # no such group; or "max", which is no number
                yield int((top / group / limit).read_text())


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count < 1e18 else f"{count / 1e9:.1g} GB"
