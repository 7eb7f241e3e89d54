"""What to do about a column, in the words of both interfaces: Python's argument and the command line's option."""

from __future__ import annotations

import re
import shlex

from anyorder.support.words import write_word


class Hint(str):
    """A hint in both languages; ``python`` and ``command`` are each of them alone."""

    python: str
    command: str

    def __new__(cls, python: str, command: str) -> Hint:
        hint = super().__new__(cls, f"{python} (command line: {command})")
        hint.python, hint.command = python, command
        return hint

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return self.python, self.command


def for_commands(text: str) -> str:
    """A sentence with its hints in the language of the command line alone."""
    return re.sub(r"\w+=(?:\[.*?\]|\{.*?\}|'.*?') \(command line: (.*?)\)(?=$|[;,.)])", r"\1", text)


def drop(name: str) -> Hint:
    """How to leave the column out."""
    return Hint(f"drop=[{name!r}]", f"--drop {shlex.quote(write_word(name))}")


def kind(name: str, word: str) -> Hint:
    """How to say what the column is."""
    return Hint(f"kinds={{{name!r}: {word!r}}}", f"--kind {shlex.quote(f'{write_word(name)}={write_word(word)}')}")


def missing(mark: str) -> Hint:
    """How to say that a text or number stands for an unknown cell."""
    return Hint(f"missing=[{mark!r}]", f"--missing {shlex.quote(mark)}")


UNSEEN = Hint("unseen='missing'", "--unseen missing")
"""How to have values that the model never saw taken for unknown cells."""
