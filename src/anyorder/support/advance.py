"""Telling how far a long answer is, without handing a bar through every function on the way.

A loop over parts of its rows is :func:`tracked`; whoever started the work may be watching (:func:`watched`). Only the
outermost loop of a thread tells, so that the loops inside it do not begin to count anew.
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


_now = _Watching()


@contextmanager
def watched(watch: Watch | None) -> Iterator[None]:
    """Within, the loops of this thread tell ``watch`` how far they are; nobody, for None."""
    before, _now.watch = _now.watch, watch
    try:
        yield
    finally:
        _now.watch = before


def tracked(parts: Iterable[slice], total: int) -> Iterator[slice]:
    """The parts of ``total`` rows one by one; once a part is worked off, its rows count as done."""
    watch = _now.watch
    if watch is None:
        yield from parts
        return
    for part in parts:
        with watched(None):
            yield part
        watch(min(int(part.stop), total), total)
