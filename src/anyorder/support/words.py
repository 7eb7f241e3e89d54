"""The words and marks of the grammar of questions: where a word ends, what quotes hold, how a word is written back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from anyorder.errors import UserError

MARKS = (">=", "<=", "!=", "|", ",", "=", ">", "<")  # longest first
SPECIAL = "|,=<>"
QUOTES = "\"'"
_JOINING = re.compile(r"(^|\s)(or|and|between)\s+$")  # a word of the grammar, after which a quoted one may follow
_INSIDE = re.compile("[^{}\"']+")  # of a set


@dataclass(frozen=True)
class Token:
    """A word, or one of the marks; ``at`` is where it stands in the text."""

    kind: str  # "word" or the mark itself
    text: str
    at: int
    plain: bool = False  # a word without quotes or braces


class TextError(UserError):
    """Something wrong at one position of a text; ``what`` is said of it."""

    def __init__(self, message: str = "", text: str = "", at: int = 0, what: str = "") -> None:
        super().__init__(message)
        self.text, self.at, self.what = text, at, what


def tokens(text: str, more: str = "") -> list[Token]:
    """The text as words and marks; the characters of ``more`` are marks too."""
    found: list[Token] = []
    at = 0
    special = SPECIAL + more
    plain = re.compile(f"(?:[^{re.escape(special + QUOTES)}!]|!(?!=))+")
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text[at] in special or text.startswith("!=", at):
            mark = next(mark for mark in (*MARKS, *more) if text.startswith(mark, at))
            found.append(Token(mark, mark, at))
            at += len(mark)
        elif text[at] in QUOTES:
            word, end = quoted_word(text, at)
            found.append(Token("word", word, at))
            at = end
        elif text[at] == "{" and (end := _set_end(text, at, special)):
            found.append(Token("word", text[at:end], at))
            at = end
        else:
            end = _end_of(plain, text, at)
            # An apostrophe inside a plain word (O'Hara) would silently split it in two.
            if end < len(text) and text[end] in QUOTES and not _JOINING.search(text[at:end]):
                raise mistake(text, end, "a quote inside a word: put the whole word between quotes")
            found.append(Token("word", text[at:end].strip(), at, plain=True))
            at = end
    return found


def write_word(text: str, quoted: str = "") -> str:
    """A word so that it reads back; between quotes where it must be, or where it has a character of ``quoted``."""
    plain = text and text == text.strip() and not any(mark in text for mark in SPECIAL + QUOTES + "\\" + quoted)
    # A brace at the start would open a set, and "!" at the end would join a "=": a whole set is written as it stands.
    if plain and not text.startswith("{") and not text.endswith("!"):
        return text
    if "{" not in quoted and words_of_set(text) and not any(mark in text for mark in quoted):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def write_set(members: Iterable[str]) -> str:
    """The text that :func:`words_of_set` reads back as these."""
    return "{" + ", ".join(write_word(member, "{}") for member in members) + "}"


def words_of_set(text: str) -> list[str]:
    """The members of ``{red, "a, b"}``; empty where the text is no set."""
    if not text.startswith("{") or _set_end(text, 0, SPECIAL) != len(text):
        return []
    try:
        found = tokens(text[1:-1])
    except UserError:
        return []
    members, marks = found[::2], found[1::2]
    regular = len(found) % 2 == 1 and all(token.kind == "word" for token in members)
    return [token.text for token in members] if regular and all(token.kind == "," for token in marks) else []


def bracket_end(text: str) -> int | None:
    """Behind the bracket that closes the one opening the text, quoted words left aside; None where none does."""
    depth = 0
    at = 0
    while at < len(text):
        if text[at] in QUOTES:
            try:
                at = quoted_word(text, at)[1]
            except UserError:
                return 0  # whoever reads the words will say where
            continue
        depth += (text[at] in "([") - (text[at] in ")]")
        at += 1
        if depth == 0:
            return at
    return None


def mistake(text: str, at: int, what: str) -> TextError:
    """The error for something wrong at one position of a text."""
    shown = text if len(text) <= 120 else f"{text[max(0, at - 50) : at + 50]}"
    return TextError(f"cannot read {shown!r}: {what} (character {at + 1})", text, at, what)


def split_at(text: str, word: str) -> list[str]:
    """The text in parts, cut wherever ``word`` stands alone outside of quotes and braces."""
    parts, begun, at = [], 0, 0
    while at < len(text):
        if text[at] in QUOTES:
            try:
                at = quoted_word(text, at)[1]
            except UserError:
                at += 1
        elif text[at] == "{":
            closing = text.find("}", at)
            at = closing + 1 if closing > 0 else at + 1
        elif text.startswith(word, at) and _alone(text, at, at + len(word)):
            parts.append(text[begun:at].strip())
            at += len(word)
            begun = at
        else:
            at += 1
    return [*parts, text[begun:].strip()]


def _alone(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return (not before or before.isspace() or before in "}\"'") and (not after or after.isspace() or after in "{\"'")


def _set_end(text: str, start: int, special: str) -> int:
    """Where the set that opens at ``start`` ends, 0 where it does not, or where the word goes on behind it."""
    at = start + 1
    while at < len(text) and text[at] != "}":
        if text[at] == "{":
            return 0
        if text[at] in QUOTES:
            try:
                at = quoted_word(text, at)[1]
            except UserError:
                return 0
        else:
            at = _end_of(_INSIDE, text, at)
    if at >= len(text):
        return 0
    rest = text[at + 1 :].lstrip()
    return at + 1 if not rest or rest[0] in special else 0


def _end_of(letters: re.Pattern[str], text: str, start: int) -> int:
    """Where a run of such letters ends that begins at ``start``."""
    found = letters.match(text, start)
    return found.end() if found else start


def quoted_word(text: str, start: int) -> tuple[str, int]:
    quote = text[start]
    out: list[str] = []
    at = start + 1
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text):
            out.append(text[at + 1])
            at += 2
        elif text[at] == quote:
            return "".join(out), at + 1
        else:
            out.append(text[at])
            at += 1
    raise mistake(text, start, f"the quote {quote} is never closed")
