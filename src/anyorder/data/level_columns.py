"""What a column of levels is: yes and no, words with an order, or names; and what is too many of them to learn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anyorder.errors import UserError, nearest
from anyorder.variables import hints
from anyorder.variables.cells import Mask, Series, all_match, distinct, in_order, plain, refuse
from anyorder.variables.codecs.level import TRUTH, YES_NO
from anyorder.variables.scales import in_known_order, loosely
from anyorder.variables.schema import Kind, Level, Variable

MOST_LEVELS = 1000
FEW_TEXTS = 20
"""Up to here a text column with a new text in every row may still be a small table, not an id."""
MOSTLY, HALF, SHORT_TABLE = 0.9, 0.5, 100
"""The shares of different texts from which on they are ids: in a table of fewer rows, and in longer ones."""
SENTENCE = 4.0
"""So many words on average make a text a sentence."""
MOST_ANSWERS = 40
"""To choose several from."""
MANY = 10_000
"""Texts that are looked at to tell what they are."""
LISTS = "lists of answers: make a column of each answer"
_DATE = r"(?:\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d\d)|\d{4}[-/.]\d{1,2}[-/.]\d{1,2})"
PATTERNS = (
    (r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\{[0-9a-f-]{36}\}", "ids (UUIDs)"),
    (r"(?i)(?:0x)?[0-9a-f]{16,128}", "ids (hashes)"),
    (r"[^@\s]+@[^@\s]+\.[a-zA-Z]{2,}", "e-mail addresses"),
    (r"(?i)(?:https?|ftp)://\S+|www\.\S+", "web addresses"),
    (r"(?i)(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}", "ids (MAC addresses)"),
    (r"(?:\d{1,3}\.){3}\d{1,3}(?:/\d+)?|(?i:[0-9a-f]{0,4}:){2,7}(?i:[0-9a-f]{0,4})", "IP addresses"),
    (rf"{_DATE}(?: ?(?:-|–|—|to|bis|au|al|do|/) ?){_DATE}", "two dates in one cell: split them into two columns"),
    (rf"{_DATE}(?:[T ].*)?", "dates in several forms"),
    (r"\d{1,2}(?:[,;|]\s?\d{1,2})+|\d{1,2}", LISTS),
    (r"\d{2,3}\s?/\s?\d{2,3}(?: \w+)?", "two numbers in one cell: split them into two columns"),
    (r"\+?\(?\d[\d ()/.-]{5,}\d", "phone numbers or ids"),
    (r"-?\d{1,3}\.\d+[,; ]\s*-?\d{1,3}\.\d+", "coordinates, two numbers in one cell: split them into two columns"),
    (r"(?i)[a-z]{0,6}[-_#/ ]?\d+(?:[-_/]\w+)*", "ids"),
)
"""What texts that never repeat are called, by their form."""


SHORT_AND_LONG = (
    frozenset(("yes", "y", "no", "n")),
    frozenset(("true", "t", "false", "f")),
    frozenset(("ja", "j", "nein", "n")),
    frozenset(("oui", "o", "non", "n")),
)
"""Words for true and false of which people write now the first letter, now all."""


def _first_letter_and_truth(text: str) -> str:
    """What spellings of one word have in common; on and off begin alike, and are told apart by what they mean."""
    word = text.strip().casefold()
    return f"{word[:1]} {TRUTH.get(word)}"


def boolean_variable(name: str, column: Series, missing: Mask) -> Variable:
    """A column of true and false; words that differ in capitals or length (Y, yes) are the one that occurs most."""
    levels, codes = _commonest(column, *distinct(column, missing, name), _first_letter_and_truth)
    meanings = [TRUTH.get(str(level).strip().casefold()) for level in levels]
    for code, meaning in enumerate(meanings):
        row = int(np.flatnonzero(~missing)[np.argmax(codes == code)])
        if meaning is None:
            refuse(
                name,
                column,
                row,
                f"expected true/false, yes/no or 1/0, got {levels[code]!r}, so this is not a boolean column",
            )
        if meaning in meanings[:code]:
            twin = levels[meanings.index(meaning)]
            refuse(
                name, column, row, f"{levels[code]!r} and {twin!r} mean the same; a boolean column needs one spelling"
            )
    ordered = [level for _, level in sorted(zip(map(bool, meanings), levels, strict=True), key=lambda pair: pair[0])]
    return _with_levels(name, Kind.BOOLEAN, column, ordered)


def level_variable(
    name: str,
    column: Series,
    missing: Mask,
    kind: Kind = Kind.CATEGORICAL,
    order: Sequence[object] = (),
    *,
    declared: bool = False,
) -> Variable:
    """A column of names, or of levels with an order: the one given, a known one, else that of numbers and letters.

    Texts that differ in blanks around them are one level, as are on a known scale those that differ in capitals; where
    the kind is ``declared``, every text is a level of its own.
    """
    levels, codes = distinct(column, missing, name)
    if not declared:
        levels, codes = _commonest(column, levels, codes, str.strip)
    texts = all(isinstance(level, str) for level in levels)
    if kind is Kind.ORDINAL and not declared and texts:
        alike = _commonest(column, levels, codes, loosely)
        if len(alike[0]) < len(levels) and in_known_order([str(level) for level in alike[0]]):
            levels, codes = alike
    if len(levels) > MOST_LEVELS:
        other = "merge rare values first" if texts else f"use {hints.kind(name, 'continuous')}"
        raise UserError(
            f"column {name!r} has {len(levels)} different values, more than {MOST_LEVELS} categories; "
            f"leave it out with {hints.drop(name)}, or {other}"
        )
    wild = [level for level in levels if isinstance(level, float) and not np.isfinite(level)]
    if wild:
        row = int(np.flatnonzero(~missing)[np.argmax(codes == levels.index(wild[0]))])
        refuse(name, column, row, f"expected a finite number, got {wild[0]}; clear the cell if it is unknown")
    if not isinstance(column.dtype, pd.CategoricalDtype):
        levels = in_order(levels)
        if kind is Kind.ORDINAL and not order and texts:
            levels = list(in_known_order([str(level) for level in levels]) or levels)
    if order:
        levels = _in_given_order(name, levels, order)
    return _with_levels(name, kind, column, levels)


def _commonest(
    column: Series, levels: list[Level], codes: NDArray[np.int64], same: Callable[[str], str]
) -> tuple[list[Level], NDArray[np.int64]]:
    """One of the texts that are the ``same``, the one that most cells have, and the codes of the cells anew."""
    if isinstance(column.dtype, pd.CategoricalDtype):  # comes back as it is, with all its categories
        return levels, codes
    counts = np.bincount(codes, minlength=len(levels))
    best: dict[str, int] = {}
    for code in sorted(range(len(levels)), key=lambda code: (-counts[code], len(str(levels[code])))):
        level = levels[code]
        if isinstance(level, str):
            best.setdefault(same(level), code)
    mine = [best[same(level)] if isinstance(level, str) else code for code, level in enumerate(levels)]
    kept = sorted(set(mine))
    table = np.array([kept.index(code) for code in mine], dtype=np.int64)
    return [levels[code] for code in kept], table[codes] if len(levels) else codes


def _in_given_order(name: str, levels: Sequence[Level], order: Sequence[object]) -> list[Level]:
    """The levels in the order that the user gave, and those of the user that do not occur."""
    said = [plain(level) for level in order]
    by_text = {str(level): level for level in levels}
    absent = [level for level in levels if str(level) not in {str(one) for one in said}]
    if absent:
        raise UserError(
            f"levels of {name!r}: {absent[0]!r} occurs in the column but not in the order given; "
            f"{nearest(absent[0], list(map(str, said)), noun='levels given')}"
        )
    return [by_text.get(str(level), level) for level in said]


def in_words(texts: Sequence[str]) -> bool:
    """Whether these different texts are one word for yes and one for no, in long and in short at most."""
    words = {text.strip().casefold() for text in texts}
    meanings = {TRUTH.get(word) for word in words}
    return any(words == set(pair) for pair in YES_NO) or (
        meanings == {True, False} and any(words <= both for both in SHORT_AND_LONG)
    )


def unlearnable(different: Sequence[str], cells: int) -> str:
    """Why nothing can be learned from these different texts in so many cells; empty if something can."""
    if cells <= FEW_TEXTS:
        return ""
    sentences = len(different) > HALF * cells and _words_in(different) >= SENTENCE
    most = (MOSTLY if cells < SHORT_TABLE else HALF) * cells
    if len(different) < most and len(different) <= MOST_LEVELS:
        return "free text" if sentences else ""
    sample = pd.Series(list(different[:MANY]), dtype="str")
    for pattern, noun in PATTERNS:
        if all_match(sample, pattern):
            return noun
    if _are_lists(different[:MANY]):
        return LISTS
    if sentences:
        return "free text"
    if len(different) == cells:
        return "a different text in every row, like a name or an id"
    if len(different) >= most:
        return "a different text in most rows, like a name or an id"
    return f"{len(different):,} different texts, more than {MOST_LEVELS:,}"


def _are_lists(texts: Sequence[str]) -> bool:
    """Whether the texts are made of a few answers, of which one could choose several: TV; Web; Print."""
    for sign in ";|,":
        lists = [[part.strip() for part in text.split(sign)] for text in texts]
        answers = {part for parts in lists for part in parts}
        several = sum(len(parts) > 1 for parts in lists)
        once = all(len(set(parts)) == len(parts) for parts in lists)
        if once and 2 * several > len(texts) and 2 < len(answers) <= min(MOST_ANSWERS, len(texts) / 2):
            return True
    return False


def _words_in(texts: Sequence[str]) -> float:
    some = texts[:MANY]
    return sum(len(text.split()) for text in some) / len(some)


def _with_levels(name: str, kind: Kind, column: Series, levels: Sequence[Level]) -> Variable:
    if not isinstance(column.dtype, pd.CategoricalDtype):
        zone = str(getattr(column.dtype, "tz", None) or "")
        return Variable(name, kind, tuple(levels), dtype=str(column.dtype), zone=zone)
    categories = tuple(plain(category) for category in column.cat.categories)
    ordered = bool(column.cat.ordered)
    return Variable(name, kind, tuple(levels), dtype="category", categories=categories, ordered=ordered)
