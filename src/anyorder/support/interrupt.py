"""Ctrl-C that waits for a good moment: the first one is noted, the second one interrupts at once.

SIGTERM is how Slurm, Kubernetes and systemd say the same, so it counts as Ctrl-C.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Interrupt:
    """Whether the work was asked to end."""

    requested: bool = False


@contextmanager
def deferred_interrupt() -> Iterator[Interrupt]:
    """Note Ctrl-C and SIGTERM, so that work in progress ends whole. Only the main thread can do this."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def note(number: int, frame: FrameType | None) -> None:
        if interrupt.requested:
            raise KeyboardInterrupt
        interrupt.requested = True

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: not set from Python
