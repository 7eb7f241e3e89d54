"""From what a user says about a variable to a region of its model values: ranges, sets, single values.

The variable's own codec reads the ends in the units of the data: whole numbers and whole days are rounded into the
range, levels with an order are picked out of their list. What lies beyond a variable's bounds cannot happen: an event
of probability 0, and no evidence. A range that makes no sense is refused with the reason.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import Any

from anyorder.distributions.region import Interval, Nothing, Points, Region, region_of_extent, union_of
from anyorder.errors import UserError
from anyorder.questions.evidence import Missing, Partial, Statement, Value, read_statement
from anyorder.variables.codecs import Space
from anyorder.variables.encoding import Encoding
from anyorder.variables.missingness import indicator_name
from anyorder.variables.ranges import Between, Either, NotOneOf


def region_of(encoding: Encoding, name: str, said: Partial) -> Region:
    """The model values of ``name`` that agree with what is said."""
    codec, marks = encoding.codec(name), encoding.schema.missing
    if isinstance(said, Either):
        return union_of([region_of(encoding, name, part) for part in said.parts])
    if isinstance(said, NotOneOf):
        return _all_but(encoding, name, said)
    if isinstance(said, Between):
        return region_of_extent(codec.between(said, marks))
    if not codec.has_point_mass:
        raise UserError(
            f"{name!r} is {codec.variable.kind.value}: single values have probability 0; give a range, such as "
            "Between(low, high) or low..high"
        )
    possible = [level for level in said.levels if not codec.beyond_bounds(level)]
    return region_of_extent(codec.points(codec.encode_each(possible, marks)))


def _all_but(encoding: Encoding, name: str, said: NotOneOf) -> Region:
    """What is left of a variable without some values: other levels, or the ranges between them."""
    codec, marks = encoding.codec(name), encoding.schema.missing
    if not codec.has_point_mass:
        raise UserError(
            f"{name!r} is {codec.variable.kind.value}: single values have probability 0, so != excludes "
            "nothing; give a range"
        )
    levels = [level for level in said.levels if not codec.beyond_bounds(level)]
    values = codec.encode_each(levels, marks)
    if codec.space is Space.LEVELS:
        listed = codec.listed()
        assert listed is not None
        return region_of_extent(tuple(float(code) for code in listed if code not in values))
    ordered = [level for _, level in sorted(zip(values, levels, strict=True), key=lambda pair: pair[0])]
    if not ordered:
        return Interval(-math.inf, math.inf, -math.inf, math.inf)
    regions = []
    for low, high in itertools.pairwise([None, *ordered, None]):
        with contextlib.suppress(UserError):  # nothing lies between two neighbours
            regions.append(region_of(encoding, name, Between(low, high, low_open=True, high_open=True)))
    return union_of(regions)


def understand(encoding: Encoding, name: str, said: Any, *, evidence: bool = False) -> tuple[int, float | Region]:
    """Which variable is spoken of, by index, and its model value (known exactly) or the region it lies in.

    ``evidence``: it is only given, never asked for, so that it may be a fraction among whole numbers.
    """
    index = encoding.schema.index(name)
    return _understood(encoding, index, read_statement(encoding.codecs[index], said), evidence=evidence)


def _understood(encoding: Encoding, index: int, said: Statement, *, evidence: bool) -> tuple[int, float | Region]:
    name = encoding.schema.names[index]
    if isinstance(said, Missing):
        return _indicator(encoding, name)
    if isinstance(said, Value):
        return index, encoding.encode_value(name, said.given, evidence=evidence)
    region = region_of(encoding, name, said)
    return index, region.values[0] if isinstance(region, Points) and len(region.values) == 1 else region


def event_region(encoding: Encoding, name: str, said: Any) -> tuple[int, Region]:
    """The variable that an event speaks of, and its region; one value is a region too: an event has a probability."""
    index = encoding.schema.asked(name)
    codec = encoding.codecs[index]
    statement = read_statement(codec, said)
    if isinstance(statement, Value) and codec.beyond_bounds(statement.given):
        return index, Nothing()
    index, found = _understood(encoding, index, statement, evidence=False)
    if isinstance(found, Region):
        return index, found
    codec = encoding.codecs[index]  # the indicator's, if something is missing
    if codec.has_point_mass:
        return index, region_of_extent(codec.points([found]))
    raise UserError(
        f"{name!r} is {codec.variable.kind.value}: a single value has probability 0; ask for a range ({name}=a..b, "
        f"{name} > a), or for the density with log_prob"
    )


def _indicator(encoding: Encoding, name: str) -> tuple[int, float]:
    indicator = indicator_name(name)
    if encoding.schema[name].context:
        raise UserError(
            f"{name!r} is context, of whose holes nothing is learned; if its value is unknown, leave it out of the "
            "evidence"
        )
    if indicator not in encoding.schema:
        raise UserError(
            f"the model cannot use that {name!r} is missing: it was fitted without missingness='joint' (or the "
            "column had no missing cells). If its value is just unknown, leave it out of the evidence"
        )
    return encoding.schema.index(indicator), encoding.encode_value(indicator, True)
