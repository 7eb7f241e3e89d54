"""What whole numbers are besides numbers: ids, phone numbers, postcodes, dates in digits. Their column's name tells."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from anyorder.data.level_columns import MOST_LEVELS
from anyorder.data.strays import STRAY_TIMES, slips_of_times
from anyorder.variables.cells import LARGEST_WHOLE, Numbers, Series
from anyorder.variables.time_forms import find_time_form, misfits

FEW = 20
"""Below so many rows nothing is said about a column from how its numbers are spread."""
ID_NAME = re.compile(
    r"(?i)(?:^|[\s_.-])(?:id|uuid|guid|key|idx|rownum|nr|no|#)$|^(?:index|row|number)$|(?-i:[a-z](?:ID|Id)$)"
    r"|nummer$|^unnamed: \d+$|^column \d+$"
)
PHONE_NAME = re.compile(
    r"(?i)(?:^|[\s_.-])(?:phone|telephone|tel|mobile|fax|telefon)$|phone(?:[\s_.-]?(?:no|number|nr))?$"
)
POST_NAME = re.compile(
    r"(?i)(?:^|[\s_.-])(?:zip|postcode|postal|plz|postleitzahl)(?:$|[\s_.-])|zip[_ ]?code|post[_ ]?code"
)
TIME_NAME = re.compile(
    r"(?i)(?:^|[\s_.-])(?:time|date|epoch|timestamp|created|updated|modified|at|ts|unix|zeit|datum)(?:$|[\s_.-])"
    r"|(?:timestamp|datetime|(?-i:[a-z](?:Time|Date|At)))$"
)
EPOCH = {"epoch s": (3e8, 4.2e9), "epoch ms": (3e11, 4.2e12), "epoch us": (3e14, 4.2e15)}
"""Between 1979 and 2103."""
SPREAD = 1000.0
"""Numbers of one length differ by less than this factor, amounts by more."""


@dataclass(frozen=True)
class Role:
    """What the numbers are, in words; all empty where they are just numbers.

    ``form``: they are times, written so, but for ``strays`` (20240231, 99999999). ``names``: they are names of things,
    which repeat. Else nothing can be learned from them. ``otherwise`` is the kind to declare where this is wrong.
    """

    why: str = ""
    form: str = ""
    strays: tuple[str, ...] = ()
    names: bool = False
    otherwise: str = "integer"


def role_of(name: str, values: Numbers) -> Role:
    """What the known numbers of a column of that name are."""
    if len(values) <= FEW:
        return Role()
    phone = PHONE_NAME.search(name) is not None
    named = phone or ID_NAME.search(name) is not None or not name.strip()
    distinct = named and len(np.unique(values)) == len(values)
    if distinct and _runs(values) and not phone:
        return Role("a running number")
    if distinct and values.min() >= 0:
        return Role("a different number in every row, by name an id")
    if phone and values.min() >= 1e6:
        return Role("phone numbers", otherwise="categorical")
    if POST_NAME.search(name) and values.min() >= 100 and values.max() < 1e6:
        different = len(np.unique(values))
        rare = different > MOST_LEVELS or different * 2 > len(values)
        return Role("postcodes that hardly repeat") if rare else Role("postcodes, taken for categories", names=True)
    if dates := _dates_in_digits(values):
        return dates
    return Role(form=_epoch_form(name, values))


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
        if low <= values.min() and values.max() < high and TIME_NAME.search(name):
            return form_name
    return ""
