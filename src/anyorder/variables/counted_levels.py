"""Levels that count: stars, pluses, Roman numbers of stages, points of which some have a name, seasons (2023/24)."""

from __future__ import annotations

import re
from collections.abc import Sequence

_STARS = re.compile(r"([★⭐]{1,10}|\*{1,7}|\$+|€+|£+)[☆✩]{0,9}")
_STEP = re.compile(
    r"(?P<word>stage|grade|level|sev|severity|priority|prio|phase|tier|step|bi-rads|birads|stufe|klasse|stadium|grad|"
    r"niveau|nivel|stade|étape|fase|kategorie|category|cat|asa|nyha)[ .-]{0,2}(?P<number>\d{1,2})(?P<part>[a-d]?)",
    re.IGNORECASE,
)
_ROMAN = re.compile(
    r"(?:(?:stage|grade|class|level|phase|stadium|klasse|stufe|grad|stade|niveau|nivel|clase|asa|nyha|birads|bi-rads)\s)?"
    r"(?P<number>I{1,3}|IV|VI{0,3}|IX|XI{0,2})(?P<part>[A-D]?\d?)",
    re.IGNORECASE,
)
NUMBERS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")


def by_stars(levels: Sequence[str]) -> list[str] | None:
    """One star, two stars and so on, or signs of money; empty stars behind them count for nothing."""
    found = [_STARS.fullmatch(level.strip()) for level in levels]
    counts = [len(each[1]) for each in found if each]
    if len(counts) < len(levels) or len(set(counts)) < len(counts):
        return None
    return [level for _, level in sorted(zip(counts, levels, strict=True))]


def by_numbered_step(levels: Sequence[str]) -> list[str] | None:
    """Steps with a number behind a word for a step: Grade 1, Sev 2, BI-RADS 4a."""
    found = [each for level in levels if (each := _STEP.fullmatch(level.strip()))]
    ranks = [(int(each["number"]), each["part"].casefold()) for each in found]
    if len(found) < len(levels) or len({each["word"].casefold() for each in found}) > 1 or len(set(ranks)) < len(ranks):
        return None
    return [level for _, level in sorted(zip(ranks, levels, strict=True))]


PLUSES = {"-": 0.0, "\N{MINUS SIGN}": 0.0, "\N{EN DASH}": 0.0, "neg": 0.0, "(+)": 0.5, "+/-": 0.5, "±": 0.5, "+-": 0.5}
PLUSES |= {"negative": 0.0, "trace": 0.5, "tr": 0.5} | {f"{count}+": float(count) for count in range(1, 5)}
_POINT = re.compile(r"(?P<number>\d{1,2})(?:\s?[-–.:=)]\s?(?P<name>\D.*)|\s\((?P<inside>\D.*)\))?")
_SEASON = re.compile(r"(?:FY ?)?(?P<first>(?:19|20)\d\d)\s?[/–-]\s?(?P<second>\d\d|\d{4})")


def by_pluses(levels: Sequence[str]) -> list[str] | None:
    """How much of something a laboratory found: -, +/-, +, ++, +++; neg, trace, 1+, 2+."""
    counts = [
        len(level) if set(level) == {"+"} else PLUSES.get(level.casefold(), -1.0) for level in map(str.strip, levels)
    ]
    if len(levels) < 3 or min(counts) < 0 or len(set(counts)) < len(counts):
        return None
    return [level for _, level in sorted(zip(counts, levels, strict=True))]


def by_roman_number(levels: Sequence[str]) -> list[str] | None:
    """Roman numbers up to twelve, alone or behind a word for a step, with a letter for half a step (IIa)."""
    found = [_ROMAN.fullmatch(level.strip()) for level in levels]
    ranks = [(NUMBERS.index(each["number"].upper()), each["part"].upper()) for each in found if each]
    # Letters alone are names: V and X, or two of the United States (IA, VA).
    if len(ranks) < len(levels) or len(set(ranks)) < len(ranks) or not any(len(NUMBERS[at]) > 1 for at, _ in ranks):
        return None
    return [level for _, level in sorted(zip(ranks, levels, strict=True))]


def by_number_in_front(levels: Sequence[str]) -> list[str] | None:
    """Points of a scale of which only some, as a rule the ends, have a name: 1 - Very bad, 2, 3, 4, 5 - Very good."""
    found = [each for level in levels if (each := _POINT.fullmatch(level.strip()))]
    numbers = sorted(int(each["number"]) for each in found)
    named = sum(bool(each["name"] or each["inside"]) for each in found)
    # Where all have a name, they may be departments; where a point is missing, they may be anything.
    if len(found) < len(levels) or len(found) < 3 or not 0 < named < len(found):
        return None
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))) or numbers[0] > 1:
        return None
    return [level for _, level in sorted(zip((int(each["number"]) for each in found), levels, strict=True))]


def by_season(levels: Sequence[str]) -> list[str] | None:
    """A year and the next one, as seasons, school years and business years are named: 2023/24, 2023-2024."""
    found = [each for level in levels if (each := _SEASON.fullmatch(level.strip()))]
    firsts = [int(each["first"]) for each in found]
    nexts = all(str(first + 1).endswith(each["second"]) for first, each in zip(firsts, found, strict=True))
    if len(found) < len(levels) or len(set(firsts)) < len(firsts) or len(found) < 3 or not nexts:
        return None
    return [level for _, level in sorted(zip(firsts, levels, strict=True))]
