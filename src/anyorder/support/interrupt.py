"""Ctrl-C that waits for a good moment: the first one is noted, the second one interrupts at once.

SIGTERM is how Slurm, Kubernetes and systemd say the same, so it counts as Ctrl-C.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Interrupt:
    """Whether the work was asked to end."""

    requested: bool = False
    blocks: int = 0  # parts of the work that are under way: between them nothing is interrupted


_noted: list[Interrupt] = []  # that of the work under way in the main thread, if there is any
_until: list[ExitStack] = []  # where that work ends, if it does not end with its first part


@contextmanager
def deferred_interrupt() -> Iterator[Interrupt]:
    """Note Ctrl-C and SIGTERM, so that work in progress ends whole. Only the main thread can do this.

    Parts of such work share what was noted: an interruption that comes between two of them is not lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Interrupt()
        return
    with ExitStack() as own:
        if not _noted:
            (_until[-1] if _until else own).enter_context(_noting())
        interrupt = _noted[0]
        interrupt.blocks += 1
        try:
            yield interrupt
        finally:
            interrupt.blocks -= 1


@contextmanager
def deferred_once_begun() -> Iterator[None]:
    """Within, interruptions are deferred from the first block of :func:`deferred_interrupt` to the end of this one.

    Until then they interrupt as ever: nothing that took long would be lost.
    """
    with ExitStack() as whole:
        if threading.current_thread() is threading.main_thread():
            _until.append(whole)
            whole.callback(_until.remove, whole)
        yield


@contextmanager
def _noting() -> Iterator[None]:
    interrupt = Interrupt()

    def note(number: int, frame: FrameType | None) -> None:
        if interrupt.requested and interrupt.blocks:
            raise KeyboardInterrupt
        interrupt.requested = True

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    _noted.append(interrupt)
    try:
        yield
    finally:
        _noted.clear()
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: not set from Python
