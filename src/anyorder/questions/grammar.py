r"""The small language of questions: ``price, tax | rooms=6, age=30..40`` stands for p(price, tax | rooms, age).

    question = form "(" items [ "|" items ] ")"  |  items [ "|" items ]        asked, then evidence
    form     = "P" | "E" | "H" | "I"       probability, expectation, entropy; I(a; b | evidence) mutual information
    items    = [ item { "," item } ]
    item     = word [ "=" word ]           evidence always has a value; an asked item may have one
             | word compare word           price > 30
             | word compare word compare word             20 < price <= 30
    compare  = ">" | ">=" | "<" | "<="
    word     = quoted | set | plain        blanks around a word do not count
    set      = "{" word { "," word } "}"

A plain word is anything without ``, | = < >`` and quotes. A quoted word stands between ``"`` or ``'`` and holds
anything; a backslash keeps the next character as it is. A value stays text here, a comparison too (``>30``, ``>20
<=30``): only the schema knows what it means. :func:`read_value` says what it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from anyorder.errors import UserError
from anyorder.support.words import Token, bracket_end, mistake, tokens, words_of_set, write_word
from anyorder.support.words import write_set as write_set  # beside the other writers, for whoever imports them

FORMS = {"P": "probability", "E": "expectation", "H": "entropy", "I": "mutual information"}
COMPARE = (">", ">=", "<", "<=")
MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}

_OPENED = re.compile(r"\s*([PEHI])\s*([(\[])")
_ONE_SIDE = re.compile(r"(>=|<=|>|<)\s*([^<>]*[^<>\s])")
_TWO_SIDES = re.compile(r"(>=|>)\s*([^<>]*[^<>\s])\s*(<=|<)\s*([^<>]*[^<>\s])")


@dataclass(frozen=True)
class Question:
    """What was typed: asked names in order, values for those of them that came with one, and the evidence.

    ``form`` is P, E, H or I where the question has one; ``beside`` holds the second set of names of I(a; b).
    """

    asked: tuple[str, ...]
    values: Mapping[str, str]
    evidence: Mapping[str, str]
    form: str = ""
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Looks:
    """What a value looks like: a range, a set, or the word "missing"."""

    low: str | None = None
    high: str | None = None
    low_open: bool = False
    high_open: bool = False
    members: tuple[str, ...] = ()
    missing: bool = False


def read_value(text: str) -> Looks | None:
    """``30..40``, ``30..``, ``..40``, ``>30``, ``>20 <=30``, ``{red, blue}``, ``missing``; None for a plain value."""
    text = text.strip()
    if text.casefold() == "missing":
        return Looks(missing=True)
    members = words_of_set(text)
    if members:
        return Looks(members=tuple(members))
    if both := _TWO_SIDES.fullmatch(text):
        above, low, below, high = both.groups()
        return Looks(low, high, above == ">", below == "<")
    if one := _ONE_SIDE.fullmatch(text):
        sign, end = one.groups()
        return Looks(low=end, low_open=sign == ">") if sign[0] == ">" else Looks(high=end, high_open=sign == "<")
    low, dots, high = text.partition("..")
    low, high = low.strip(), high.strip()
    return Looks(low or None, high or None) if dots and (low or high) else None


def parse_question(text: str) -> Question:
    """Read ``asked | evidence`` or ``FORM(asked | evidence)``; without ``|`` nothing is known."""
    opened = _OPENED.match(text)
    if opened is None:
        return _question(text, "")
    form, bracket = opened.groups()
    whole = text.rstrip()
    end = bracket_end(whole[opened.start(2) :])
    if end is None:
        raise mistake(text, opened.start(2), f"the bracket {bracket!r} after {form} is never closed")
    if opened.start(2) + end < len(whole):
        return _question(text, "")
    inner = whole[opened.end(2) : -1]
    question = _question(inner, form)
    if form == "P" and (not question.asked or len(question.values) < len(question.asked)):
        raise UserError(f"P( ) needs an event, such as P(price > 30 | rooms=6); in {text!r} something has no value")
    if form in "EHI" and (question.values or not question.asked):
        raise UserError(f"the {FORMS[form]} is asked of names without values, got {text!r}")
    return question


def _question(text: str, form: str) -> Question:
    found = tokens(text, ";" if form == "I" else "")
    bars = [index for index, token in enumerate(found) if token.kind == "|"]
    if len(bars) > 1:
        raise mistake(text, found[bars[1]].at, "a second '|': one bar parts what is asked from what is known")
    cut = bars[0] if bars else len(found)
    head = found[:cut]
    beside: dict[str, str | None] = {}
    if form == "I":
        parts = [index for index, token in enumerate(head) if token.kind == ";"]
        if len(parts) != 1:
            raise UserError(
                f"mutual information is asked of two sets parted by one ';': I(a; b | evidence), got {text!r}"
            )
        beside = _items(text, head[parts[0] + 1 :])
        head = head[: parts[0]]
        if not beside or any(value is not None for value in beside.values()):
            raise UserError(f"mutual information is asked of names without values: I(a; b | evidence), got {text!r}")
    asked = _items(text, head)
    evidence = _evidence(text, found[cut + 1 :])
    values = {name: value for name, value in asked.items() if value is not None}
    for name in (*asked, *beside):
        if name in evidence and (form == "I" or not _partial(evidence[name])):
            raise UserError(f"{name!r} is asked and given in {text!r}: leave it on one side of the '|'")
        if name in asked and name in beside:
            raise UserError(f"{name!r} stands twice in {text!r}")
    return Question(tuple(asked), values, evidence, form, tuple(beside))


def parse_evidence(text: str) -> dict[str, str]:
    """Read ``rooms=6, age=30..40, price > 5``; an empty text is no evidence."""
    return _evidence(text, tokens(text))


def parse_names(text: str) -> list[str]:
    """Read ``rooms, river``: names without values."""
    items = _items(text, tokens(text))
    for name, value in items.items():
        if value is not None:
            raise UserError(f"only names are expected in {text!r}, but {name!r} has a value ({value!r})")
    return list(items)


def write_question(question: Question) -> str:
    """The text that :func:`parse_question` reads back as ``question``."""
    form = question.form
    text = _written(question, "()[]" + (";" if form == "I" else "") if form else "")
    if form:
        return f"E[{text}]" if form == "E" else f"{form}({text})"
    # A column that is called P(x) must not be taken for a probability: then every word with a bracket is quoted.
    return _written(question, "()[]") if _OPENED.match(text) else text


def _written(question: Question, quoted: str) -> str:
    """What stands on both sides of the bar; words with a letter of ``quoted`` stand between quotes."""
    asked = ", ".join(_item(name, question.values.get(name), quoted) for name in question.asked)
    if question.form == "I":
        asked += "; " + ", ".join(write_word(name, quoted) for name in question.beside)
    evidence = ", ".join(_item(name, value, quoted) for name, value in question.evidence.items())
    return f"{asked} | {evidence}" if evidence else asked


def write_evidence(evidence: Mapping[str, str]) -> str:
    """The text that :func:`parse_evidence` reads back as ``evidence``."""
    return ", ".join(_item(name, value) for name, value in evidence.items())


def write_names(names: Iterable[str]) -> str:
    """The text that :func:`parse_names` reads back as ``names``."""
    return ", ".join(write_word(name) for name in names)


def _partial(value: str) -> bool:
    looks = read_value(value)
    return looks is not None and not looks.missing


def _item(name: str, value: str | None, quoted: str = "") -> str:
    word = write_word(name, quoted)
    if value is None:
        return word
    # A comparison is written as one where that reads back letter by letter.
    if one := _ONE_SIDE.fullmatch(value):
        end = write_word(one[2], quoted)
        if value == one[1] + one[2] and not one[2].startswith("="):
            return f"{word} {one[1]} {end}"
    if both := _TWO_SIDES.fullmatch(value):
        above, low, below, high = both.groups()
        if value == f"{above}{low} {below}{high}" and not (low + high).startswith("=") and not high.startswith("="):
            return f"{write_word(low, quoted)} {MIRRORED[above]} {word} {below} {write_word(high, quoted)}"
    return f"{word}={write_word(value, quoted)}"


def _items(text: str, found: list[Token]) -> dict[str, str | None]:
    """Split at commas; each part must be ``word``, ``word = word`` or a comparison."""
    items: dict[str, str | None] = {}
    if not found:
        return items
    part: list[Token] = []
    for token in [*found, Token(",", ",", len(text))]:
        if token.kind != ",":
            part.append(token)
            continue
        name, value = _read_item(text, part, token.at)
        if name in items:
            raise UserError(f"{name!r} stands twice in {text!r}")
        items[name] = value
        part = []
    return items


def _read_item(text: str, part: list[Token], end: int) -> tuple[str, str | None]:
    kinds = [piece.kind for piece in part]
    words = [piece.text for piece in part]
    if kinds == ["word"]:
        return words[0], None
    if kinds == ["word", "=", "word"]:
        return words[0], words[2]
    if len(kinds) == 3 and kinds[0] == kinds[2] == "word" and kinds[1] in COMPARE:
        return words[0], words[1] + words[2]
    if len(kinds) == 5 and kinds[::2] == ["word"] * 3 and kinds[1] in COMPARE and kinds[3] in COMPARE:
        if kinds[1][0] != kinds[3][0]:
            raise mistake(text, part[3].at, "the two comparisons must point the same way: 20 < price <= 30")
        if kinds[1][0] == ">":  # 30 > price >= 20
            return words[2], f"{kinds[3]}{words[4]} {MIRRORED[kinds[1]]}{words[0]}"
        return words[2], f"{MIRRORED[kinds[1]]}{words[0]} {kinds[3]}{words[4]}"
    if not part:
        raise mistake(text, end, "a name is missing before this point")
    if len(kinds) == 2 and kinds[0] == "word" and kinds[1] != "word":
        raise mistake(text, part[1].at, f"{words[0]!r} has no value after {words[1]!r}")
    wrong = part[1] if kinds[:1] == ["word"] and kinds[1:2] == ["word"] else part[min(3, len(part) - 1)]
    raise mistake(text, wrong.at, "expected 'name', 'name=value' or a comparison, with commas between")


def _evidence(text: str, found: list[Token]) -> dict[str, str]:
    evidence: dict[str, str] = {}
    for name, value in _items(text, found).items():
        if value is None:
            raise UserError(f"{name!r} is given without a value in {text!r}; write {write_word(name)}=VALUE")
        evidence[name] = value
    return evidence
