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


_noted: list[Interrupt] = []  # that of the work under way in the main thread, if there is any


@contextmanager
def deferred_interrupt() -> Iterator[Interrupt]:
    """Note Ctrl-C and SIGTERM, so that work in progress ends whole. Only the main thread can do this.

    Parts of such work share what was noted: an interruption that comes between two of them is not lost.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    if _noted:
        yield _noted[0]
        return

    def note(number: int, frame: FrameType | None) -> None:
        if interrupt.requested:
            raise KeyboardInterrupt
        interrupt.requested = True

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    _noted.append(interrupt)
    try:
        yield interrupt
    finally:
        _noted.clear()
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: not set from Python
