"""The distance from UTC that stands behind a time: -0500, +02:00, Z, GMT+1.

Where summer time changes the clocks, one column has two of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

_BEHIND_A_BLANK = re.compile(r" (?:(?:GMT|UTC)(?:[+-]\d{1,2}(?::\d\d)?)?|[+-]\d\d:?\d\d)$")
_AT_THE_TIME = re.compile(r":(?:\d\d|%[MS])(?:\.(?:\d+|%3?f))?(Z|[+-]\d\d:?\d\d)$")
"""An offset at the end of a time, and of a form of times."""


def written_offset(text: str) -> str:
    """How the offset of a time is written, with the blank before it; empty where there is none."""
    if found := _BEHIND_A_BLANK.search(text):
        return found[0]
    found = _AT_THE_TIME.search(text)
    return found[1] if found else ""


def minutes_of(offset: str) -> int:
    """How many minutes the clock is ahead of UTC."""
    digits = re.findall(r"\d+", offset)
    if not digits:
        return 0
    if len(digits) == 1:
        digits = [digits[0][:2], digits[0][2:] or "0"]
    ahead = 60 * int(digits[0]) + int(digits[1])
    return -ahead if "-" in offset else ahead


def clock_of(offset: str) -> str:
    """The time zone of this offset, as pandas names it."""
    ahead = minutes_of(offset)
    hours, minutes = divmod(abs(ahead), 60)
    return f"UTC{'-' if ahead < 0 else '+'}{hours:02d}:{minutes:02d}" if ahead else "UTC"


def commonest_offset(texts: Iterable[str]) -> str:
    """The offset that most of these times have, the first of several."""
    counts = Counter(found for text in texts if (found := written_offset(text.strip())))
    return counts.most_common(1)[0][0] if counts else ""


def split_offsets(texts: Sequence[str]) -> tuple[list[str], str] | None:
    """The times without their offsets, and the commonest of these; None unless all have one and some differ."""
    found = [_BEHIND_A_BLANK.search(text) if ":" in text else None for text in texts]
    ends = [each[0] for each in found if each]
    if len(ends) < len(texts) or len(set(ends)) < 2:
        return None
    bare = [text[: len(text) - len(end)] for text, end in zip(texts, ends, strict=True)]
    return bare, Counter(ends).most_common(1)[0][0]
