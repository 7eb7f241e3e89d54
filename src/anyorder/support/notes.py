"""What a user should know of an answer, and is no error: a warning of Python's, or a note to whoever listens.

Python keeps its filters for warnings, and the place where they are shown, for the whole process, so a service that
answers in threads cannot collect the warnings of one answer. It listens here, in its own thread, and the process stays
as it is: in a notebook the next cell shows its warnings as ever.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class _Heard(threading.local):
    notes: list[str] | None = None


_heard = _Heard()


def note(text: str, *, stacklevel: int) -> None:
    """Say something of an answer: to the listener of this thread, each text once, or else as a ``UserWarning``.

    ``stacklevel`` counts as that of ``warnings.warn`` does: 1 is the caller.
    """
    if _heard.notes is None:
        warnings.warn(text, UserWarning, stacklevel=stacklevel + 1)
    elif text not in _heard.notes:
        _heard.notes.append(text)


@contextmanager
def notes_heard() -> Iterator[list[str]]:
    """Within, the notes of this thread; none of them becomes a warning."""
    before, _heard.notes = _heard.notes, []
    try:
        yield _heard.notes
    finally:
        _heard.notes = before
