"""Two threads in one kind of block at once, the second of which leaves after the first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager


def enter_twice(block: Callable[[], AbstractContextManager[None]]) -> None:
    """What a block puts back when it ends must not be what another one had put there."""
    inside, first_leaves, second_leaves = (threading.Event() for _ in range(3))

    def first() -> None:
        with block():
            inside.set()
            first_leaves.wait(10)

    def second() -> None:
        with block():  # would begin while the first is inside, and end after it
            second_leaves.wait(10)

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    inside.wait(10)
    threads[1].start()
    threads[1].join(0.2)
    first_leaves.set()
    threads[0].join()
    second_leaves.set()
    threads[1].join()
