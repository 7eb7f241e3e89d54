r"""The small language of questions: ``price, tax | rooms=6, age=30..40`` stands for p(price, tax | rooms, age).

    question = form "(" items [ "|" items ] ")"  |  items [ "|" items ]        asked, then evidence
    form     = "P" | "E" | "mean" | "median" | "mode" | "H" | "I"    probability, expectation, ..., entropy;
                                           I(a; b | evidence) is the mutual information
    items    = [ item { "," item } ]
    item     = said { "or" said }          of one column, whose name need not be repeated: price < 10 or > 90
    said     = word [ "=" word ]           evidence always has a value; an asked item may have one
             | word compare word           price > 30; the second word may be another column
             | word compare word compare word             20 < price <= 30
             | word "between" word "and" word             both ends belong to it
    compare  = ">" | ">=" | "<" | "<=" | "!="
    word     = quoted | set | plain        blanks around a word do not count
    set      = "{" word { "," word } "}"

A plain word is anything without ``, | = < >`` and quotes. A quoted word stands between ``"`` or ``'`` and holds
anything; a backslash keeps the next character as it is. A value stays text here, a comparison too (``>30``, ``>20
<=30``, ``!=red``, ``<10 or >90``): only the schema knows what it means. :func:`read_value` says what it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from anyorder.errors import UserError
from anyorder.questions.items import MIRRORED, read_item
from anyorder.support.words import (
    TextError,
    Token,
    bracket_end,
    mistake,
    quoted_word,
    split_at,
    tokens,
    words_of_set,
    write_word,
)
from anyorder.support.words import write_set as write_set  # beside the other writers, for whoever imports them

FORMS = {
    "P": "probability",
    "E": "expectation",
    "median": "median",
    "mode": "mode",
    "H": "entropy",
    "I": "mutual information",
}
OTHER_FORMS = {"mean": "E"}

_OPENED = re.compile(r"\s*(P|E|H|I|mean|median|mode)\s*([(\[])")
_SIGN = re.compile(r"^([<>!]?=|[<>])\s*")
_UNEQUAL = re.compile(r"!=\s*(\S.*)", re.DOTALL)
_BETWEEN = re.compile(r"between\s(.*\S)\s+and\s+(\S.*)", re.DOTALL)
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?")
_ONE_SIDE = re.compile(r"(>=|<=|>|<)\s*([^<>]*[^<>\s])")
_TWO_SIDES = re.compile(r"(>=|>)\s*([^<>]*[^<>\s])\s*(<=|<)\s*([^<>]*[^<>\s])")


@dataclass(frozen=True)
class Question:
    """What was typed: asked names in order, values for those of them that came with one, and the evidence.

    ``form`` is one of ``FORMS`` where the question has one; ``beside`` holds the second set of names of I(a; b).
    """

    asked: tuple[str, ...]
    values: Mapping[str, str]
    evidence: Mapping[str, str]
    form: str = ""
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Looks:
    """What a value looks like: a range, a set, all but some values, one of several of these, or the word "missing"."""

    low: str | None = None
    high: str | None = None
    low_open: bool = False
    high_open: bool = False
    members: tuple[str, ...] = ()
    missing: bool = False
    excluded: tuple[str, ...] = ()
    either: tuple[str, ...] = ()


def read_value(text: str) -> Looks | None:
    """What a value says, None where it is a plain one.

    ``30..40``, ``30..``, ``..40``, ``between 30 and 40``, ``>30``, ``>20 <=30``, ``{red, blue}``, ``!=red``,
    ``red or blue``, ``<10 or >90``, ``missing``.
    """
    text = text.strip()
    if text.casefold() == "missing":
        return Looks(missing=True)
    members = words_of_set(text)
    if members:
        return Looks(members=tuple(members))
    alternatives = split_at(text, "or")
    if len(alternatives) > 1 and all(alternatives):
        return Looks(either=tuple(alternatives))
    if unequal := _UNEQUAL.fullmatch(text):
        return Looks(excluded=tuple(words_of_set(unequal[1]) or [unquoted(unequal[1])]))
    if between := _BETWEEN.fullmatch(text):
        return Looks(unquoted(between[1]), unquoted(between[2]))
    if both := _TWO_SIDES.fullmatch(text):
        above, low, below, high = both.groups()
        return Looks(low, high, above == ">", below == "<")
    if one := _ONE_SIDE.fullmatch(text):
        sign, end = one.groups()
        return Looks(low=end, low_open=sign == ">") if sign[0] == ">" else Looks(high=end, high_open=sign == "<")
    low, dots, high = text.partition("..")
    low, high = low.strip(), high.strip()
    return Looks(low or None, high or None) if dots and (low or high) else None


def unquoted(text: str) -> str:
    """What stands between the quotes, where a whole text stands between them."""
    text = text.strip()
    try:
        word, end = quoted_word(text, 0) if text[:1] in ('"', "'") and text else ("", -1)
    except UserError:
        return text
    return word if end == len(text) else text


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
    form, start = OTHER_FORMS.get(form, form), opened.end(2)
    try:
        question = _question(" " * start + whole[start:-1], form)
    except TextError as wrong:  # a mistake is shown in what was typed
        raise mistake(text, wrong.at, wrong.what) from None
    if form == "P" and (not question.asked or len(question.values) < len(question.asked)):
        named = next((name for name in question.asked if name not in question.values), "")
        missing = f"{named!r} has no value" if named else "there is none"
        raise mistake(text, _place(text, start, named), f"P( ) needs an event, such as P(price > 30); {missing}")
    if form != "P" and (question.values or not question.asked):
        named = next(iter(question.values), "")
        raise mistake(text, _place(text, start, named), f"the {FORMS[form]} is asked of names without values")
    return question


def _place(text: str, start: int, name: str) -> int:
    return max(text.find(name, start), start)


def _question(text: str, form: str) -> Question:
    found = tokens(text, ";" if form == "I" else "")
    bars = [index for index, token in enumerate(found) if token.kind == "|"]
    if len(bars) > 1:
        raise mistake(text, found[bars[1]].at, "a second '|': one bar separates what is asked from what is known")
    cut = bars[0] if bars else len(found)
    head = found[:cut]
    beside: dict[str, _Item] = {}
    if form == "I":
        parts = [index for index, token in enumerate(head) if token.kind == ";"]
        if len(parts) != 1:
            at = head[parts[1]].at if parts else len(text)
            raise mistake(text, at, "mutual information is asked of two sets separated by one ';': I(a; b | evidence)")
        beside = _items(text, head[parts[0] + 1 :])
        for item in beside.values():
            if item.value is not None:
                raise mistake(text, item.at, "mutual information is asked of names without values: I(a; b | evidence)")
        if not beside:
            raise mistake(text, head[parts[0]].at, "a name is missing after this point: I(a; b | evidence)")
        head = head[: parts[0]]
    asked = _items(text, head)
    evidence = _evidence(text, found[cut + 1 :])
    values = {name: item.value for name, item in asked.items() if item.value is not None}
    for name in (*asked, *beside):
        if name in evidence and (form == "I" or not _partial(evidence[name].value or "")):
            what = f"{name!r} is asked and given: leave it on one side of the '|'"
            raise mistake(text, evidence[name].at, what)
        if name in asked and name in beside:
            raise mistake(text, beside[name].at, f"{name!r} stands twice")
    return Question(tuple(asked), values, _texts(evidence), form, tuple(beside))


def parse_evidence(text: str) -> dict[str, str]:
    """Read ``rooms=6, age=30..40, price > 5``; an empty text is no evidence."""
    return _texts(_evidence(text, tokens(text)))


def parse_names(text: str) -> list[str]:
    """Read ``rooms, river``: names without values."""
    items = _items(text, tokens(text))
    for name, item in items.items():
        if item.value is not None:
            raise mistake(text, item.at, f"only names are expected, but {name!r} has a value ({item.value!r})")
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
    always = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if value is None:
        return word if _reads_back(word, name, None) else always
    # As it would be typed, where that reads back letter by letter.
    for shown in (*_typed(word, value, quoted), f"{word}={write_word(value, quoted)}"):
        if _reads_back(shown, name, value):
            return shown
    return f"{always}={write_word(value, quoted)}"


def _typed(word: str, value: str, quoted: str) -> Iterable[str]:
    """How a comparison would be typed."""
    looks = read_value(value)
    if looks is None:
        return
    if looks.either and not any(mark in value for mark in quoted):
        parts = [_SIGN.sub(r"\1 ", part) if part[:1] in "<>!=" else f"= {part}" for part in looks.either]
        yield f"{word} " + f" or {word} ".join(parts)
    if len(looks.excluded) == 1 and not value[2:].startswith("{"):
        yield f"{word} != {write_word(looks.excluded[0], quoted)}"
    if one := _ONE_SIDE.fullmatch(value):
        yield f"{word} {one[1]} {write_word(one[2], quoted)}"
    if both := _TWO_SIDES.fullmatch(value):
        above, low, below, high = both.groups()
        yield f"{write_word(low, quoted)} {MIRRORED[above]} {word} {below} {write_word(high, quoted)}"


def _reads_back(text: str, name: str, value: str | None) -> bool:
    try:
        items = _items(text, tokens(text))
    except UserError:
        return False
    return [(found, item.value) for found, item in items.items()] == [(name, value)]


@dataclass(frozen=True)
class _Item:
    """What is said of one column, and where."""

    value: str | None
    at: int


def _texts(items: Mapping[str, _Item]) -> dict[str, str]:
    return {name: item.value for name, item in items.items() if item.value is not None}


def _items(text: str, found: list[Token]) -> dict[str, _Item]:
    """Split at commas; each part must be ``word``, ``word = word``, a comparison, or several of these with "or"."""
    items: dict[str, _Item] = {}
    if not found:
        return items
    part: list[Token] = []
    before: list[Token] = []
    for token in [*found, Token(",", ",", len(text))]:
        if token.kind != ",":
            part.append(token)
            continue
        _refuse_thousands(text, before, part)
        name, value = read_item(text, part, token.at)
        if name in items:
            raise mistake(text, part[0].at, f"{name!r} stands twice")
        items[name] = _Item(value, part[0].at)
        before, part = part, []
    return items


def _refuse_thousands(text: str, before: list[Token], part: list[Token]) -> None:
    """Say what to write in place of 50,000, if its second half stands where a statement should."""
    if len(part) != 1 or not part[0].plain or not before or not before[-1].plain:
        return
    if len(before) == 1 and " between " not in before[0].text:
        return  # names of columns, which may be numbers
    at = part[0].at
    found = next((each for each in _THOUSANDS.finditer(text) if each.start() < at < each.end()), None)
    if found:
        number = found[0]
        what = f"a comma stands between two statements: write {number.replace(',', '')}, or '{number}' in quotes"
        raise mistake(text, found.start(), what)


def _evidence(text: str, found: list[Token]) -> dict[str, _Item]:
    items = _items(text, found)
    for name, item in items.items():
        if item.value is None:
            raise mistake(text, item.at, f"{name!r} is given without a value; write {write_word(name)}=VALUE")
    return items
