"""Why texts with a number in them are not read as numbers: units that differ, signs that some of them have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from anyorder.variables.time_forms import SAMPLE

MOST = 0.9
"""The share of texts that must have a number with something beside it."""
_PARTS = re.compile(
    r"(?P<sign>[<>≤≥]=?|[~≈±]|ca\.?|circa|approx\.?|about|etwa|over|under|über|unter|max\.?|min\.?|up to|bis)?\s?"
    r"[$€£¥]?\s?[-+]?(?:\d[\d.,' ]*\d|\d)\s?"
    r"(?P<unit>[^\W\d_]{1,12}[²³]?\.?|[%‰°\"'µ]\w{0,3}|[^\W\d_]{1,6}/[^\W\d_]{1,6})?"
    r"(?P<mark>[*†?#]|\s?\([^)\d]{1,20}\))?",
    re.IGNORECASE,
)
UNITS = frozenset(
    (
        *(
            "kg",
            "g",
            "mg",
            "µg",
            "lb",
            "lbs",
            "oz",
            "t",
            "st",
            "km",
            "m",
            "cm",
            "mm",
            "ft",
            "in",
            "mi",
            "yd",
            "l",
            "ml",
        ),
        *("cl", "gal", "h", "hr", "hrs", "hour", "hours", "min", "mins", "minute", "minutes", "s", "sec", "secs", "ms"),
        *(
            "day",
            "days",
            "week",
            "weeks",
            "month",
            "months",
            "year",
            "years",
            "tag",
            "tage",
            "woche",
            "wochen",
            "monat",
        ),
        *("monate", "jahr", "jahre", "jours", "mois", "ans", "kb", "mb", "gb", "tb", "%", "€", "usd", "eur", "gbp"),
        *("°c", "°f", "kw", "kwh", "w", "hp", "ps", "kcal", "kj", "mmol/l", "mg/dl", "g/l", "g/dl", "c", "f"),
        *("mio", "mrd", "tsd", "dozen", "pcs", "pack", "packs", "box"),
        *("lakh", "lakhs", "crore", "crores", "cr", "million", "billion", "bn", "mn"),
    )
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_ORDINAL = frozenset(("st", "nd", "rd", "th"))


def almost_numbers(texts: Sequence[str]) -> str:
    """Why these texts are no numbers, and what to do; empty where there is nothing to say."""
    some = texts[:: max(1, len(texts) // SAMPLE)]
    parts = [found for text in some if (found := _PARTS.fullmatch(text))]
    if len(parts) < MOST * len(some) or len(parts) < 3:
        return ""
    signs = Counter(each["sign"].casefold() for each in parts if each["sign"])
    limits = [sign for sign in signs if sign[0] in "<>≤≥"]
    units = Counter(each["unit"] for each in parts if each["unit"])
    if units and all(len(unit) == 1 and unit.isalpha() for unit in units):
        return ""  # 12a, 38R: house numbers and sizes
    if _ORDINAL & {unit.casefold() for unit in units}:
        return ""
    if sum(unit.casefold().rstrip(".") in UNITS for unit in units) > 1:
        some_units = ", ".join(unit for unit, _ in units.most_common(3))
        return f"numbers in several units ({some_units}): bring them to one unit"
    if limits:
        example = next(each[0] for each in parts if each["sign"] in limits)
        return f"numbers beside limits such as {example!r}: put the numbers and the sign into two columns"
    if signs:
        example = next(each[0] for each in parts if each["sign"])
        return f"numbers of which some are not exact ({example!r}): put the numbers and the sign into two columns"
    if units and not all(each["unit"] for each in parts):
        unit = next(iter(units))
        return f"numbers with and without a unit ({unit}): write all of them alike"
    if any(each["mark"] for each in parts):
        example = next(each[0] for each in parts if each["mark"])
        return f"numbers of which some have a mark ({example!r}): put the numbers and the mark into two columns"
    return ""


def around_numbers(texts: Sequence[str]) -> str:
    """Where all texts are the same but for the numbers in them: what to do with these; else empty."""
    some = texts[:SAMPLE]
    shapes = {_NUMBER.sub("#", text) for text in some}
    if len(shapes) > 1:
        return ""
    columns = list(zip(*(_NUMBER.findall(text) for text in some), strict=True))
    varying = sum(len(set(column)) > 1 for column in columns)
    last = len(set(columns[-1])) > 1 if columns else False
    if varying == 0 or (varying == 1 and last and shapes.pop().endswith("#")):
        return ""  # AB-1-3456: a name with a number
    if varying == 1:
        return f"numbers within a text ({texts[0]!r}): keep the numbers alone"
    return f"several numbers in one cell ({texts[0]!r}): make a column of each"
