"""What to do about a column, in the words of both interfaces: Python's argument and the command line's option."""

from __future__ import annotations

import shlex

from anyorder.support.words import write_word


def drop(name: str) -> str:
    """How to leave the column out."""
    return f"drop=[{name!r}] (command line: --drop {shlex.quote(write_word(name))})"


def kind(name: str, word: str) -> str:
    """How to say what the column is."""
    return f"kinds={{{name!r}: {word!r}}} (command line: --kind {shlex.quote(f'{write_word(name)}={word}')})"


UNSEEN = "unseen='missing' (command line: --unseen missing)"
"""How to have values that the model never saw taken for unknown cells."""
