"""Options of every fit: read from a mapping, checked, and kept in the model's card."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from anyorder.errors import UserError, nearest
from anyorder.training.options import Options


def section(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(f"{name} must be a table of options, as in [{name}] of a TOML file; got {value!r}")
    return value


def checked_options(cls: type[Any], given: Mapping[str, Any], noun: str) -> dict[str, Any]:
    """The options as given, once every name is a field of ``cls`` and every number a number."""
    types = {entry.name: entry for entry in dataclasses.fields(cls)}
    for name, value in given.items():
        if name not in types:
            raise UserError(f"unknown {noun} {name!r}; {nearest(name, types)}")
        default = types[name].default
        number = default is None or (isinstance(default, int | float) and not isinstance(default, bool))
        if number and (isinstance(value, bool) or not isinstance(value, int | float | type(None))):
            raise UserError(f"{noun} {name!r} must be a number, got {value!r}")
        whole = isinstance(default, int) or name == "steps"
        if whole and isinstance(value, float):
            if not value.is_integer():
                raise UserError(f"{noun} {name!r} must be a whole number, got {value!r}")
            given = {**given, name: int(value)}
    return dict(given)


def preset_options(
    cls: type[Any], given: Mapping[str, Any] | None, training: Options, *, minutes: float | None, preset: str | None
) -> dict[str, Any]:
    """The options of a family with presets (texts, pictures), over its own defaults of ``training``."""
    options = dict(given or {})
    if preset is not None:
        options["preset"] = preset
    named = options.pop("training", {})
    if not isinstance(named, Mapping):
        raise UserError(f"training must be a table of options, such as {{batch = 32}}, got {named!r}")
    named = dict(named)
    if minutes is not None:
        named["minutes"] = minutes
    named = checked_options(Options, named, "training option")
    return {**checked_options(cls, options, "option"), "training": dataclasses.replace(training, **named)}
