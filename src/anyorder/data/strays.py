"""The few cells that do not fit an otherwise clear column of dates or numbers: 31/02/2024, 12a, "about 3".

They are only proposed here: the other texts must then have one reading, as strictly as without them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd

from anyorder.variables.cells import NUMBER
from anyorder.variables.notations import Notation, find_notation
from anyorder.variables.time_forms import SAMPLE, misfits
from anyorder.variables.times import ISO_TIME, has_zone

FEW = 20
"""Different texts of the clear kind that there must be at least."""
MOST_STRAYS = 5
STRAY_TIMES, STRAY_NUMBERS = 0.05, 0.02
"""Shares of the cells: a text that looks like a date and is none is a slip, but 12a among numbers may be a code."""
MOST_LISTED = 200
PARTS, PART = 4, 50
"""So many parts of about so many texts are tried for a notation."""
_DIGIT = re.compile(r"\d")
_ISO = re.compile(ISO_TIME)
_NUMBER = re.compile(NUMBER)
_TIME_LIKE = re.compile(
    r"\d{1,4}\D{1,6}(?:\d{1,2}|[^\W\d_]{3,10}\.?)\D{1,6}\d{1,4}.*|[^\W\d_]{3,10}\.?,? \d{1,2},? \d{4}.*"
)


def stray_times(counts: Mapping[str, int]) -> tuple[list[str], list[str]] | None:
    """The texts among times that are none, and those that are times in the form of ISO beside another one."""
    texts = list(counts)
    some = texts[:: max(1, len(texts) // SAMPLE)]
    if len(texts) < FEW or sum(_TIME_LIKE.fullmatch(text) is not None for text in some) < 0.8 * len(some):
        return None
    iso = [text for text in texts if _ISO.fullmatch(text)]
    read = pd.to_datetime(pd.Series(iso, dtype="str"), format="ISO8601", errors="coerce", utc=True).notna()
    real = {text for text, good in zip(iso, read, strict=True) if good}
    if 2 * len(real) > len(texts):
        off = [text for text in texts if text not in real]
    else:
        off, real = misfits(texts), {text for text in real if not has_zone(text)}
    strays, beside = [text for text in off if text not in real], [text for text in off if text in real]
    if not off or len(texts) - len(off) < FEW or not slips_of_times(strays, counts):
        return None
    return strays, beside


def slips_of_times(strays: Sequence[str], counts: Mapping[str, int]) -> bool:
    """Whether these are few enough of all texts to be slips among dates."""
    return _rare(strays, counts, STRAY_TIMES, min(MOST_LISTED, max(MOST_STRAYS, STRAY_TIMES * len(counts))))


def stray_numbers(counts: Mapping[str, int], *, decimal_comma: bool) -> list[str]:
    """The texts among numbers that are none; empty where there are none, or too many."""
    texts = list(counts)
    some = texts[:: max(1, len(texts) // SAMPLE)]
    if len(texts) < FEW or sum(_DIGIT.search(text) is not None for text in some) < 0.9 * len(some):
        return []
    plain = sum(_NUMBER.fullmatch(text) is not None for text in some) > 0.9 * len(some)
    if plain:
        strays = [text for text in texts if not _NUMBER.fullmatch(text)]
    else:
        notation = _of_most(some, decimal_comma=decimal_comma)
        strays = [] if notation is None else [text for text in texts if notation.read(text) is None]
    if not strays or len(texts) - len(strays) < FEW or not _rare(strays, counts, STRAY_NUMBERS, MOST_STRAYS):
        return []
    return strays


def _of_most(texts: Sequence[str], *, decimal_comma: bool) -> Notation | None:
    """The notation that nearly all texts have: that of a part in which, by luck, nothing is wrong."""
    shapes = Counter(map(without_numbers, texts))
    usual = [text for text in texts if shapes[without_numbers(text)] >= STRAY_TIMES * len(texts)]
    for start in range(PARTS):
        part = usual[start :: max(PARTS, len(usual) // PART)]
        notation = find_notation(part, decimal_comma=decimal_comma) if part else None
        if notation is not None and sum(notation.read(text) is None for text in texts) <= STRAY_TIMES * len(texts):
            return notation
    return None


def few_strays(counts: Mapping[str, int], cells: int) -> bool:
    """Whether these are few enough texts, and cells, to be slips among so many cells that are numbers or times."""
    few = len(counts) <= MOST_STRAYS and sum(counts.values()) <= STRAY_TIMES * cells
    return not counts or (few and cells >= FEW)


def without_numbers(text: str) -> str:
    """The text with all numbers alike."""
    return re.sub(r"[\d.,]+", "9", text)


def _rare(strays: Sequence[str], counts: Mapping[str, int], share: float, most: float) -> bool:
    cells = sum(counts.values())
    return len(strays) <= most and sum(counts[text] for text in strays) <= max(1.0, share * cells)
