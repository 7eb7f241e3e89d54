"""JSON that may come from anybody: limited in size and nesting, every key once, every number finite.

Python's own parser takes NaN and Infinity, the last of several equal keys, and any nesting that its stack bears.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from anyorder.errors import UserError

DEEPEST = 64
"""Objects and lists inside each other; a model file needs about ten."""

MOST_VALUES = 4_000_000
"""An empty object takes two characters in a file and 64 bytes in memory: so many values take half a gigabyte."""

TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
"""A text in quotes. The last quote may be missing, so that every match succeeds at once, whatever the input."""


def read_json(text: str | bytes, *, finite: bool = True) -> Any:
    """The value that a text stands for; ``UserError`` where it is no JSON or beyond a limit.

    Without ``finite``, NaN and the infinities are numbers.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "surrogatepass")
        # Texts may hold any number of commas. They are taken out only where it matters, since that takes a while.
        if _marks(text) > MOST_VALUES and _marks(TEXT.sub("", text)) > MOST_VALUES:
            raise UserError(f"its JSON has more than {MOST_VALUES} values")
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse if finite else None)
    except RecursionError:
        raise UserError(f"its JSON is nested deeper than {DEEPEST}") from None
    except UserError:
        raise
    except ValueError as error:  # not JSON, not UTF-8, or an integer of thousands of digits
        raise UserError(f"it is no JSON ({error})") from error
    _check([value], finite=finite, deeper=DEEPEST)  # not the constants alone: 1e999 is a number, and an infinite float
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise UserError(f"its JSON has the key {name!r:.80} twice")
            seen.add(name)
    return found


def _marks(text: str) -> int:
    """At least as many as there are values, where every comma and bracket is outside of texts."""
    return sum(map(text.count, ",[{"))


def _refuse(constant: str) -> NoReturn:
    raise UserError(f"its JSON has {constant} where a finite number belongs")


def check_finite(value: Any) -> None:
    """Refuse numbers that are not finite, anywhere inside."""
    _check([value], finite=True, deeper=DEEPEST + 1)


def check_depth(value: Any) -> None:
    """Refuse objects and lists that lie too deep inside each other, wherever they come from."""
    _check([value], finite=False, deeper=DEEPEST)


def _check(values: Iterable[Any], *, finite: bool, deeper: int) -> None:
    """Look at every value once: a header has a hundred thousand of them, and is read before anything else can begin."""
    if deeper < 0:
        raise UserError(f"it is nested deeper than {DEEPEST}")
    for value in values:
        kind = type(value)
        if kind is float:
            if finite and value - value:  # NaN where it is not finite, else 0
                _refuse(str(value))
        elif kind is list:
            _check(value, finite=finite, deeper=deeper - 1)
        elif kind is dict:
            _check(value.values(), finite=finite, deeper=deeper - 1)
