"""Which head answers for which kind of column: the defaults, and what ``Config.heads`` says instead.

A choice names a kind and describes a head, such as ``{"continuous": {"name": "spline", "bins": 16}}``. What a
column itself decides (its number of levels, its lattice, its atoms and bounds) comes from its codec and cannot be
chosen: a spiked column's choice is that of its continuum, and a bounded column's is cut at the bounds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from anyorder.errors import UserError
from anyorder.heads import Bernoulli, Head, heads
from anyorder.heads.bounded import Bounded
from anyorder.heads.ordinal import Ordinal
from anyorder.heads.spiked import Spiked
from anyorder.variables.codecs import Codec, Space
from anyorder.variables.schema import Kind

OF_THE_COLUMN = ("levels", "lattice")
"""Options of a head that the column decides."""


def checked_heads(chosen: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The choices as plain dictionaries, if every kind, head and option exists and the head suits the kind."""
    out = {}
    for kind, described in chosen.items():
        known = Kind.read(kind)
        if not isinstance(described, Mapping) or "name" not in described:
            raise UserError(
                f"heads: the choice for {kind!r} must be a head's name and options, such as "
                f'{{"name": "gaussian_mixture", "components": 5}}; got {described!r}'
            )
        family = heads.get(described["name"])
        if family in (Spiked, Bounded):
            raise UserError(
                f"heads: {described['name']!r} comes by itself with a column's atoms or bounds; name its base"
            )
        _trial(family, described)
        space = _answers_for(family)
        if space not in _spaces(known):
            raise UserError(
                f"heads: {described['name']!r} answers for {space}, and a column of the kind {known.value!r} has "
                f"{' or '.join(sorted(_spaces(known)))}; choose another head for it"
            )
        out[known.value] = dict(described)
    return out


def head_for(codec: Codec, components: int, chosen: Mapping[str, Any]) -> Head:
    """The head of one column: the one chosen for its kind, else the default. ``components``: of default mixtures."""
    variable = codec.variable
    described = dict(chosen.get(variable.kind.value, {}))
    if not described or not _usable(described["name"], codec):
        # Times are a lattice of days or a line, and Bernoulli knows two levels: then the choice is meant for others.
        described = {"name": _default(codec)}
    family = heads.get(described["name"])
    options = {field.name for field in dataclasses.fields(family)}  # type: ignore[arg-type]  # heads are dataclasses
    if "components" in options and family is not Ordinal:
        described.setdefault("components", components)
    if "levels" in options:
        described["levels"] = len(variable.levels)
    if "lattice" in options and codec.lattice is not None:
        described["lattice"] = codec.lattice
    return _wrapped(codec, heads.build(described))


def _wrapped(codec: Codec, head: Head) -> Head:
    """The head cut at the ends of a line, and with the atoms of the column."""
    low, high = codec.ends
    if low is not None or high is not None:
        head = Bounded(head, low, high)
    return Spiked(codec.atoms, head) if codec.atoms else head


def _usable(name: str, codec: Codec) -> bool:
    return _answers_for(heads.get(name)) is codec.space and (name != Bernoulli.name or len(codec.variable.levels) == 2)


def _default(codec: Codec) -> str:
    if codec.space is Space.LEVELS:
        many = Ordinal.name if codec.variable.kind is Kind.ORDINAL else "categorical"
        return Bernoulli.name if len(codec.variable.levels) == 2 else many
    return "gaussian_mixture" if codec.space is Space.LINE else "discretized_logistic_mixture"


def _spaces(kind: Kind) -> set[Space]:
    """Where model values of this kind can lie: a codec of the kind decides."""
    if kind is Kind.DATETIME:
        return {Space.LINE, Space.LATTICE}
    return {Space.LEVELS} if kind.has_levels else {Space.LATTICE} if kind is Kind.INTEGER else {Space.LINE}


def _answers_for(family: type[Head]) -> Space:
    """Where the values of this family of heads lie."""
    options = {field.name for field in dataclasses.fields(family)}  # type: ignore[arg-type]  # heads are dataclasses
    if family is Bernoulli or "levels" in options:
        return Space.LEVELS
    return Space.LATTICE if "lattice" in options else Space.LINE


def _trial(family: type[Head], described: Mapping[str, Any]) -> None:
    """Build it once, so that a wrong option is found before any data are read."""
    for name in OF_THE_COLUMN:
        if name in described:
            raise UserError(f"heads: the option {name!r} of {described['name']!r} is the column's own; leave it out")
    fields = {field.name: field for field in dataclasses.fields(family)}  # type: ignore[arg-type]  # heads are dataclasses
    column = {"levels": 3, "lattice": None, "components": 2}
    heads.build({**{name: value for name, value in column.items() if name in fields}, **described})
