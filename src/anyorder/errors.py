"""The one error a user is meant to read: what was expected, what came, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST_MESSAGE = 2000  # characters of a message
CUT = " [...] "  # stands for the middle of a longer one


class UserError(ValueError):
    """A mistake in what was asked or given, never a fault of the library.

    The command line prints its message as one line and exits with status 2. A message that quotes a very long text is
    cut in its middle.
    """

    def __init__(self, message: str = "") -> None:
        if len(message) > LONGEST_MESSAGE:
            half = (LONGEST_MESSAGE - len(CUT)) // 2  # so that a copy, made of the cut message, is not cut again
            message = message[:half] + CUT + message[-half:]
        super().__init__(message)


def nearest(name: object, options: Iterable[object], limit: int = 8, *, noun: str = "names") -> str:
    """A hint such as ``did you mean 'rooms'?`` for an unknown name.

    When nothing comes close, the first few valid names (or whatever ``noun`` calls them) are listed instead.
    """
    valid = [str(option) for option in options]
    close = difflib.get_close_matches(str(name), valid, n=1, cutoff=0.6)
    if not close:
        folded = {option.casefold(): option for option in valid}
        found = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.6)
        close = [folded[key] for key in found]
    if close:
        return f"did you mean {close[0]!r}?"
    shown = ", ".join(repr(option) for option in valid[:limit])
    more = f", ... ({len(valid)} in all)" if len(valid) > limit else ""
    return f"valid {noun}: {shown}{more}"
