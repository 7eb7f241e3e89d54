"""What whole numbers are besides numbers: ids, phone numbers, codes, dates in digits. Their column's name tells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anyorder.data import column_names
from anyorder.data.level_columns import MOST_LEVELS
from anyorder.data.strays import STRAY_TIMES, slips_of_times
from anyorder.variables.cells import LARGEST_WHOLE, Numbers, Series
from anyorder.variables.notations import Notation
from anyorder.variables.notations.period import PeriodNotation
from anyorder.variables.time_forms import find_time_form, misfits

FEW = 20
"""Below so many rows nothing is said about a column from how its numbers are spread."""
EPOCH = {"epoch s": (3e8, 4.2e9), "epoch ms": (3e11, 4.2e12), "epoch us": (3e14, 4.2e15)}
"""Between 1979 and 2103."""
EXCEL = (25_569.0, 51_500.0)
"""Days of a spreadsheet: from 1970 to 2040."""
CHECKED, FEWEST = 500, 5
TRADE = frozenset((8, 12, 13, 14))
"""Lengths of the numbers of trade items (EAN, UPC, GTIN, ISBN), whose last digit checks the others."""
YEAR = 12
"""Different months from which on it is no chance that all of them exist."""
SHORTEST_PHONE = 1e6
MOST_FEW = 10
"""Up to so many different numbers are levels anyway, whatever they are called."""
SPREAD = 1000.0
"""Numbers of one length differ by less than this factor, amounts by more."""


@dataclass(frozen=True)
class Role:
    """What the numbers are, in words; all empty where they are just numbers.

    ``form``: they are times, written so, but for ``strays`` (20240231, 99999999). ``names``: they are names of things,
    which repeat. ``notation``: they are written so. Else nothing can be learned from them. ``otherwise`` is the kind to
    declare where this is wrong, ``doubt`` what should be said of it.
    """

    why: str = ""
    form: str = ""
    strays: tuple[str, ...] = ()
    names: bool = False
    otherwise: str = "integer"
    notation: Notation | None = None
    doubt: str = ""


def role_of(name: str, values: Numbers) -> Role:
    """What the known numbers of a column of that name are."""
    if name in column_names.CODE and values.min() >= 0 and len(np.unique(values)) > 2:
        return _names(values, "codes", "codes, by the name of the column")
    if periods := _periods(name, values):
        return periods
    if len(values) <= FEW:
        return Role()
    phone = name in column_names.PHONE and values.min() >= SHORTEST_PHONE
    named = phone or column_names.ID.search(name) is not None or not name.strip()
    distinct = named and len(np.unique(values)) == len(values)
    if distinct and _runs(values) and not phone:
        return Role("a running number")
    if distinct and values.min() >= 0:
        return Role("a different number in every row, by name an id")
    if phone:
        return Role("phone numbers", otherwise="categorical")
    if name in column_names.POST and values.min() >= 100 and values.max() < 1e6:
        return _names(values, "postcodes", "postcodes")
    if column_names.ID_WORD.search(name) and values.min() >= 0 and MOST_FEW < len(np.unique(values)) <= MOST_LEVELS:
        return _names(values, "ids", "ids, by the name of the column")
    if dates := _dates_in_digits(values):
        return dates
    if name in column_names.DATE and EXCEL[0] <= values.min() and values.max() < EXCEL[1]:
        return Role(
            form="excel", doubt="whole numbers are taken for days as spreadsheets count them: 45321 is 2024-01-30"
        )
    if _are_trade_items(values):
        return _names(values, "numbers of articles (EAN, UPC, ISBN)", "numbers of articles, by their check digits")
    return Role(form=_epoch_form(name, values))


def _names(values: Numbers, noun: str, why: str) -> Role:
    """Numbers that are names: categories, or nothing to learn from where they hardly repeat."""
    different = len(np.unique(values))
    rare = len(values) > FEW and (different > MOST_LEVELS or different * 2 > len(values))
    return Role(f"{noun} that hardly repeat") if rare else Role(f"{why}, taken for categories", names=True)


def _are_trade_items(values: Numbers) -> bool:
    """Whether the last digits of all numbers check the others, as they do on articles of trade."""
    lengths = {len(f"{value:.0f}") for value in (values.min(), values.max())}
    if len(lengths) > 1 or not lengths <= TRADE:
        return False
    different = np.unique(values)
    some = [f"{value:.0f}" for value in different[:: max(1, len(different) // CHECKED)]]
    if len(some) < FEWEST:
        return False
    digits = np.array([list(map(int, reversed(text))) for text in some])
    weights = np.where(np.arange(digits.shape[1]) % 2 == 1, 3, 1)
    return bool((digits @ weights % 10 == 0).all())


def _periods(name: str, values: Numbers) -> Role | None:
    """Months such as 202404, and weeks where the name says so."""
    years, rest = values // 100, values % 100
    if not ((years >= 1900) & (years < 2100)).all():
        return None
    months = bool(((rest >= 1) & (rest <= 12)).all())
    if months and (name in column_names.MONTH or (len(values) > FEW and len(np.unique(values)) >= YEAR)):
        form = PeriodNotation("YYYYMM")
    elif name in column_names.WEEK and ((rest >= 1) & (rest <= 53)).all():
        form = PeriodNotation("YYYYWW")
    else:
        return None
    known = all(form.read(f"{value:.0f}") is not None for value in np.unique(values))
    return Role(notation=form) if known else None


def role_of_long(cells: Series, values: Numbers) -> Role:
    """What whole numbers are of which floats lose the last digits: names of things, if they are of one length."""
    if len(values) <= FEW or not 0 <= values.max() < SPREAD * values.min() or values.max() <= LARGEST_WHOLE:
        return Role()
    different = cells.nunique()
    if different == len(values):
        return Role("a different long number in every row, like an id", otherwise="continuous")
    if different > MOST_LEVELS or 2 * different > len(values):
        return Role("long numbers that hardly repeat, like ids", otherwise="continuous")
    return Role("long numbers that repeat, taken for categories", names=True, otherwise="continuous")


def _runs(values: Numbers) -> bool:
    """Whether the numbers count up or down by one."""
    steps = np.diff(values)
    return bool(len(steps) and (np.abs(steps) == 1).all() and (steps == steps[0]).all())


def _dates_in_digits(values: Numbers) -> Role | None:
    """Numbers such as 20240716; a few of them may be no dates."""
    seen, counts = np.unique(values, return_counts=True)
    inside = (seen >= 1.9e7) & (seen < 2.1e7)
    if counts[~inside].sum() > STRAY_TIMES * len(values) or inside.sum() < 2:
        return None
    texts = [f"{value:.0f}" for value in seen[inside]]
    outside = [f"{value:.0f}" for value in seen[~inside]]
    if not outside and (form := find_time_form(texts)):
        return Role(form=form.pattern)
    often = dict(zip([*texts, *outside], [*counts[inside].tolist(), *counts[~inside].tolist()], strict=True))
    off = misfits(texts)
    strays, rest = [*off, *outside], [text for text in texts if text not in set(off)]
    form = find_time_form(rest) if len(rest) >= FEW and slips_of_times(strays, often) else None
    return Role(form=form.pattern, strays=tuple(strays)) if form else None


def _epoch_form(name: str, values: Numbers) -> str:
    """The form of times that are counted from 1970 on; empty where they are none."""
    for form_name, (low, high) in EPOCH.items():
        if low <= values.min() and values.max() < high and column_names.TIME.search(name):
            return form_name
    return ""
