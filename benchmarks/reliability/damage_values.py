"""Damage to JSON values: fields of other types, numbers out of range, names of something else, no JSON at all."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

Generator: TypeAlias = np.random.Generator
Crafted: TypeAlias = Callable[[bytes, Generator], bytes]
"""From a whole file to one that was made on purpose."""


NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 7, 255, 30_000, 10**6, 2**31 - 1, 2**31, 10**12, 2**63 - 1, 2**63, 10**400, -(10**6), -(2**63),
    0.5, -0.5, 1e-320, 1e-30, 1e30, 1.7e308, math.nan, math.inf, -math.inf,
)  # fmt: skip
OTHERS: tuple[Any, ...] = (
    None, True, False, "", "x", "nan", "ü\u0000\ud800", "a" * 5000, [], [[]], [None], {}, {"name": "x"}, {"": 0}, 0, -1,
    1.5, [1, 2, 3], ["a", "b"], "../../etc/passwd", "\x1b[31m$x_{", "1e999",
)  # fmt: skip
COMPONENTS = (
    "residual_mlp", "sfarm_mlp", "causal_transformer", "bidirectional_transformer", "gaussian", "unet", "boosted_trees",
    "blend", "energy", "student_mixture", "gaussian_mixture", "spline", "spiked", "bernoulli", "bounded", "ordinal",
    "discretized_logistic_mixture", "binned", "categorical", "hashed", "canonical", "pixelwise", "random", "levels",
    "line", "lattice", "continuous", "integer", "boolean", "datetime", "atoms", "table", "text", "images", "training",
    "model", "rotary", "learned", "bytes", "characters", "day", "second", "none", "all", "middle", "float64", "int64",
    "str", "bool", "category", "object", "datetime64[ns]",
)  # fmt: skip

Place: TypeAlias = tuple[Any, str | int]


def places(value: Any) -> Iterator[Place]:
    """Every place of a JSON value: its container, and the name or number there."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in list(entries):
        yield value, name
        yield from places(item)


def _chosen(value: Any, rng: Generator, fits: Callable[[Any], bool] = lambda _: True) -> Place:
    """A place whose value fits, nested ones as likely as others of the same name (a list of a thousand is one)."""
    found: dict[str, list[Place]] = {}
    for place in places(value):
        if fits(place[0][place[1]]):
            found.setdefault(str(place[1]) if isinstance(place[0], dict) else f"in {len(place[0])}", []).append(place)
    if not found:
        holder = [value]
        return holder, 0
    several = found[sorted(found)[int(rng.integers(len(found)))]]
    return several[int(rng.integers(len(several)))]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def other_type(value: Any, rng: Generator) -> None:
    """A field holds something of another type."""
    where, name = _chosen(value, rng)
    choices = [other for other in OTHERS if type(other) is not type(where[name])]
    where[name] = copy.deepcopy(choices[int(rng.integers(len(choices)))])


def other_number(value: Any, rng: Generator) -> None:
    """A number is huge, negative, a fraction, infinite or none."""
    where, name = _chosen(value, rng, _is_number)
    where[name] = NUMBERS[int(rng.integers(len(NUMBERS)))]


def other_number_nearby(value: Any, rng: Generator) -> None:
    """A number is a little off: the sizes no longer agree."""
    where, name = _chosen(value, rng, _is_number)
    if _is_number(where[name]):
        where[name] = where[name] + int(rng.choice([-2, -1, 1, 2]))


def field_missing(value: Any, rng: Generator) -> None:
    """A field is not there."""
    where, name = _chosen(value, rng)
    del where[name]


def field_extra(value: Any, rng: Generator) -> None:
    """A field that nobody expects."""
    where, name = _chosen(value, rng, lambda item: isinstance(item, dict))
    if isinstance(where[name], dict):
        where[name][str(rng.choice(["extra", "name", "width", "trained", "layout", "__class__", "seed"]))] = (
            copy.deepcopy(OTHERS[int(rng.integers(len(OTHERS)))])
        )


def list_length(value: Any, rng: Generator) -> None:
    """A list is shorter or longer."""
    where, name = _chosen(value, rng, lambda item: isinstance(item, list))
    if isinstance(where[name], list):
        items = where[name]
        keep = int(rng.integers(0, len(items) + 1))
        longer = items + items[-1:] * int(rng.choice([1, 2, 1000]))
        where[name] = items[:keep] if rng.random() < 0.6 else longer


def list_order(value: Any, rng: Generator) -> None:
    """A list is in another order, or all its entries are one."""
    where, name = _chosen(value, rng, lambda item: isinstance(item, list) and len(item) > 1)
    if isinstance(where[name], list):
        items = where[name]
        same = rng.random() < 0.3
        where[name] = items[:1] * len(items) if same else [items[i] for i in rng.permutation(len(items))]


def other_component(value: Any, rng: Generator) -> None:
    """A name is that of something else."""
    where, name = _chosen(value, rng, lambda item: isinstance(item, str))
    where[name] = str(rng.choice(COMPONENTS))


def deeper(value: Any, rng: Generator) -> None:
    """A field holds itself, many times over."""
    where, name = _chosen(value, rng)
    wrapped = where[name]
    for _ in range(int(rng.choice([1, 2, 50]))):
        wrapped = [wrapped] if rng.random() < 0.5 else {"name": wrapped}
    where[name] = wrapped


FIELDS: dict[str, Callable[[Any, Generator], None]] = {
    "field of another type": other_type,
    "number out of range": other_number,
    "number a little off": other_number_nearby,
    "field missing": field_missing,
    "field extra": field_extra,
    "list of another length": list_length,
    "list in another order": list_order,
    "name of something else": other_component,
    "field nested": deeper,
}


def words(value: Any, *, sort: bool = True) -> str:
    """JSON as our files hold it."""
    return json.dumps(value, sort_keys=sort)


def toml_text(content: dict[str, Any]) -> str:
    """TOML with one line for each name; tables within are written inline, and a name without a value is left out."""
    return "".join(
        f"{json.dumps(str(name))} = {_toml(value)}\n" for name, value in content.items() if value is not None
    )


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        items = (f"{json.dumps(str(name))} = {_toml(item)}" for name, item in value.items() if item is not None)
        return "{" + ", ".join(items) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if value is None:
        return '""'
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=True).replace("\\ud800", "")


def malformed_json(value: Any, rng: Generator) -> str:
    """JSON that no writer of ours makes: nested without end, keys twice, numbers of many digits, no JSON at all."""
    text = words(value)
    nested = int(rng.choice([500, 5000, 200_000]))
    first = next(iter(value)) if isinstance(value, dict) and value else "x"
    choices = (
        lambda: "[" * nested + "]" * nested,
        lambda: '{"a":' * nested + "1" + "}" * nested,
        lambda: text[:-1] + f', "{first}": ' + "[" * nested + "]" * nested + "}",
        lambda: text[:-1] + f', "{first}": 3}}',
        lambda: f'{{"{first}": null, ' + text[1:],
        lambda: text.replace(": 1", ": 1" + "0" * 5000, 1),
        lambda: text.replace(": 1", ": -0", 1),
        lambda: text.replace(": ", ": 1e", 1),
        lambda: text.replace('"', '"\\ud800', 2),
        lambda: text + text,
        lambda: text[: int(rng.integers(0, len(text)))],
        lambda: "[" + text + "]",
        lambda: str(rng.choice(["", "null", "0", "[]", "{}", "NaN", '"model"', "true", "\ufeff{}"])),
        lambda: text.replace("[", "[[", 1).replace("]", "]]", 1),
    )
    return choices[int(rng.integers(len(choices)))]()
