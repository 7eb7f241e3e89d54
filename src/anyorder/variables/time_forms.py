"""The forms in which people write dates and times: which one a column has, and how to read and write in it.

A form is a strftime pattern. Beyond the standard ones ``%-d`` (and m, H, I) stands for a number without a leading zero,
``%^b`` for capitals, ``%#b`` for small letters and ``%3f`` for milliseconds, on every system; ``de:%d. %B %Y`` has the
names of months of another language (:mod:`~anyorder.variables.month_names`), ``1927:%d/%m/%y`` other years than usual
for two digits (:mod:`~anyorder.variables.centuries`); ``epoch s``, ``epoch ms`` and ``epoch us`` stand for the seconds,
milliseconds or microseconds since 1970 that machines write, ``excel`` for the days that spreadsheets count.
"""

from __future__ import annotations

import datetime
import operator
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anyorder.variables.cells import Series
from anyorder.variables.centuries import moved, split_century
from anyorder.variables.month_names import from_english, is_style, styles_of, to_english
from anyorder.variables.offsets import minutes_of, split_offsets, written_offset

DATES = (
    *(f"%d{sign}%m{sign}%Y" for sign in "/.- "),
    *(f"%m{sign}%d{sign}%Y" for sign in "/.- "),
    *(f"%Y{sign}%m{sign}%d" for sign in "/. -"),
    *(f"%d{sign}%m{sign}%y" for sign in "/.-"),
    *(f"%m{sign}%d{sign}%y" for sign in "/.-"),
    *(f"%y{sign}%m{sign}%d" for sign in "-/."),
    *("%d %b %Y", "%d-%b-%Y", "%d/%b/%Y", "%d.%b.%Y", "%d-%b-%y", "%d %b %y", "%d. %b %Y", "%d%b%Y"),
    *("%d %B %Y", "%d. %B %Y", "%d-%B-%Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%Y-%b-%d", "%Y %b %d"),
    *("%a, %d %b %Y", "%a %d %b %Y", "%A, %d %B %Y", "%A, %B %d, %Y", "%a, %b %d, %Y", "%a %b %d %Y"),
    *("%d de %B de %Y", "%d de %b de %Y", "%d %B, %Y", "%d %b, %Y", "%d %B %y", "%d. %b. %Y"),
    "%Y%m%d",
)
_ZONE = re.compile(r" (?:UTC|(?:GMT|UTC)[+-]\d{1,2}(?::\d\d)?|(?!AM$|PM$)[A-Z]{2,4}|[+-]\d{4})$")
"""The zone behind a time, where it is not in ISO's form: a word of the form, if all times of a column have the same."""
CLOCKS = (*("%H:%M:%S", "%H:%M", "%H:%M:%S.%3f", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p", "%I:%M:%S%p"),)
WHOLE = (
    "%a %b %d %H:%M:%S %Y",
    "%Y%m%dT%H%M%S",
    "%Y%m%d%H%M%S",
    "%d%b%Y:%H:%M:%S",
    "%d/%b/%Y:%H:%M:%S",
)
"""Forms that are no date and clock side by side."""
EPOCHS = {"epoch s": (1_000_000, 0), "epoch ms": (1_000, 0), "epoch us": (1, 0), "excel": (86_400_000_000, 25_569)}
"""Microseconds in one of their units, and how many units before 1970 they begin."""
LONGEST = 40
ENOUGH = 6
"""Different dates from which on it is no chance that they are in the order of time."""
EARLIEST, LATEST = 1900, 2100
"""Years from which on, and up to which, digits alone are taken for a date."""


CLEARLY = 3
"""So many times as many different years as in the other reading are not years but days."""


@dataclass(frozen=True)
class TimeForm:
    """A form, and the other one (if any) that all texts could have too."""

    pattern: str
    other: str = ""


def find_time_form(texts: Sequence[str]) -> TimeForm | None:
    """The form in which all these different texts are written; None if there is none.

    Where leading zeros or capitals are there now and then, it is the form that most of them have.
    """
    first = texts[0] if texts else ""
    if not 6 <= len(first) <= LONGEST or not any(sign.isdigit() for sign in first):
        return None
    if apart := split_offsets(texts):
        bare, offset = apart
        form = find_time_form(bare)
        return TimeForm(form.pattern + offset, form.other and form.other + offset) if form else None
    if found := _found(texts):
        return _chosen(found, len(texts))
    for style, long in styles_of(texts) if any(sign.isalpha() for sign in first) else ():
        if found := _found([to_english(text, style, long=long) for text in texts], long=long):
            return TimeForm(f"{style}:{found[0][0]}")
    return None


def misfits(texts: Sequence[str]) -> list[str]:
    """The texts that the form of most others cannot read; none where most have no form in common."""
    some = texts[:: max(1, len(texts) // SAMPLE)]
    shapes = Counter(map(_shape, some))
    alike = [text for text in some if _shape(text) == shapes.most_common(1)[0][0]]
    tried = alike[:: max(1, len(alike) // TRIED)]  # the first may be the one that does not exist
    best, fewest = None, 0.5 * len(some)
    for style, long in (("", False), *styles_of(alike)):
        for pattern in dict.fromkeys(each for text in tried for each in _candidates(_plainly(text, style, long))):
            bad = int(_unread(some, pattern, style, long).sum())
            if bad < fewest:
                best, fewest = (pattern, style, long), bad
    return [text for text, wrong in zip(texts, _unread(texts, *best), strict=True) if wrong] if best else []


def _unread(texts: Sequence[str], pattern: str, style: str, long: bool) -> Any:
    plain = pd.Series([_plainly(text, style, long) for text in texts], dtype="str")
    return pd.to_datetime(plain, format=_standard(pattern), errors="coerce").isna().to_numpy()


def _standard(form: str) -> str:
    """The form as Python reads it, which takes any number of digits and any capitals."""
    return re.sub(r"%[-^#3]", "%", form)


def _plainly(text: str, style: str, long: bool) -> str:
    return to_english(text, style, long=long) if style else text


SAMPLE = 2_000
"""Different texts that are tried before all are: a column that fails mostly does so at once."""
TRIED = 8


def _shape(text: str) -> str:
    """The text with all numbers alike, and all words."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", text))


def _found(texts: Sequence[str], *, long: bool | None = None) -> list[tuple[str, Any]]:
    """The forms that all texts have, and what they mean in each; ``long``: the names of months are long ones."""
    digits = all(text.isdigit() for text in texts)
    column = pd.Series(list(texts), dtype="str")
    found = []
    for pattern in _candidates(texts[0]):
        if long is not None and ("%B" if long else "%b") not in pattern:
            continue
        read = pd.to_datetime(column, format=_standard(pattern), errors="coerce")
        if not read.notna().all() or (digits and not read.dt.year.between(EARLIEST, LATEST).all()):
            continue
        exact = _as_most_are_written(pattern, read, texts)
        if exact:
            found.append((exact, read))
    return found


def _chosen(found: list[tuple[str, Any]], count: int) -> TimeForm:
    """The form that is meant, where one or several can be read."""
    first, rest = [pair for pair in found if pair[0][:2] == "%y"], [pair for pair in found if pair[0][:2] != "%y"]
    if not rest:
        return TimeForm(found[0][0])
    if not first:
        return _day_or_month_first(rest, count)
    # 24-05-31 or 31-05-24: years are fewer than days, and rows may be in the order of time.
    years = [len(np.unique(pairs[0][1].dt.year)) for pairs in (first, rest)]
    sorted_so = [any(_in_order(read) for _, read in pairs) for pairs in (first, rest)]
    if count >= ENOUGH and (CLEARLY * years[1] <= years[0] or sorted_so == [False, True]):
        return _day_or_month_first(rest, count)
    if count >= ENOUGH and (CLEARLY * years[0] <= years[1] or sorted_so == [True, False]):
        return TimeForm(first[0][0])
    return TimeForm(_day_or_month_first(rest, count).pattern, first[0][0])


def _day_or_month_first(found: list[tuple[str, Any]], count: int) -> TimeForm:
    either = {pattern: read for pattern, read in found if _swapped(pattern) in dict(found)}
    if not either:
        return TimeForm(found[0][0])
    # Both orders can be read: where one of them puts the rows into the order of time, that one is meant.
    sorted_so = [pattern for pattern, read in either.items() if _in_order(read)]
    if count >= ENOUGH and len(sorted_so) == 1:
        return TimeForm(sorted_so[0])
    # As programs have it: the month first between strokes, the day first between points and hyphens.
    chosen = next(
        (pattern for pattern in either if ("/" in pattern) == (pattern.index("m") < pattern.index("d"))), found[0][0]
    )
    return TimeForm(chosen, _swapped(chosen))


def _in_order(moments: Any) -> bool:
    return bool(moments.is_monotonic_increasing or moments.is_monotonic_decreasing)


def _candidates(first: str) -> list[str]:
    """The patterns in which this one text can be read."""
    if (zone := _ZONE.search(first)) and ":" in first:
        return [pattern + zone[0] for pattern in _candidates(first[: zone.start()])]
    apart = re.fullmatch(r"(.*?)( at |, |T| )(\d{1,2}:\d\d.*)", first)
    if apart is None:
        return [pattern for pattern in (*DATES, *WHOLE) if _fits(first, pattern)]
    date, gap, clock = apart.groups()
    clocks = [pattern for pattern in CLOCKS if _fits(clock, pattern)]
    both = [f"{pattern}{gap}{time}" for pattern in DATES if _fits(date, pattern) for time in clocks]
    return both or [pattern for pattern in WHOLE if _fits(first, pattern)]


def _fits(text: str, pattern: str) -> bool:
    try:
        datetime.datetime.strptime(text, _standard(pattern))
    except ValueError:
        return False
    return True


def _as_most_are_written(pattern: str, read: Any, texts: Sequence[str]) -> str:
    """The pattern as it writes the most of these texts; empty where others differ in more than zeros and capitals."""
    moments = pd.DatetimeIndex(read)
    exact = _padded(pattern, texts)
    written = write_times(moments, exact)
    if written == list(texts):
        return exact
    if [_loosely(text) for text in written] != [_loosely(text) for text in texts]:
        return ""
    ways = dict.fromkeys((exact, pattern, exact.replace("%-", "%"), re.sub("%[#^]", "%", exact)))
    return max(ways, key=lambda way: sum(map(operator.eq, write_times(moments, way), texts)))


def _loosely(text: str) -> str:
    """A text without leading zeros and capitals."""
    return re.sub(r"(?<!\d)0(?=\d)", "", text).casefold()


def _padded(pattern: str, texts: Sequence[str]) -> str:
    """The pattern with ``%-d`` for ``%d`` where days have no leading zero, and so on, and with capitals for names."""
    if re.search("%[aAbB]", pattern):
        case = "^" if any(map(str.isupper, texts)) else "#" if any(map(str.islower, texts)) else ""
        pattern = re.sub("%([aAbB])", rf"%{case}\1", pattern)
    if "%d%" in pattern.replace("-", "") or "%m%" in pattern:
        return pattern  # digits without a sign between them are always padded
    shape = re.compile(
        re.sub(r"%(?:\\[#^]|3)?([a-zA-Z])", lambda token: _GROUP.get(token[1], ".+?"), re.escape(pattern))
    )
    parts = [found for text in texts if (found := shape.fullmatch(text))]
    for letter in "dmHI":
        if f"%{letter}" in pattern and any(len(found[letter]) == 1 for found in parts):
            pattern = pattern.replace(f"%{letter}", f"%-{letter}")
    return pattern


_GROUP = {letter: rf"(?P<{letter}>\d{{1,2}})" for letter in "dmHI"} | {"Y": r"\d{4}", "y": r"\d\d"}


def _swapped(pattern: str) -> str:
    """The pattern with day and month the other way round; empty where they cannot be mistaken."""
    if not re.match(r"%-?[dm].%-?[dm]", pattern):
        return ""
    return re.sub("[dm]", lambda letter: "m" if letter[0] == "d" else "d", pattern, count=2)


def is_iso(form: str) -> bool:
    """Whether this is the form 2024-05-01, with or without a time of day, or none at all."""
    return not form or form == "date" or (form.startswith("%Y-%m-%d") and not re.search(r" [A-Z]{3}", form))


def is_digits(form: str) -> bool:
    """Whether times in this form can be whole numbers of a file."""
    return form in EPOCHS or form in ("%Y%m%d", "%Y%m%d%H%M%S")


def read_times(texts: Series, form: str, *, utc: bool) -> Any:
    """Texts (or whole numbers) as times, NaT where one is in neither this form nor ISO's.

    With ``utc`` each text may have its own offset, and all are put on the clock of UTC.
    """
    if form in EPOCHS:
        unit, start = EPOCHS[form]
        micro = (pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float, na_value=np.nan) - start) * unit
        good = np.abs(micro) < 2.0**62
        stamps = np.where(good, micro, 0).astype(np.int64).astype("datetime64[us]")
        read: Any = pd.Series(stamps, index=texts.index).where(good)
        if not good.all() and not pd.api.types.is_numeric_dtype(texts.dtype):
            read[~good] = pd.to_datetime(texts[~good], format="ISO8601", errors="coerce")
        return read
    if is_iso(form):
        return pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=utc)
    codes, different = pd.factorize(texts)  # days repeat, and reading one takes a microsecond
    cells = [f"{cell:.0f}" if isinstance(cell, float) else str(cell) for cell in np.asarray(different, dtype=object)]
    words = pd.Series(cells, dtype="str").str.strip()  # whole numbers beside a hole are floats in pandas
    first, form = split_century(form)
    style, pattern = _parted(_standard(form))
    own = written_offset(pattern) if utc else ""
    ends = [own and written_offset(text) for text in words]
    plain = pd.Series([text.removesuffix(end) for text, end in zip(words, ends, strict=True)], dtype="str")
    if style:
        plain = plain.map(lambda text: to_english(text, style, long="%B" in pattern))
    found: Any = moved(pd.to_datetime(plain, format=pattern.removesuffix(own), errors="coerce"), first)
    if own:
        found -= pd.to_timedelta([minutes_of(end or own) for end in ends], unit="min")
    missing = found.isna()
    if missing.any():
        iso: Any = pd.to_datetime(words[missing], format="ISO8601", errors="coerce", utc=utc)
        found[missing] = iso.dt.tz_localize(None) if utc else iso
    read = pd.Series(found.to_numpy()[codes], index=texts.index)
    return read.dt.tz_localize("UTC") if utc else read


def _parted(form: str) -> tuple[str, str]:
    """The style of the names of months, empty for English ones, and the pattern."""
    style, sign, pattern = form.partition(":")
    return (style, pattern) if sign and is_style(style) else ("", form)


def write_times(moments: pd.DatetimeIndex, form: str) -> list[Any]:
    """Times in a form: texts, or whole numbers where the form is one of ``epoch``."""
    if form in EPOCHS:
        unit, start = EPOCHS[form]
        return (moments.as_unit("us").asi8 // unit + start).tolist()
    style, pattern = _parted(split_century(form)[1])
    marked = re.sub(r"%([#^])([a-zA-Z])", "\x01\\1%\\2\x01", pattern.replace("%-", "\x02%"))
    texts = list(moments.strftime(marked.replace("%3f", "%f\x03")))
    if "%3f" in marked:
        texts = [re.sub("\\d{3}\x03", "", text) for text in texts]
    if "\x02" in marked:
        texts = [re.sub("\x020?", "", text) for text in texts]
    if "\x01" in marked:
        texts = [_MARKED.sub(_in_case, text) for text in texts]
    return [from_english(text, style, long="B" in pattern) for text in texts] if style else texts


def _in_case(name: re.Match[str]) -> str:
    return name[2].upper() if name[1] == "^" else name[2].lower()


_MARKED = re.compile("\x01([#^])(.*?)\x01")
