"""From what a user says about a variable to a region of its model values: ranges, sets, single values.

Ends are read in the units of the data by the variable's own codec: whole numbers and whole days are rounded into the
range, levels with an order are picked out of their list. What lies beyond a variable's bounds is nothing: an event of
probability 0, and no evidence. A range that makes no sense is refused in words.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from anyorder.distributions.region import Interval, Nothing, Points, Region
from anyorder.errors import UserError
from anyorder.questions.evidence import Between, Missing, OneOf, read_evidence
from anyorder.variables.cells import SINGLE, Series, numbers
from anyorder.variables.codecs import Codec, LatticeCodec, LevelCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.missingness import indicator_name
from anyorder.variables.schema import Kind, Variable
from anyorder.variables.times import days, times

SLACK = 64 * float(np.finfo(np.float64).eps)  # an end on a spike counts whole, whatever its last digits


def region_of(encoding: Encoding, name: str, said: Between | OneOf) -> Region:
    """The model values of ``name`` that agree with what is said."""
    codec = encoding.codec(name)
    if isinstance(said, OneOf):
        if not codec.variable.discrete and codec.variable.kind != "spiked":
            raise UserError(
                f"{name!r} is {codec.variable.kind.value}: single values have probability 0; give a range, such as "
                "Between(low, high) or low..high"
            )
        found = sorted({encoding.encode_value(name, level) for level in said.levels if not _outside(codec, level)})
        if not found:
            return Nothing()
        if codec.variable.kind == "spiked":
            if len(found) > 1:
                raise UserError(f"{name!r} is a continuum with spikes: give one value or a range, not a set")
            return Interval(found[0], found[0], found[0] - _slack(found[0]), found[0] + _slack(found[0]))
        return Points(tuple(found))
    if isinstance(codec, LevelCodec):
        return Points(_levels_between(encoding, codec.variable, said))
    inside = _within_bounds(codec.variable, said)
    if inside is None:
        return Nothing()
    said = inside
    if isinstance(codec, LatticeCodec):
        return _lattice(codec, said)
    low = -math.inf if _open(said.low) else encoding.encode_value(name, said.low)
    high = math.inf if _open(said.high) else encoding.encode_value(name, said.high)
    spiked = codec.variable.kind == "spiked"
    if low > high or (low == high and not (spiked and not said.low_open and not said.high_open)):
        problem = "ends before it begins" if low > high else "holds no more than one point, which has probability 0"
        raise UserError(f"{name!r}: the range {said} {problem}")
    # A spike on an end belongs to the range, unless the end is left out.
    outward = (_slack(low), _slack(high)) if spiked else (0.0, 0.0)
    before = low + outward[0] if said.low_open else low - outward[0]
    return Interval(low, high, before, high - outward[1] if said.high_open else high + outward[1])


def understand(encoding: Encoding, name: str, said: Any, *, evidence: bool = False) -> tuple[int, float | Region]:
    """Which variable is spoken of, and its model value (known exactly) or the region it lies in.

    A text that is a value of the variable is that value; only where it is none is it read as a range or a set.
    ``evidence``: it is only given, never asked for, so that it may be a fraction among whole numbers.
    """
    place = encoding.schema.index(name)
    if isinstance(said, str):
        try:
            return place, encoding.encode_value(name, said, evidence=evidence)
        except UserError:
            read = read_evidence(said)
            if read is None:
                raise
            said = read
    if isinstance(said, Missing):
        return _indicator(encoding, name)
    if isinstance(said, Between | OneOf):
        region = region_of(encoding, name, said)
        one = isinstance(region, Points) and len(region.values) == 1
        return place, region.values[0] if one and isinstance(region, Points) else region
    return place, encoding.encode_value(name, said, evidence=evidence)


def event_region(encoding: Encoding, name: str, said: Any) -> tuple[int, Region]:
    """As :func:`understand`, with one value as a region too: an event has a probability."""
    place = encoding.schema.index(name)
    if _outside(encoding.codecs[place], said):
        return place, Nothing()
    place, found = understand(encoding, name, said)
    if isinstance(found, Region):
        return place, found
    variable = encoding.schema.variables[place]
    if variable.discrete:
        return place, Points((found,))
    if variable.kind == "spiked":
        return place, Interval(found, found, found - _slack(found), found + _slack(found))
    raise UserError(
        f"{name!r} is {variable.kind.value}: one value has probability 0; ask for a range ({name}=a..b, {name} > a), "
        "or for the density with log_prob"
    )


def _indicator(encoding: Encoding, name: str) -> tuple[int, float]:
    indicator = indicator_name(name)
    if indicator not in encoding.schema:
        raise UserError(
            f"that {name!r} is missing says nothing here: the model was fitted without missingness='joint' (or the "
            "column had no holes). A column whose value is unknown is simply left out of the evidence"
        )
    return encoding.schema.index(indicator), encoding.encode_value(indicator, True)


def _outside(codec: Codec, value: Any) -> bool:
    """Whether this is a number beyond the bounds of its variable, which it therefore cannot be."""
    low, high = codec.variable.bounds
    if (
        (low is None and high is None)
        or isinstance(value, bool)
        or not isinstance(value, str | int | float | np.number)
    ):
        return False
    try:
        number = float(value)
    except ValueError:
        return False
    return (low is not None and number < low) or (high is not None and number > high)


def _within_bounds(variable: Variable, said: Between) -> Between | None:
    """The range without what lies beyond the variable's bounds; None where nothing else is in it."""
    least, most = variable.bounds
    if least is None and most is None:
        return said
    low, high = (_number(variable, end) for end in (said.low, said.high))
    if low is not None and high is not None and low > high:
        return said  # which is refused in its own words
    if (low is not None and most is not None and (low > most or (low == most and said.low_open))) or (
        high is not None and least is not None and (high < least or (high == least and said.high_open))
    ):
        return None
    if variable.kind is Kind.CONTINUOUS and (
        (high is not None and high == least and (low is None or low < least))
        or (low is not None and low == most and (high is None or high > most))
    ):
        return None  # of a range from beyond a bound up to it, one point is left
    if low is not None and least is not None and low < least:
        said = replace(said, low=least, low_open=False)
    if high is not None and most is not None and high > most:
        said = replace(said, high=most, high_open=False)
    return said


