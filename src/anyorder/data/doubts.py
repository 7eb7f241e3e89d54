"""What the user should know about how a column was read, in sentences: what else it could mean, what was set aside."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from anyorder.data.almost_numbers import almost_numbers
from anyorder.data.readings import are_pairs
from anyorder.variables.centuries import split_century
from anyorder.variables.offsets import written_offset
from anyorder.variables.scales import day_of_year
from anyorder.variables.schema import Kind, Variable
from anyorder.variables.time_forms import TimeForm

SHOWN = 5
"""Texts that are listed one by one."""
FIRST = {"d": "day", "m": "month", "y": "year"}
_SPREADSHEET = re.compile(r"\d{1,2}-[^\W\d_]{3}")
"""How a spreadsheet writes a day without a year: it makes such of names too (of the gene SEPT2, 2-Sep)."""
_RANGE = re.compile(r"\d+(?:\s?[-–/+]\s?\d*)?")


def cells_in_words(count: int) -> str:
    """So many cells."""
    return "1 cell" if count == 1 else f"{count:,} cells"


def as_unknown(texts: Sequence[str], counts: Mapping[str, int]) -> str:
    """About texts that are taken for unknown: which, and how many cells."""
    cells = sum(counts[text] for text in texts)
    if len(texts) > SHOWN:
        return f"{cells_in_words(cells)}, such as {', '.join(map(repr, texts[:2]))}, are taken for unknown"
    count = f" ({cells_in_words(cells)})" if cells > len(texts) else ""
    return f"{', '.join(map(repr, texts))}{count} {'is' if len(texts) == 1 else 'are'} taken for unknown"


def other_order(form: TimeForm | None) -> tuple[str, ...]:
    """About dates that could be read in another order too."""
    if form is None or not form.other:
        return ()
    forms = (split_century(pattern)[1] for pattern in (form.pattern, form.other))
    first, second = (FIRST[pattern.replace("-", "")[1]] for pattern in forms)
    return (f"dates could be read with the {first} or the {second} first; taken with the {first} first",)


def other_offsets(variable: Variable, counts: Mapping[str, int]) -> tuple[str, ...]:
    """About times that are written on several clocks, as summer time makes them."""
    if variable.kind is not Kind.DATETIME or not variable.zone:
        return ()
    often: Counter[str] = Counter()
    for text, count in counts.items():
        if offset := written_offset(text).strip():
            often[offset] += count
    if len(often) < 2:
        return ()
    listed = ", ".join(offset for offset, _ in often.most_common(SHOWN)) + (", ..." if len(often) > SHOWN else "")
    return (
        f"times have several offsets from UTC ({listed}): they are compared as moments, and new ones are written with "
        f"{written_offset(variable.form).strip()}, the most common",
    )


def like_days(variable: Variable) -> tuple[str, ...]:
    """About levels that are dates without a year, which spreadsheets make of ranges and names."""
    texts = [level for level in variable.levels if isinstance(level, str)]
    days = {text: found for text in texts if (found := day_of_year(text))}
    if not all(_RANGE.fullmatch(text) for text in texts if text not in days):
        days = {text: found for text, found in days.items() if _SPREADSHEET.fullmatch(text)}
    if not days:
        return ()
    text = next((text for text, (month, day) in days.items() if month != day), next(iter(days)))
    month, day = days[text]
    return (f"{text!r} is a date without a year: spreadsheets make such dates of {day}-{month} or {month}-{day}",)


def about_levels(different: Sequence[str]) -> tuple[str, ...]:
    """About levels that have numbers in them but are not read as numbers."""
    if are_pairs(different):
        example = next(text for text in different if "," in text)
        return (f"texts such as {example!r} are taken for lists of answers; they could be fractions",)
    reason = almost_numbers(different)
    return (reason,) if reason else ()
