"""Which head answers for which kind of column: the defaults, and what ``Config.heads`` says instead.

A choice names a kind and describes a head, such as ``{"continuous": {"name": "spline", "bins": 16}}``. What a
column itself decides (its number of levels, its lattice, its atoms and bounds) comes from its codec and cannot be
chosen: a spiked column's choice is that of its continuum, and a bounded column's is cut at the bounds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from anyorder.errors import UserError
from anyorder.heads import Bernoulli, Head, heads
from anyorder.heads.bounded import Bounded
from anyorder.heads.ordinal import Ordinal
from anyorder.heads.spiked import Spiked
from anyorder.variables.codecs import Codec, LatticeCodec, LevelCodec
from anyorder.variables.codecs.spiked import SpikedCodec
from anyorder.variables.schema import Kind, Variable

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
        suits = _suits(family)
        if not any(place in suits for place in _places(known)):
            raise UserError(
                f"heads: {described['name']!r} answers for {' or '.join(sorted(suits))}, and a column of the kind "
                f"{known.value!r} has {' or '.join(sorted(_places(known)))}; choose another head for it"
            )
        out[known.value] = dict(described)
    return out


def head_for(codec: Codec, components: int, chosen: Mapping[str, Any]) -> Head:
    """The head of one column: the one chosen for its kind, else the default. ``components``: of default mixtures."""
    variable = codec.variable
    place = "levels" if isinstance(codec, LevelCodec) else "a lattice" if isinstance(codec, LatticeCodec) else "a line"
    described = dict(chosen.get(variable.kind.value, {}))
    if not described or not _usable(described["name"], place, variable):
        # Times are a lattice of days or a line, and Bernoulli knows two levels: then the choice is meant for others.
        described = {"name": _default(place, variable)}
    family = heads.get(described["name"])
    options = {field.name for field in dataclasses.fields(family)}  # type: ignore[arg-type]  # heads are dataclasses
    if "components" in options and family is not Ordinal:
        described.setdefault("components", components)
    if "levels" in options:
        described["levels"] = len(variable.levels)
    if "lattice" in options and isinstance(codec, LatticeCodec):
        described["lattice"] = codec.lattice
    return _wrapped(codec, heads.build(described))


def _wrapped(codec: Codec, head: Head) -> Head:
    """The head cut at the bounds of a line, and with the atoms of the column. A lattice has its bounds itself."""
    if isinstance(codec, LatticeCodec):
        atoms = codec.from_measure(np.array(codec.variable.atoms))
        return Spiked(tuple(atoms.tolist()), head) if codec.variable.atoms else head
    low, high = (
        None if end is None else float(codec.from_measure(np.array([end]))[0]) for end in codec.variable.bounds
    )
    if low is not None or high is not None:
        head = Bounded(head, low, high)
    return Spiked(codec.atoms, head) if isinstance(codec, SpikedCodec) else head


def _usable(name: str, place: str, variable: Variable) -> bool:
    return place in _suits(heads.get(name)) and (name != Bernoulli.name or len(variable.levels) == 2)


def _default(place: str, variable: Variable) -> str:
    if place == "levels":
        many = Ordinal.name if variable.kind is Kind.ORDINAL else "categorical"
        return Bernoulli.name if len(variable.levels) == 2 else many
    return "gaussian_mixture" if place == "a line" else "discretized_logistic_mixture"


def _places(kind: Kind) -> set[str]:
    """Where values of this kind lie."""
    if kind is Kind.DATETIME:
        return {"a line", "a lattice"}
    return {"levels"} if kind.has_levels else {"a lattice"} if kind is Kind.INTEGER else {"a line"}


def _suits(family: type[Head]) -> set[str]:
    """Where the values of this family lie."""
    options = {field.name for field in dataclasses.fields(family)}  # type: ignore[arg-type]  # heads are dataclasses
    if family is Bernoulli or "levels" in options:
        return {"levels"}
    return {"a lattice"} if "lattice" in options else {"a line"}


def _trial(family: type[Head], described: Mapping[str, Any]) -> None:
    """Build it once, so that a wrong option is found before any data are read."""
    for name in OF_THE_COLUMN:
        if name in described:
            raise UserError(f"heads: the option {name!r} of {described['name']!r} is the column's own; leave it out")
    fields = {field.name: field for field in dataclasses.fields(family)}  # type: ignore[arg-type]  # heads are dataclasses
    column = {"levels": 3, "lattice": None, "components": 2}
    heads.build({**{name: value for name, value in column.items() if name in fields}, **described})
