"""The one error a user is meant to read: what was expected, what came, what to do."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from numbers import Integral, Real

LONGEST = 2000  # characters of a message
CUT = " [...] "  # stands for the middle of a longer one
SEEDS = 2**63  # so many seeds there are: 0 and up, as torch's generators take them


class UserError(ValueError):
    """A mistake in what was asked or given, never a fault of the library.

    The command line prints its message as one line and exits with status 2. A message that quotes a very long text is
    cut in its middle.
    """

    def __init__(self, message: str = "") -> None:
        if len(message) > LONGEST:
            half = (LONGEST - len(CUT)) // 2  # so that a copy, made of the cut message, is not cut again
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


def whole(name: str, value: object, least: int = 1, most: int | None = None) -> int:
    """``value`` as an int, where it is a whole number from ``least`` up to ``most``; NumPy's numbers are taken too."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise UserError(f"{name} must be a whole number, {least} or more, got {value!r}")
    if most is not None and int(value) > most:
        raise UserError(f"{name} must be a whole number, {most} at most, got {value!r}")
    return int(value)


def checked_seed(value: object) -> int:
    """``value`` as an int, where it can start a generator: every public function checks its seed first."""
    seed = whole("seed", value, 0)
    if seed >= SEEDS:
        raise UserError(f"seed must be a whole number, 0 or more, got {value!r}; the largest one is {SEEDS - 1}")
    return seed


def inside(value: object, interval: str) -> bool:
    """Whether a value is a number in an interval, written as ``[0, 1)`` or ``(0, inf]``; NaN and booleans are in none.

    >>> inside(0.5, "(0, 1]"), inside(0, "(0, 1]"), inside("0.5", "(0, 1]")
    (True, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    low, high = (float(end) for end in interval[1:-1].split(","))
    try:
        number = float(value)
    except OverflowError:  # a whole number that no float can hold
        number = -math.inf if str(value).startswith("-") else math.inf
    above = low <= number if interval[0] == "[" else low < number
    below = number <= high if interval[-1] == "]" else number < high
    return above and below


def positive(name: str, value: object) -> float:
    """``value`` as a float, where it is a finite number above zero; NumPy's numbers are taken too."""
    if not isinstance(value, Real) or not inside(value, "(0, inf)"):
        raise UserError(f"{name} must be a finite number above 0, got {value!r}")
    return float(value)
