"""Find components by name, so that a new one is one new file and nothing else.

A registry looks into one sub-package (``anyorder.masking``, ``anyorder.heads``, ...) and collects every
final class that derives from the given base and has a ``name``. A component is a dataclass whose
fields are its options: plain numbers, strings, tuples, or other components. That is what makes it
possible to write any of them into a model file as JSON and to build it again without pickle.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import pkgutil
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from anyorder.errors import UserError, nearest

T = TypeVar("T")


class Registry(Generic[T]):
    """All final subclasses of ``base`` found in the modules of ``package``.

    Looked up lazily, and afresh when its folders change, so a dropped-in file is found without a list to edit.
    """

    def __init__(self, package: str, base: type[Any], noun: str) -> None:
        self.package = package
        self.base: type[T] = base  # abstract: it is never made, only its subclasses are
        self.noun = noun
        self._imported: list[tuple[str, int]] | None = None  # the folders whose modules are imported, as they were
        # Weak, so that a class whose file was taken away can go.
        self._found: WeakValueDictionary[str, type[T]] = WeakValueDictionary()

    def names(self) -> list[str]:
        """Every registered name, sorted."""
        return sorted(self._classes())

    def classes(self) -> list[type[T]]:
        """Every registered class, in the order of their names."""
        return [cls for _, cls in sorted(self._classes().items())]

    def get(self, name: str) -> type[T]:
        """The class registered under ``name``."""
        classes = self._classes()
        if not isinstance(name, str) or name not in classes:
            raise UserError(f"unknown {self.noun} {name!r:.80}; {nearest(name, sorted(classes))}")
        return classes[name]

    def of(self, description: Mapping[str, Any]) -> type[T]:
        """The class that a description names."""
        if "name" not in description:
            raise UserError(f"a {self.noun} needs a 'name'; got {dict(description)!r}")
        name = description["name"]
        if not isinstance(name, str):
            raise UserError(f"{self.noun}: 'name' must be a text, got {name!r}")
        return self.get(name)

    def build(self, description: Mapping[str, Any], **extra: Any) -> T:
        """The component that :func:`describe` described; ``extra`` holds fields that are not options."""
        options = {key: value for key, value in description.items() if key != "name"}
        cls = self.of(description)
        known = {field.name for field in dataclasses.fields(cls) if field.init} - extra.keys()  # type: ignore[arg-type]
        for key in options:
            if key not in known:
                raise UserError(
                    f"{self.noun} {description['name']!r} has no option {key!r}; {nearest(key, sorted(known))}"
                )
        restored = {key: self._restore(value) for key, value in options.items()}
        try:
            return cls(**restored, **extra)
        except (TypeError, RuntimeError, AssertionError) as error:  # an option is missing, or not of its type or range
            given = ", ".join(f"{key}={value!r}" for key, value in options.items()) or "no options"
            raise UserError(f"{self.noun} {description['name']!r} cannot be made from {given}: {error}") from error

    def _restore(self, value: Any) -> Any:
        # JSON has no tuples; nested components (a mixture of maskings) carry their own name.
        if isinstance(value, Mapping) and "name" in value:
            return self.build(value)
        if isinstance(value, list | tuple):
            return tuple(self._restore(item) for item in value)
        return value

    def _import_modules(self) -> None:
        # A lookup per variable of a picture is thousands: the folders are read again only when they have changed.
        package = importlib.import_module(self.package)
        folders = [(path, os.stat(path).st_mtime_ns) for path in package.__path__]
        if folders == self._imported:
            return
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{self.package}.{module.name}")
        found: WeakValueDictionary[str, type[T]] = WeakValueDictionary()
        pending: list[type[T]] = [self.base]
        while pending:
            cls = pending.pop()
            pending.extend(cls.__subclasses__())
            if "name" in vars(cls) and cls.__module__.startswith(self.package + "."):
                found[vars(cls)["name"]] = cls
        self._found, self._imported = found, folders

    def _classes(self) -> dict[str, type[T]]:
        self._import_modules()
        return dict(self._found)


def describe(component: Any) -> dict[str, Any]:
    """A component as JSON-ready plain values: its name and its options.

    An option that came ``later`` is left out at its default, so that a component described before is described alike.
    """
    options = (field for field in dataclasses.fields(component) if field.init and field.metadata.get("option", True))
    return {"name": type(component).name, **_fields(component, options)}


def _fields(part: Any, fields: Iterable[dataclasses.Field[Any]]) -> dict[str, Any]:
    values = ((field, getattr(part, field.name)) for field in fields)
    said = ((field, value) for field, value in values if not (field.metadata.get("later") and value == field.default))
    return {field.name: _plain(value) for field, value in said}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and hasattr(type(value), "name"):
        return describe(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # A part without a name (a lattice): the component that holds it knows how to put it together again.
        return _fields(value, dataclasses.fields(value))
    if isinstance(value, list | tuple):
        if all(type(item) is float for item in value):  # edges and knots: there may be thousands of them
            return list(value)
        return [_plain(item) for item in value]
    return value
