"""Commands whose signature is put together from parts, so that no option has to be declared twice.

typer reads the options of a command off its signature. A group of options that several commands share is a dataclass:
a parameter of that type stands for all of its fields (:func:`spelled_out`).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Any, cast


def with_signature(run: Callable[..., None], parameters: Sequence[Parameter], help_text: str) -> Callable[..., None]:
    """The function as a command with these parameters, which reach it by name."""

    def command(**values: Any) -> None:
        run(**values)

    # By name only: an option with a default may then stand before one without.
    by_name = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]  # where typer looks
    command.__doc__ = help_text
    return command


def spelled_out(function: Callable[..., None]) -> Callable[..., None]:
    """The command with every parameter that is a dataclass of options replaced by the options themselves."""
    parameters: list[Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in parameters_of(function):
        if dataclasses.is_dataclass(parameter.annotation):
            groups[parameter.name] = group = cast(Callable[..., Any], parameter.annotation)
            parameters += parameters_of(group)
        else:
            parameters.append(parameter)

    @functools.wraps(function)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in dataclasses.fields(group)})
        function(**values)

    return with_signature(run, parameters, inspect.getdoc(function) or "")


def parameters_of(function: Callable[..., Any], **names: Any) -> list[Parameter]:
    """What a function or a dataclass takes, with the annotations as objects; ``names`` are not known at run time."""
    hints = typing.get_type_hints(function, localns=names or None, include_extras=True)
    found = inspect.signature(function).parameters.values()
    return [parameter.replace(annotation=hints.get(parameter.name, parameter.annotation)) for parameter in found]


def with_check(command: Callable[..., None], check: Callable[[dict[str, Any]], None]) -> Callable[..., None]:
    """The command, run only if its arguments, by name, pass the check."""

    def run(**values: Any) -> None:
        check(values)
        command(**values)

    return with_signature(run, parameters_of(command), inspect.getdoc(command) or "")
