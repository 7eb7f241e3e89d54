"""Years of two digits: the hundred years in which they lie.

A form such as ``1927:%d/%m/%y`` says that they are the years from 1927 to 2026. Without a number they are, as programs
have it, those from 1969 to 2068.
"""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

USUAL = 1969
"""The first year that two digits stand for where nobody says another."""
_FIRST = re.compile(r"(\d{4}):(.*)", re.DOTALL)


def split_century(form: str) -> tuple[int, str]:
    """The first year that two digits stand for, and the form without it."""
    found = _FIRST.fullmatch(form)
    return (int(found[1]), found[2]) if found else (USUAL, form)


def with_century(form: str, first: int) -> str:
    """The form in which years of two digits are those from ``first`` on."""
    bare = split_century(form)[1]
    return bare if first == USUAL or "%y" not in bare else f"{first}:{bare}"


def moved(moments: Any, first: int) -> Any:
    """Times that were read with the usual hundred years, in those that begin with ``first``."""
    if first == USUAL:
        return moments
    years = moments.dt.year
    off = (first + (years - first) % 100 - years).fillna(0)
    for shift in off.unique():
        if shift:
            some = off == shift
            moments = moments.where(~some, moments + pd.DateOffset(years=int(shift)))
    return moments
