"""How a question that is being typed can go on: names, levels, functions; plain text in, plain text out."""

from __future__ import annotations

import re

from anyorder.errors import UserError
from anyorder.questions.grammar import FORMS
from anyorder.support.words import QUOTES, split_at, tokens, write_word
from anyorder.variables.schema import Schema

FUNCTIONS = tuple(f"{form}(" for form in FORMS)
_OPENED = re.compile(rf"^({'|'.join(FORMS)}|mean)\s*[(\[]\s*")
SEPARATORS = ",|=<>{;"


def completions(schema: Schema, before: str, commands: tuple[str, ...] = ()) -> tuple[int, list[str]]:
    """Where the word begins that ends the text, and what it can become.

    After ``colour =`` the levels of that column are offered, elsewhere the columns; at the beginning also functions and
    ``commands``.
    """
    start, mark = _last_word(before)
    head = before[:start].rstrip()
    options: list[str] = []
    if mark in "={,":
        options += [write_word(str(level), "{}") for level in _levels(schema, head)]
    if not options or mark in "<>,":
        options += [write_word(name) for name in schema.names]
    if mark == "or":
        options = [write_word(str(level), "{}") for level in _levels(schema, head)] + options
    if not head:
        options += [*FUNCTIONS, *commands]
    typed = before[start:].casefold()
    begun = [one for one in options if one.casefold().startswith(typed) or one.casefold().startswith(f'"{typed}')]
    return start, list(dict.fromkeys(begun))


def _last_word(before: str) -> tuple[int, str]:
    """Where the last word begins, and the mark before it: one of the separators, "(", "or", or nothing."""
    start, mark, quote = 0, "", ""
    for at, letter in enumerate(before):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in QUOTES and not before[start:at].strip():
            quote = letter
        elif letter in SEPARATORS:
            start, mark = at + 1, letter
        elif letter in "([" and not mark and before[:at].strip() in (*FORMS, "mean"):
            start, mark = at + 1, "("
    if not quote:
        pieces = split_at(before[start:] + "\0", "or")  # the end is no word of its own
        if len(pieces) > 1:
            start, mark = len(before) - len(pieces[-1].removesuffix("\0")), "or"
    while start < len(before) and before[start].isspace():
        start += 1
    return start, mark


def _levels(schema: Schema, head: str) -> list[object]:
    """The levels of the column of which the text speaks last: ``... colour =``, ``... colour = {red,``."""
    if head.endswith((",", "{")) and "{" in head and "}" not in head[head.rindex("{") :]:
        head = head[: head.rindex("{")].rstrip()  # within a set
    elif head.endswith(","):
        return []
    if " or" in head:
        head = head[: head.rindex("=") + 1] if "=" in head else head
    if not head.endswith("="):
        return []
    try:
        name = tokens(head.rstrip("=!"))[-1].text
    except (UserError, IndexError):
        return []
    if name not in schema:
        name = _OPENED.sub("", name)
    return list(schema[name].levels) if name in schema else []
