"""Options checked in one call: whole numbers, numbers in their intervals, and names among the valid ones.

A dataclass says in ``__post_init__`` what its fields may hold, and a user reads what was expected and what came::

    check_fields(
        self, whole={"steps": 1}, positive=("minutes",), within={"share": "[0, 1)"}, one_of={"preset": PRESETS}
    )
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from anyorder.errors import UserError, inside, nearest
from anyorder.errors import positive as above_zero
from anyorder.errors import whole as whole_number


def check_level(level: object, interval: str = "(0, 1)") -> None:
    """Raise a ``UserError`` for what cannot be the probability that an interval holds."""
    if not inside(level, interval):
        raise UserError(f"the level of an interval lies between 0 and 1, got {level!r}")


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
            whole_number(prefix + name, values[name], least, (most or {}).get(name))
    for name in positive:
        if name not in unset:
            above_zero(prefix + name, values[name])
    for name, interval in (within or {}).items():
        if name not in unset and not inside(values[name], interval):
            raise UserError(f"{prefix}{name} must be a number in {interval}, got {values[name]!r}")
    for name, valid in (one_of or {}).items():
        if name not in unset and not (isinstance(values[name], str) and values[name] in valid):
            raise UserError(f"{prefix}unknown {name} {values[name]!r}; {nearest(values[name], valid)}")