def _slack(at: float) -> float:
    return SLACK * max(1.0, abs(at)) if math.isfinite(at) else 0.0


def _open(end: Any) -> bool:
    return end is None or (isinstance(end, float) and math.isinf(end))


def _lattice(codec: LatticeCodec, said: Between) -> Interval:
    """The lattice points inside the range, each of them whole."""
    name, lattice = codec.variable.name, codec.lattice
    low, high = (_number(codec.variable, end) for end in (said.low, said.high))
    first = -math.inf if low is None else math.ceil((low - lattice.start) / lattice.step)
    last = math.inf if high is None else math.floor((high - lattice.start) / lattice.step)
    if low is not None and said.low_open and lattice.start + lattice.step * first == low:
        first += 1
    if high is not None and said.high_open and lattice.start + lattice.step * last == high:
        last -= 1
    if first > last:
        raise UserError(f"{name!r}: no value lies in the range {said}")

    def place(index: float) -> float:
        return (
            index
            if math.isinf(index)
            else float(codec.from_measure(np.array([lattice.start + lattice.step * index]))[0])
        )

    return Interval(place(first), place(last), place(first - 0.5), place(last + 0.5))


def _levels_between(encoding: Encoding, variable: Variable, said: Between) -> tuple[float, ...]:
    if variable.kind not in (Kind.ATOMS, "ordinal"):
        raise UserError(
            f"{variable.name!r} is {variable.kind.value}: its levels have no order, so no range; name a set of them, "
            f"such as OneOf({variable.levels[0]!r}) or {{{variable.levels[0]}}}"
        )
    if all(not isinstance(level, str) for level in variable.levels):
        places = [float(level) for level in variable.levels]
        low, high = (_number(variable, end) for end in (said.low, said.high))
    else:
        places = [float(code) for code in range(len(variable.levels))]
        low, high = (
            None if end is None else encoding.encode_value(variable.name, end) for end in (said.low, said.high)
        )
    inside = [
        float(code)
        for code, place in enumerate(places)
        if (low is None or place > low or (place == low and not said.low_open))
        and (high is None or place < high or (place == high and not said.high_open))
    ]
    if not inside:
        shown = ", ".join(map(str, variable.levels[:8])) + (", ..." if len(variable.levels) > 8 else "")
        raise UserError(f"{variable.name!r}: no value lies in the range {said}; its values: {shown}")
    return tuple(inside)


def _number(variable: Variable, end: Any) -> float | None:
    """An end as a number in the units of the data (days since 1970 for times); None where it is open."""
    if _open(end):
        return None
    cell: Series = pd.Series([end], index=[SINGLE], dtype=object)
    known = np.zeros(1, dtype=bool)
    if variable.kind is Kind.DATETIME:
        return float(days(times(cell, known, variable.name, variable.zone))[0])
    return float(numbers(cell, known, variable.name)[0])
