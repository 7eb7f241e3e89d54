"""From what a user says about a variable to a region of its model values: ranges, sets, single values.

The variable's own codec reads the ends in the units of the data: whole numbers and whole days are rounded into the
range, levels with an order are picked out of their list. What lies beyond a variable's bounds cannot happen: an event
of probability 0, and no evidence. A range that makes no sense is refused with the reason.
"""

from __future__ import annotations

from typing import Any

from anyorder.distributions.region import Nothing, Points, Region, region_of_extent
from anyorder.errors import UserError
from anyorder.questions.evidence import Between, Missing, OneOf, Statement, Value, read_statement
from anyorder.variables.encoding import Encoding
from anyorder.variables.missingness import indicator_name


def region_of(encoding: Encoding, name: str, said: Between | OneOf) -> Region:
    """The model values of ``name`` that agree with what is said."""
    codec, marks = encoding.codec(name), encoding.schema.missing
    if isinstance(said, Between):
        return region_of_extent(codec.between(said, marks))
    if not codec.has_point_mass:
        raise UserError(
            f"{name!r} is {codec.variable.kind.value}: single values have probability 0; give a range, such as "
            "Between(low, high) or low..high"
        )
    possible = [level for level in said.levels if not codec.beyond_bounds(level)]
    return region_of_extent(codec.points(codec.encode_each(possible, marks)))


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
    index = encoding.schema.index(name)
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
        f"{name!r} is {codec.variable.kind.value}: one value has probability 0; ask for a range ({name}=a..b, "
        f"{name} > a), or for the density with log_prob"
    )


def _indicator(encoding: Encoding, name: str) -> tuple[int, float]:
    indicator = indicator_name(name)
    if indicator not in encoding.schema:
        raise UserError(
            f"that {name!r} is missing says nothing here: the model was fitted without missingness='joint' (or the "
            "column had no holes). A column whose value is unknown is simply left out of the evidence"
        )
    return encoding.schema.index(indicator), encoding.encode_value(indicator, True)
