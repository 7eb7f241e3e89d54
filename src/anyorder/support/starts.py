"""What ``torchrun`` has said to this process in its environment; read without torch, since commands ask at once."""

from __future__ import annotations

import os

STARTED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def started_together() -> bool:
    """Whether this process is one of several that were started to train together."""
    return all(os.environ.get(name) for name in STARTED) and os.environ["WORLD_SIZE"] not in ("0", "1")


def helps() -> bool:
    """Whether this process was started beside the one that writes and shows: it does neither."""
    return started_together() and os.environ["RANK"] != "0"


def place_on_machine() -> int | None:
    """The number of this process among those of its machine; None if it is alone."""
    number = os.environ.get("LOCAL_RANK", "")
    return int(number) if started_together() and number.isdecimal() else None
