"""How many threads work takes: one, unless the caller or the environment asks for more.

On an idle machine a second thread is worth up to twice the steps. Beside other work it costs nearly all of them: both
wait for each other at every product of matrices, each time until the system lets the slowest of them run. So the number
is what an option says, else what ``OMP_NUM_THREADS`` or ``MKL_NUM_THREADS`` says, else one. It never follows the
machine: results are repeatable only for the same number of threads.

Torch counts twice: every thread has a number of its own, which it takes, when it first uses torch, from the number of
the whole process; setting one sets both. So a thread that begins inside another's block begins with that block's
number, and would restore it as the process's. What is restored is therefore the number that the process had before
the first of the blocks that overlap.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

import torch

from anyorder.support.advance import checked

P = ParamSpec("P")
R = TypeVar("R")

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


@functools.cache
def most_threads() -> int:
    """More threads than this only wait for each other, and from some number on the system ends the process."""
    return max(256, 8 * (os.cpu_count() or 1))


def usual_threads() -> int:
    """The number of threads where no option names one: what the environment says, or one."""
    for variable in VARIABLES:
        first = os.environ.get(variable, "").partition(",")[0].strip()  # OpenMP allows a list, one for each depth
        if first.isascii() and first.isdigit() and int(first) > 0:
            return min(int(first), most_threads())
    return 1


@dataclass
class _Blocks:
    """The threads that are inside a block now, and the process's number before the first of them entered."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    inside: int = 0
    before: int = 0

    def enter(self, own: int) -> int:
        """Count one more, whose own number is this; the number to restore."""
        with self.lock:
            # Whoever left last gave this number to the process, and no thread whose number it is has changed it since.
            if not self.inside and own != self.before:
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
    before = now if nested else _blocks.enter(now)
    _thread.inside = True
    try:
        torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)
        _thread.inside = nested
        if not nested:
            _blocks.leave()


def answering(function: Callable[P, R]) -> Callable[P, R]:
    """A function that answers questions, on the usual number of threads and on no more than torch has.

    Inside a block of :func:`torch_threads`, such as training, the block's number holds. Before it begins, work that
    nobody wants any more ends (:func:`anyorder.support.advance.checked`).
    """

    @functools.wraps(function)
    def on_few_threads(*args: P.args, **kwargs: P.kwargs) -> R:
        checked()
        if getattr(_thread, "inside", False) or torch.get_num_threads() <= (count := usual_threads()):
            return function(*args, **kwargs)
        with torch_threads(count):
            return function(*args, **kwargs)

    return on_few_threads


def _number_of_the_process() -> int:
    """The number that a new thread begins with."""
    found: list[int] = []
    reader = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    reader.start()
    reader.join()
    return found[0]
