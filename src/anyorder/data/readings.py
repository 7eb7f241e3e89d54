"""How the different texts of a column are read if they are numbers or times, and which only look like numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from anyorder.data import column_names
from anyorder.data.time_columns import real_times
from anyorder.data.two_digit_years import months_of_century
from anyorder.variables.cells import CODE, LEADING_ZERO, NUMBER
from anyorder.variables.notations import Notation, find_notation
from anyorder.variables.notations.clock import ClockNotation
from anyorder.variables.notations.duration import DurationNotation
from anyorder.variables.notations.number import MOST_PLACES, NumberNotation
from anyorder.variables.notations.padded import PaddedNotation
from anyorder.variables.notations.period import PeriodNotation
from anyorder.variables.separators import GROUPED, tell_thousands
from anyorder.variables.time_forms import SAMPLE, TimeForm, find_time_form
from anyorder.variables.times import ISO_TIME, has_zone

FEWEST_LISTS, FEWEST_ENDS, MOST_ANSWERS = 6, 3, 20
"""Pairs that go up, and different second parts of them, from which on they are lists; and the last answer there is."""
_DIGIT = re.compile(r"\d")
_LIST = re.compile(r"[1-9]\d?(?:,\s?[1-9]\d?)+")
_ONE = re.compile(r"[1-9]\d?")


@dataclass(frozen=True)
class Reading:
    """Whole numbers where ``whole``, else times where ``times`` (in a ``form``, or ISO's), else numbers.

    ``said`` is what they are, in words.
    """

    said: str = ""
    whole: bool = False
    times: bool = False
    form: TimeForm | None = None
    notation: Notation | None = None


def reading_of(name: str, texts: Sequence[str], *, decimal_comma: bool, decimal_point: bool) -> Reading | None:
    """The reading of these different texts, if there is one.

    ``decimal_comma`` and ``decimal_point``: other columns have them, so that this one more likely has them too.
    """
    few = texts[:: max(1, len(texts) // SAMPLE)]  # most columns that fail do so at once
    if are_lists(texts):
        return None
    grouped = any("." in text for text in few) and all_like(GROUPED, few) and all_like(GROUPED, texts)
    if grouped and decimal_point and not decimal_comma:
        grouped = tell_thousands(texts)
    if not grouped and all_like(NUMBER, few) and all_like(NUMBER, texts) and any(map(_DIGIT.search, texts)):
        return _plain(name, texts)
    zones = {has_zone(text) for text in few}  # a column with and without time zones cannot be put on one clock
    if len(zones) == 1 and all_like(ISO_TIME, few) and all_like(ISO_TIME, texts) and _on_one_clock(texts):
        return Reading("times", times=True)
    if name in column_names.EXPIRY and (expiry := _all_read(PeriodNotation("MM/YY"), texts)):
        return expiry
    if find_notation(few, decimal_comma=decimal_comma) is not None:
        notation = find_notation(texts, decimal_comma=decimal_comma)
        if isinstance(notation, ClockNotation):
            if not notation.pad and name in column_names.RATIO:
                return None  # 16:10 is no time
            notation = _clock(name, notation)
        if isinstance(notation, DurationNotation) and name in column_names.CLOCK:
            hours = [(notation.read(text) or 0.0) / 60 for text in texts]
            notation = replace(notation, day=notation.unit == "minutes" and max(hours) < 24)
        if isinstance(notation, PeriodNotation):
            notation = months_of_century(name, notation, texts)
        if notation is not None:
            return Reading(notation.meaning, notation=notation)
    form = find_time_form(few) and find_time_form(texts)
    return Reading(times=True, form=form) if form else None


def _plain(name: str, texts: Sequence[str]) -> Reading | None:
    """Numbers as programs write them, unless they are codes."""
    zeros = name in column_names.PART_OF_TIME and any(text.startswith("0") for text in texts)
    if zeros and (padded := _all_read(PaddedNotation(2), texts)):
        return padded
    if any(re.fullmatch(LEADING_ZERO, text) for text in texts) or are_codes(texts):
        return None
    form = find_time_form(texts) if all_like(r"\d{8}|\d{14}", texts) else None
    if form:
        return Reading(times=True, form=form)
    if signs := _with_signs(texts):
        return Reading(signs.meaning if signs.doubt else "numbers", notation=signs)
    if all_like(r"[+-]?\d+", texts):
        return Reading(whole=True)
    if name in column_names.VERSION or name in column_names.CODE:
        return None
    return Reading("numbers", notation=_plain_form(texts))


def _all_read(notation: Notation, texts: Sequence[str]) -> Reading | None:
    """The reading by this notation, if it reads all texts."""
    known = all(notation.read(text) is not None for text in texts)
    return Reading(notation.meaning, notation=notation) if known else None


def _with_signs(texts: Sequence[str]) -> Notation | None:
    """How plain numbers are written that have a sign above 0, too (+2.5), or a point behind them (12.)."""
    if not any(text.startswith("+") for text in texts) and not all_like(r"\d+\.", texts):
        return None
    form = NumberNotation.find(texts)
    return form if form is not None and (form.plus or form.suffix) else None


def are_codes(texts: Sequence[str]) -> bool:
    """Whether texts that could be numbers are part numbers (451E1) or phone numbers (+49...)."""
    some = [text for text in texts if re.fullmatch(CODE, text)]
    if not some:
        return False
    numbers = any("." in text or re.search(r"^-|[eE][+-]", text) for text in texts)
    return not numbers


def are_lists(texts: Sequence[str]) -> bool:
    """Whether these are lists of answers, 1,2 and 1,3,4, and no fractions."""
    lists = _lists(texts)
    return any(len(each) > 2 for each in lists) or _go_up(lists)


def are_pairs(texts: Sequence[str]) -> bool:
    """Whether these are lists of two answers at most, which could be fractions too."""
    lists = _lists(texts)
    return all(len(each) == 2 for each in lists) and _go_up(lists)


def _lists(texts: Sequence[str]) -> list[list[int]]:
    """The numbers of each text that has several; none where some text is neither a list nor a single answer."""
    if not any("," in text for text in texts[:SAMPLE]):
        return []
    if not all(_LIST.fullmatch(text) or _ONE.fullmatch(text) for text in texts):
        return []
    return [list(map(int, text.split(","))) for text in texts if "," in text]


def _go_up(lists: Sequence[list[int]]) -> bool:
    """Whether so many lists go up that they are no fractions: of these half would go down."""
    rising = all(each == sorted(set(each)) and each[-1] <= MOST_ANSWERS for each in lists)
    return rising and len(lists) >= FEWEST_LISTS and len({each[-1] for each in lists}) >= FEWEST_ENDS


def _clock(name: str, notation: ClockNotation) -> ClockNotation:
    """Times of day, unless the name says that they are lengths of time."""
    if notation.half or name not in column_names.LENGTH_OF_TIME:
        return notation
    short = notation.parts == 2 and (notation.short or name in column_names.MINUTES_AND_SECONDS)
    return replace(notation, day=False, short=short)


def all_like(pattern: str, texts: Sequence[str]) -> bool:
    """Whether every text is of this form."""
    whole = re.compile(pattern)
    return all(whole.fullmatch(text) for text in texts)


def _on_one_clock(texts: Sequence[str]) -> bool:
    return len({has_zone(text) for text in texts}) == 1 and real_times(pd.Series(list(texts), dtype="str"))


def _plain_form(texts: Sequence[str]) -> Notation | None:
    """How plain numbers are written, if they always have so many digits: 2.50 is not 2.5."""
    if not any("e" in text or "E" in text for text in texts):
        places = {len(text.partition(".")[2]) for text in texts}
        return NumberNotation(places=max(places)) if len(places) == 1 and 0 < max(places) <= MOST_PLACES else None
    form = NumberNotation.find(texts)
    known = form is not None and form.fixed and bool(form.places or form.exponent)
    return replace(form, either=False) if form is not None and known else None
