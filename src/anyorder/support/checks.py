"""What a user gave, checked: whole numbers, numbers in their intervals, seeds, and options by the dozen.

A dataclass says in ``__post_init__`` what its fields may hold, and a user reads what was expected and what came::

    check_fields(
        self, whole={"steps": 1}, positive=("minutes",), within={"share": "[0, 1)"}, one_of={"preset": PRESETS}
    )
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from anyorder.errors import UserError, nearest

SEEDS = 2**63  # so many seeds there are: 0 and up, as torch's generators take them


def whole(name: str, value: object, least: int = 1, most: int | None = None) -> int:
    """``value`` as an int, where it is a whole number from ``least`` up to ``most``; NumPy's numbers are taken too."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise UserError(f"{name} must be a whole number, {least} or more, got {value!r}")
    if most is not None and int(value) > most:
        raise UserError(f"{name} must be a whole number, at most {most}, got {value!r}")
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


def check_level(level: object, interval: str = "(0, 1)") -> None:
    """Raise a ``UserError`` for what cannot be the probability that an interval holds."""
    if not inside(level, interval):
        raise UserError(f"the level of an interval must be between 0 and 1, got {level!r}")


# Under these names where a parameter has the other one.
_whole, _positive = whole, positive


def check_fields(
    options: Any,
    *,
    whole: Mapping[str, int] | None = None,
    most: Mapping[str, int] | None = None,
    positive: Iterable[str] = (),
    within: Mapping[str, str] | None = None,
    one_of: Mapping[str, Collection[str]] | None = None,
    section: str = "",
) -> None:
    """Raise a ``UserError`` for the first field of a dataclass that holds what it must not.

    ``whole``: fields that hold whole numbers, each with the least one; ``most`` has the greatest ones where there are
    any. ``positive``: fields that hold finite numbers above zero. ``within``: fields that hold numbers, each with its
    interval as it is written, such as ``"(0, 1]"`` or ``"[0, inf)"``. ``one_of``: fields that hold a name, each with
    the valid ones. A field whose type allows None may be None. ``section`` stands before the fields in messages.
    """
    prefix = f"{section}: " if section else ""
    fields = dataclasses.fields(options)
    values = {entry.name: getattr(options, entry.name) for entry in fields}
    unset = {entry.name for entry in fields if "None" in str(entry.type) and values[entry.name] is None}
    for name, least in (whole or {}).items():
        if name not in unset:
            _whole(prefix + name, values[name], least, (most or {}).get(name))
    for name in positive:
        if name not in unset:
            _positive(prefix + name, values[name])
    for name, interval in (within or {}).items():
        if name not in unset and not inside(values[name], interval):
            raise UserError(f"{prefix}{name} must be a number in {interval}, got {values[name]!r}")
    for name, valid in (one_of or {}).items():
        if name not in unset and not (isinstance(values[name], str) and values[name] in valid):
            raise UserError(f"{prefix}unknown {name} {values[name]!r}; {nearest(values[name], valid)}")
