"""A chosen number of torch threads inside a block of code.

Small networks gain little from several threads, and on a busy machine threads that wait for each other can be many
times slower than one. Results are repeatable only for the same number of threads.

Torch counts twice: every thread has a number of its own, which it takes, when it first uses torch, from the number of
the whole process; setting one sets both. So a thread that begins inside another's block begins with that block's
number, and would restore it as the process's. What is restored is therefore the number that the process had before
the first of the blocks that overlap.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch


def most_threads() -> int:
    """More threads than this only wait for each other, and from some number on the system ends the process."""
    return max(256, 8 * (os.cpu_count() or 1))


@dataclass
class _Blocks:
    """The threads that are inside a block now, and the process's number before the first of them entered."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    inside: int = 0
    before: int = 0

    def enter(self) -> int:
        """Count one more; the number to restore."""
        with self.lock:
            if not self.inside:
                self.before = _number_of_the_process()
            self.inside += 1
            return self.before

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1


_blocks = _Blocks()
_thread = threading.local()


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Use ``count`` threads inside, and as many as before outside, whatever other threads of Python do meanwhile."""
    nested = getattr(_thread, "inside", False)
    # Asked for in any case: a thread that has not asked before would take the process's number at its first sum.
    now = torch.get_num_threads()
    before = now if nested else _blocks.enter()
    _thread.inside = True
    try:
        torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)
        _thread.inside = nested
        if not nested:
            _blocks.leave()


def _number_of_the_process() -> int:
    """The number that a new thread begins with."""
    found: list[int] = []
    reader = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    reader.start()
    reader.join()
    return found[0]
