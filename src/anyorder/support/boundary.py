"""The boundary that files of others are read behind: whatever fails inside is a ``UserError`` that names the field.

    with reading("house.anyorder"):
        with field("description"):
            with field("network"):
                ...

A ``KeyError`` in there becomes "house.anyorder cannot be read: description.network: the entry 'width' is missing".
Code that takes a description apart need not expect every wrong type at every place, and a caller meets one class of
error. The first cause stays attached to it, for the day when the fault is ours.
"""

from __future__ import annotations

from types import TracebackType

from anyorder.errors import UserError


class FieldError(UserError):
    """What is wrong with one field of a file, and the keys that lead to it."""

    def __init__(self, keys: tuple[str, ...], reason: str) -> None:
        super().__init__(f"{'.'.join(keys)}: {reason}")
        self.keys = keys
        self.reason = reason

    def __reduce__(self) -> tuple[type[FieldError], tuple[tuple[str, ...], str]]:
        return type(self), (self.keys, self.reason)  # how it comes back out of a process pool


class field:  # noqa: N801 (used like a function, in a with statement)
    """Within, errors are about this field of what is being read."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, FieldError):
            raise FieldError((self.name, *error.keys), error.reason) from error.__cause__
        if isinstance(error, Exception):
            raise FieldError((self.name,), reason_of(error)) from error


class reading:  # noqa: N801 (used like a function, in a with statement)
    """Within, errors are about this file, and all of them are for the user."""

    __slots__ = ("where",)

    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            cause = error.__cause__ if isinstance(error, FieldError) else error
            raise UserError(f"{self.where} cannot be read: {reason_of(error)}") from cause


def first_line(error: BaseException) -> str:
    """The first line of what a library says of its error, or the name of the error if it says nothing."""
    return next(filter(None, str(error).splitlines()), type(error).__name__)


def reason_of(error: Exception) -> str:
    """What an error says, in words that need no knowledge of the code that raised it."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, KeyError) and error.args:
        return f"the entry {error.args[0]!r:.80} is missing"
    if isinstance(error, MemoryError):
        return "it needs more memory than there is"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{str(error)[:300] or 'it makes no sense'} ({type(error).__name__})"
