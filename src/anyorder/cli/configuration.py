"""Options from a file: TOML, or for ``fit`` the card of a model whose run is to be repeated.

Every mistake is found before the table is read, and the message names the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from anyorder.cli.files import load_table_model
from anyorder.errors import UserError
from anyorder.support.boundary import reason_of
from anyorder.support.checks import inside
from anyorder.support.strict_json import check_depth

LONGEST_OPTIONS = 1_000_000  # bytes of options
MOST_DOTS = 10_000_000  # squares of how many are in a line, summed over the lines: a second of parsing


def read_configuration(path: Path | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of ``fit`` that stand at the top level of the file, and the training options: everything else."""
    if path is None:
        return {}, {}
    if path.suffix == ".anyorder":
        card = load_table_model(path).card
        if "arguments" not in card or "config" not in card:
            raise UserError(f"{str(path)!r} does not record how the model was fitted; give a TOML file instead")
        return dict(card["arguments"]), dict(card["config"])
    content = read_toml(path)
    arguments = {name: content.pop(name) for name in FIT_ARGUMENTS if name in content}
    for name, value in arguments.items():
        fits, expected = FIT_ARGUMENTS[name]
        if not fits(value):
            raise UserError(f"{str(path)!r}: {name} must be {expected}, got {value!r}")
    if "bounds" in arguments:  # TOML has no null
        arguments["bounds"] = {
            name: tuple(None if end == "" else end for end in ends) for name, ends in arguments["bounds"].items()
        }
    if "missing" in arguments:
        arguments["missing"] = [str(mark) for mark in arguments["missing"]]
    return arguments, content


def read_toml(path: Path | None) -> dict[str, Any]:
    """The content of the file; empty if none is named."""
    if path is None:
        return {}
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UserError(f"--config: the file {str(path)!r} {what}; name a TOML file with options")
    if path.stat().st_size > LONGEST_OPTIONS:
        raise UserError(f"{str(path)!r} is longer than {LONGEST_OPTIONS} bytes; is it a file of options?")
    try:
        text = path.read_text(encoding="utf-8")
        # The parser takes the square of the parts of a dotted key.
        if sum(line.count(".") ** 2 for line in text.splitlines()) > MOST_DOTS:
            raise UserError("its keys have too many parts: a key such as training.steps has two")
        content = tomllib.loads(text)
        check_depth(content)
    except (UserError, OSError, RecursionError) as error:
        raise UserError(f"{str(path)!r} cannot be read: {reason_of(error)}") from error
    except ValueError as error:
        raise UserError(f"{str(path)!r} is not valid TOML: {reason_of(error)}") from error
    return content


def read_bounds(name: str, text: Any) -> tuple[float | None, float | None]:
    """The bounds written as ``0..``, ``..100`` or ``0..100``; ``..`` alone means none."""
    given = (text.low, text.high) if hasattr(text, "low") and hasattr(text, "high") else str(text).split("..")
    try:
        low, high = (None if end in ("", None) else float(end) for end in given)
    except ValueError:
        raise UserError(f"--bounds {name}: expected LOW..HIGH, such as 0.. or 0..100, got {text!r}") from None
    return low, high


def _pair(value: object) -> bool:
    if not isinstance(value, list) or len(value) != 2:
        return False
    return all(end is None or end == "" or _number(end) for end in value)


def _number(value: object) -> bool:
    return inside(value, "(-inf, inf)")


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


# Arguments of fit() that a file may hold at its top level: what each must be, and how to say so.
FIT_ARGUMENTS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "minutes": (lambda value: _number(value) and value > 0, "a number above 0, such as 2.5"),
    "seed": (lambda value: isinstance(value, int) and _number(value) and value >= 0, "a whole number from 0 up"),
    "kinds": (
        lambda value: isinstance(value, dict) and all(isinstance(kind, str) for kind in value.values()),
        'a table of column = "kind"',
    ),
    "bounds": (
        lambda value: isinstance(value, dict) and all(_pair(ends) for ends in value.values()),
        'a table of column = [low, high]; "" for no bound',
    ),
    "levels": (
        lambda value: isinstance(value, dict) and all(_texts(order) for order in value.values()),
        'a table of column = ["least", ..., "greatest"]',
    ),
    "missing": (
        lambda value: isinstance(value, list) and all(isinstance(item, str) or _number(item) for item in value),
        'a list of marks, such as ["?"]',
    ),
    "drop": (_texts, 'a list of column names, such as ["id"]'),
    "context": (_texts, 'a list of column names, such as ["age", "sex"]'),
    "rules": (_texts, 'a list of rules, such as ["end > start"]'),
    "missingness": (lambda value: value in ("ignore", "joint"), "'ignore' or 'joint'"),
    "device": (lambda value: isinstance(value, str), 'a text, such as "cpu"'),
}
