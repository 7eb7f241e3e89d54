"""Which head answers for which kind of column: the defaults, and what ``TableOptions.heads`` says instead.

A choice names a kind and describes a head, such as ``{"continuous": {"name": "spline", "bins": 16}}``. What a
column itself decides (its number of levels, its lattice, its atoms and bounds) comes from its codec and cannot be
chosen: a spiked column's choice is that of its continuum, and a bounded column's is cut at the bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anyorder.errors import UserError
from anyorder.heads import Bernoulli, Head, heads
from anyorder.heads.bounded import Bounded
from anyorder.heads.context import Context
from anyorder.heads.ordinal import Ordinal
from anyorder.heads.spiked import Spiked
from anyorder.modalities.heads import built_head
from anyorder.modalities.options import option_names
from anyorder.variables.codecs import Codec, Space
from anyorder.variables.schema import Kind

OF_THE_COLUMN = ("levels", "lattice", "reach")
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
        if family.wraps:
            raise UserError(
                f"heads: {described['name']!r} is added where a column has atoms or bounds, or is context; name the "
                "head inside it"
            )
        _trial(family, described)
        if family.space not in _spaces(known):
            raise UserError(
                f"heads: {family.name!r} answers for {family.space}, but a column of the kind {known.value!r} has "
                f"{' or '.join(sorted(_spaces(known)))}; choose another head for it"
            )
        out[known.value] = dict(described)
    return out


def head_for(codec: Codec, components: int, chosen: Mapping[str, Any]) -> Head:
    """The head of one column: the one chosen for its kind, else the default. ``components``: of default mixtures."""
    variable = codec.variable
    if variable.context:
        return Context(len(variable.levels), tuple(codec.atoms))
    described = dict(chosen.get(variable.kind.value, {}))
    if not described or not _usable(described["name"], codec):
        # Times are a lattice of days or a line, and Bernoulli knows two levels: then the choice is meant for others.
        described = {"name": _default(codec)}
    return _wrapped(codec, built_head(described, codec, components))


def _wrapped(codec: Codec, head: Head) -> Head:
    """The head cut at the ends of a line, and with the atoms of the column."""
    low, high = codec.ends
    if low is not None or high is not None:
        head = Bounded(head, low, high, firm=codec.variable.declared)
    return Spiked(codec.atoms, head) if codec.atoms else head


def _usable(name: str, codec: Codec) -> bool:
    family = heads.get(name)
    return family.space is codec.space and family.suits(len(codec.variable.levels))


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


def _trial(family: type[Head], described: Mapping[str, Any]) -> None:
    """Build it once, so that a wrong option is found before any data are read."""
    for name in OF_THE_COLUMN:
        if name in described:
            raise UserError(f"heads: the option {name!r} of {described['name']!r} is set by the column; leave it out")
    known = option_names(family)
    column = {"levels": 3, "lattice": None, "components": 2}
    heads.build({**{name: value for name, value in column.items() if name in known}, **described})
