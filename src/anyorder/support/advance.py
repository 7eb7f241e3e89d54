"""Telling how far a long answer is, without handing a bar through every function on the way.

A loop over parts of its rows is :func:`tracked`; whoever started the work may be watching (:func:`watched`). A loop
inside another one tells how far that one is within its part, so that nothing begins to count anew. Between two of its
steps, work may be told to end before its time: at :func:`checked`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

Watch = Callable[[int, int], None]
"""Called after every part with the number of rows that are done, and that of all rows."""


class _Watching(threading.local):
    """Who is watching, in each thread."""

    watch: Watch | None = None
    check: Callable[[], None] | None = None


_now = _Watching()


@contextmanager
def watched(watch: Watch | None, check: Callable[[], None] | None = None) -> Iterator[None]:
    """Within, the loops of this thread tell ``watch`` how far they are; nobody, for None.

    ``check`` is called at every place where work can end early, and raises an exception to end it.
    """
    before, _now.watch = (_now.watch, _now.check), watch
    if check is not None:
        _now.check = check
    try:
        yield
    finally:
        _now.watch, _now.check = before


def checked() -> None:
    """A place where work ends early, if whoever started it no longer wants it."""
    if _now.check is not None:
        _now.check()


def is_watched() -> bool:
    """Whether someone watches the loops of this thread."""
    return _now.watch is not None


def tracked(parts: Iterable[slice], total: int) -> Iterator[slice]:
    """The parts of ``total`` rows one by one; once a part is worked off, its rows count as done."""
    watch = _now.watch
    if watch is None:
        yield from parts
        return
    for part in parts:
        first, last = int(part.start), min(int(part.stop), total)
        with watched(_inside(watch, first, last, total)):
            yield part
        watch(last, total)


def _inside(watch: Watch, first: int, last: int, total: int) -> Watch:
    """What a loop over one part tells, as rows of the whole; one that begins anew is heard where it gets further."""
    reached = first

    def further(done: int, of: int) -> None:
        nonlocal reached
        now = first + (last - first) * done // max(of, 1)
        if reached < now < last:
            reached = now
            watch(now, total)

    return further
