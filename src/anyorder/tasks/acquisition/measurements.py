"""What can be measured of a case: columns, or groups of columns that are measured together, each with its cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from anyorder.errors import UserError
from anyorder.variables.schema import Group, Schema

DRAWS = 256  # behind one candidate, at most
SLACK = 1e-9  # of a budget: costs are sums of decimals


@dataclass(frozen=True)
class Measurements:
    """By name, the variables that one measurement tells, and what it costs: 1 each, unless costs are given."""

    groups: dict[str, Group]
    costs: dict[str, float] | None = field(default=None)

    @classmethod
    def of(
        cls,
        schema: Schema,
        about: Sequence[str],
        *,
        candidates: Sequence[str] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        costs: Mapping[str, Any] | None = None,
    ) -> Measurements:
        """All columns but the targets and context, unless said otherwise; those of a group only together."""
        found: dict[str, Group] = {}
        for name, members in (groups or {}).items():
            if isinstance(members, str) or not members:
                raise UserError(f"the group {name!r} needs a list of columns, got {members!r}")
            found[str(name)] = tuple(dict.fromkeys(schema.asked(member) for member in members))
        grouped = {index for members in found.values() for index in members}
        for index, variable in enumerate(schema.variables):
            if index not in grouped and not variable.indicates and not variable.context:
                if variable.name in found:
                    raise UserError(
                        f"the group {variable.name!r} has the name of a column that is not in it; rename the group"
                    )
                found[variable.name] = (index,)
        targets = {schema.asked(name) for name in about}
        for name in groups or {}:
            if targets & set(found[str(name)]):
                raise UserError(
                    f"the group {name!r} holds {', '.join(about)}, which you want to know about; leave it out"
                )
        found = {name: members for name, members in found.items() if not targets & set(members)}
        if candidates is not None:
            for name in candidates:
                if name not in found:
                    schema.asked(name)  # a column that does not exist, or is context, is the likelier mistake
                    raise UserError(f"{name!r} cannot be a candidate: it is a target, or measured in a group only")
            found = {name: found[name] for name in dict.fromkeys(candidates)}
        if costs is not None and not isinstance(costs, Mapping):
            raise UserError(f"costs must be a mapping from measurements to numbers, got {costs!r}")
        return cls(found, None if costs is None else _checked(dict(costs.items()), found, schema.names))

    @property
    def priced(self) -> bool:
        """Whether costs were given."""
        return self.costs is not None

    def cost(self, name: str) -> float:
        """What a measurement costs."""
        if self.costs is None:
            return 1.0
        if name not in self.costs:
            raise UserError(f"costs: no cost is given for {name!r}; name one, or leave it out of the candidates")
        return self.costs[name]

    def within(self, budget: float | None, name: str) -> bool:
        """Whether a budget pays for it."""
        return budget is None or self.cost(name) <= budget * (1 + SLACK) + 1e-12

    def open_for(self, settled: set[int]) -> dict[str, Group]:
        """The measurements that could tell a case something, each with those of its variables that are not settled."""
        left = {
            name: tuple(index for index in members if index not in settled) for name, members in self.groups.items()
        }
        return {name: members for name, members in left.items() if members}


def _checked(costs: dict[Any, Any], found: Mapping[str, Group], columns: Sequence[str]) -> dict[str, float]:
    for name, cost in costs.items():
        if name not in found and name not in columns:
            raise UserError(f"costs: there is nothing called {name!r} to measure; known: {', '.join(found)}")
        if isinstance(cost, bool) or not isinstance(cost, Real) or not 0 < float(cost) < math.inf:
            raise UserError(f"costs: the cost of {name!r} must be a number above 0, got {cost!r}")
    return {str(name): float(cost) for name, cost in costs.items()}
