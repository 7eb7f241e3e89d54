"""Answers in the units of the data: what is computed with, and what is shown.

A column may have come as texts ("$1,204.50", "16/07/2024"). What is asked of it, a quantile or a mode, is still a
number or a time; shown to people, it is written as the column writes it. Draws and fills are cells, and come as such.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from anyorder.questions.evidence import Missing
from anyorder.variables.cells import Numbers, Series
from anyorder.variables.codecs import Codec
from anyorder.variables.ranges import Between, OneOf
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.time_forms import EPOCHS, write_times

LONGEST = 60
"""Characters of one value that are shown."""


def in_units(codec: Codec, values: Numbers) -> Series:
    """Model values as numbers, times or levels, at full precision, whatever texts the column is written in."""
    own = codec.variable
    plain = _as_computed(own)
    return codec.decode(values) if plain is own else codec.decode_as(plain, values)


def _as_computed(variable: Variable) -> Variable:
    """The variable as if its column had held numbers or times themselves."""
    digits = variable.notation is not None and variable.notation.digits
    if variable.numeric and (variable.form == "text" or digits):
        dtype = "int64" if variable.kind is Kind.INTEGER else "float64"
        return replace(variable, form="", notation=None, step=0.0, dtype=dtype)
    if variable.kind is Kind.DATETIME and variable.form:
        dtype = f"datetime64[us, {variable.zone}]" if variable.zone else "datetime64[us]"
        return replace(variable, form="", dtype=dtype)
    return replace(variable, step=0.0) if variable.step else variable


def one_value(value: Any) -> Any:
    """A single value as Python has it: a number, a Timestamp, a text."""
    if isinstance(value, np.datetime64):
        return pd.Timestamp(value)
    return value.item() if isinstance(value, np.generic) else value


def shown(variable: Variable, value: Any) -> str:
    """One value of a variable for people: in the notation of its column, a time in its form, a number in few digits."""
    value = one_value(value)
    if variable.kind is Kind.DATETIME and not isinstance(value, str):
        return _moment(variable, pd.Timestamp(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        if variable.numeric and variable.notation is not None and math.isfinite(value):
            return variable.notation.shown(float(value))
        return few_digits(value)
    return shown_cell(value)


def _moment(variable: Variable, moment: pd.Timestamp) -> str:
    if variable.form not in ("", "date", *EPOCHS):
        return str(write_times(pd.DatetimeIndex([moment]), variable.form)[0])
    return str(moment.date()) if variable.resolution == "day" else str(moment.floor("s"))


def shown_cell(value: Any) -> str:
    """A cell for people, where nothing is known of its column."""
    value = one_value(value)
    if isinstance(value, pd.Timestamp):
        return str(value.date() if value == value.normalize() else value.floor("s"))
    if isinstance(value, float):
        return few_digits(value)
    text = str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def few_digits(value: float) -> str:
    """A number in four digits, or as many as it has before the point."""
    size = abs(value)
    if not math.isfinite(value) or (size and not 1e-4 <= size < 1e12):
        return f"{float(value):.4g}"
    return f"{float(value):.0f}" if size >= 1e4 else f"{float(value):.4g}"


def shown_evidence(schema: Schema, evidence: Mapping[str, Any]) -> str:
    """What is known, for a title: "rooms = 6, age in 30..40, river = yes"."""
    return ", ".join(_statement(name, said, schema[name]) for name, said in evidence.items())


def _statement(name: str, said: Any, variable: Variable) -> str:
    if isinstance(said, Missing):
        return f"{name} missing"
    if isinstance(said, Between | OneOf):
        text = str(said)
        return f"{name} {text}" if text[0] in "<>" else f"{name} in {text}"
    return f"{name} = {shown(variable, said)}"
