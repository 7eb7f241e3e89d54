r"""The small language of questions: ``price, tax | rooms=6, river=yes`` stands for p(price, tax | rooms, river).

    question = items [ "|" items ]         asked, then evidence
    items    = [ item { "," item } ]
    item     = word [ "=" word ]           evidence always has a value; an asked item may have one
    word     = quoted | plain              blanks around a word do not count

A plain word is anything without ``, | =`` and quotes. A quoted word stands between ``"`` or ``'`` and holds anything;
a backslash keeps the next character as it is. A value stays text here: only the schema knows what it means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from anyorder.errors import UserError

SPECIAL = "|,="
QUOTES = "\"'"


@dataclass(frozen=True)
class Question:
    """What was typed: asked names in order, values for those of them that came with one, and the evidence."""

    asked: tuple[str, ...]
    values: Mapping[str, str]
    evidence: Mapping[str, str]


@dataclass(frozen=True)
class _Token:
    kind: str  # "word" or one of SPECIAL
    text: str
    at: int


def parse_question(text: str) -> Question:
    """Read ``asked | evidence``; without ``|`` nothing is known."""
    tokens = _tokens(text)
    bars = [index for index, token in enumerate(tokens) if token.kind == "|"]
    if len(bars) > 1:
        raise _mistake(text, tokens[bars[1]].at, "a second '|': one bar parts what is asked from what is known")
    cut = bars[0] if bars else len(tokens)
    asked = _items(text, tokens[:cut])
    evidence = _evidence(text, tokens[cut + 1 :])
    values = {name: value for name, value in asked.items() if value is not None}
    for name in asked:
        if name in evidence:
            raise UserError(f"{name!r} is asked and given in {text!r}: leave it on one side of the '|'")
    return Question(tuple(asked), values, evidence)


def parse_evidence(text: str) -> dict[str, str]:
    """Read ``rooms=6, river=yes``; an empty text is no evidence."""
    return _evidence(text, _tokens(text))


def parse_names(text: str) -> list[str]:
    """Read ``rooms, river``: names without values."""
    items = _items(text, _tokens(text))
    for name, value in items.items():
        if value is not None:
            raise UserError(f"only names are expected in {text!r}, but {name!r} has a value ({value!r})")
    return list(items)


def write_question(question: Question) -> str:
    """The text that :func:`parse_question` reads back as ``question``."""
    asked = ", ".join(_item(name, question.values.get(name)) for name in question.asked)
    return f"{asked} | {write_evidence(question.evidence)}" if question.evidence else asked


def write_evidence(evidence: Mapping[str, str]) -> str:
    """The text that :func:`parse_evidence` reads back as ``evidence``."""
    return ", ".join(_item(name, value) for name, value in evidence.items())


def write_names(names: Iterable[str]) -> str:
    """The text that :func:`parse_names` reads back as ``names``."""
    return ", ".join(_word(name) for name in names)


def _item(name: str, value: str | None) -> str:
    return _word(name) if value is None else f"{_word(name)}={_word(value)}"


def _word(text: str) -> str:
    plain = text and text == text.strip() and not any(mark in text for mark in SPECIAL + QUOTES + "\\")
    if plain:
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        mark = text[at]
        if mark.isspace():
            at += 1
        elif mark in SPECIAL:
            tokens.append(_Token(mark, mark, at))
            at += 1
        elif mark in QUOTES:
            word, end = _quoted(text, at)
            tokens.append(_Token("word", word, at))
            at = end
        else:
            end = at
            while end < len(text) and text[end] not in SPECIAL + QUOTES:
                end += 1
            # An apostrophe inside a plain word (O'Hara) would silently split it in two.
            if end < len(text) and text[end] in QUOTES:
                raise _mistake(text, end, "a quote inside a word: put the whole word between quotes")
            tokens.append(_Token("word", text[at:end].strip(), at))
            at = end
    return tokens


def _quoted(text: str, start: int) -> tuple[str, int]:
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
    raise _mistake(text, start, f"the quote {quote} is never closed")


def _items(text: str, tokens: list[_Token]) -> dict[str, str | None]:
    """Split at commas; each part must be ``word`` or ``word = word``."""
    items: dict[str, str | None] = {}
    if not tokens:
        return items
    part: list[_Token] = []
    for token in [*tokens, _Token(",", ",", len(text))]:
        if token.kind != ",":
            part.append(token)
            continue
        kinds = [piece.kind for piece in part]
        if kinds == ["word"]:
            name, value = part[0].text, None
        elif kinds == ["word", "=", "word"]:
            name, value = part[0].text, part[2].text
        elif not part:
            raise _mistake(text, token.at, "a name is missing before this place")
        elif kinds == ["word", "="]:
            raise _mistake(text, part[1].at, f"{part[0].text!r} has no value after '='")
        else:
            wrong = part[1] if kinds[:1] == ["word"] and kinds[1:2] != ["="] else part[min(3, len(part) - 1)]
            raise _mistake(text, wrong.at, "expected 'name' or 'name=value', with commas between")
        if name in items:
            raise UserError(f"{name!r} stands twice in {text!r}")
        items[name] = value
        part = []
    return items


def _evidence(text: str, tokens: list[_Token]) -> dict[str, str]:
    evidence: dict[str, str] = {}
    for name, value in _items(text, tokens).items():
        if value is None:
            raise UserError(f"{name!r} is given without a value in {text!r}; write {_word(name)}=VALUE")
        evidence[name] = value
    return evidence


def _mistake(text: str, at: int, what: str) -> UserError:
    shown = text if len(text) <= 120 else f"{text[max(0, at - 50) : at + 50]}"
    return UserError(f"cannot read {shown!r}: {what} (character {at + 1})")
