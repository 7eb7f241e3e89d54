"""What is to be known of a model's columns before any question: kind, levels, what was seen, how values are written.

It needs nothing of the service, so that a report can have it without the extra ``serve``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anyorder.questions.facts import in_own_form, variable_facts
from anyorder.questions.marginals import Axis, Marginal, Marginals
from anyorder.questions.units import shown
from anyorder.support.plain import plain
from anyorder.variables.missingness import indicator_name
from anyorder.variables.schema import Kind, Schema, Variable

if TYPE_CHECKING:
    from anyorder.modalities.tables.model import TableModel


def prior_of(model: TableModel, marginals: Marginals) -> dict[str, Marginal]:
    """All columns with nothing known; none where there is context, without which nothing can be said."""
    return {} if model.schema.context else marginals.of([model.given(rules=[])])[0]


def schema_facts(name: str, model: TableModel, marginals: Marginals, prior: dict[str, Marginal]) -> dict[str, Any]:
    """All columns, each with its marginal where the model can give one without knowing anything."""
    schema: Schema = model.schema
    return {
        "name": name,
        "columns": [
            column_facts(marginals, variable, prior.get(variable.name))
            for variable in schema.variables
            if not variable.indicates
        ],
        "left_out": dict(schema.reasons),
        "missing_marks": list(schema.missing),
        "rules": list(model.card.get("arguments", {}).get("rules", [])),
    }


def column_facts(marginals: Marginals, variable: Variable, prior: Marginal | None) -> dict[str, Any]:
    """What is to be known of one column."""
    codec = marginals.model.encoding.codec(variable.name)
    facts: dict[str, Any] = {
        **variable_facts(variable),
        "context": variable.context,
        "optional": variable.optional,
        "missing_can_be_given": indicator_name(variable.name) in marginals.model.schema,
        "ordered": variable.kind not in (Kind.BOOLEAN, Kind.CATEGORICAL),
        "discrete": variable.discrete,
        "own_form": in_own_form(variable),
    }
    if variable.kind is Kind.DATETIME:
        facts |= {"resolution": variable.resolution, "zone": variable.zone}
    facts["levels"] = [
        {
            "level": plain(level),
            "written": shown(variable, level),
            "share": None if prior is None else list(prior.probs.values())[at],
        }
        for at, level in enumerate(variable.levels)
    ]
    if not variable.levels:
        axis = marginals.axes[variable.name]
        facts["axis"] = axis_facts(marginals, variable, axis)
        ends = codec.seen
        facts["seen"] = None if ends is None else [_value(marginals, variable, end) for end in ends]
    facts["marginal"] = None if prior is None else marginal_facts(prior)
    return facts


def axis_facts(marginals: Marginals, variable: Variable, axis: Axis) -> dict[str, Any]:
    """The edges of a column's cells: as numbers to draw by, as values to condition on, and as people write them."""
    values = [_value(marginals, variable, edge) for edge in axis.edges.tolist()]
    return {
        "edges": axis.edges.tolist(),
        "values": [value["value"] for value in values],
        "written": [value["written"] for value in values],
        "logarithmic": axis.logarithmic,
        "step": axis.step,
    }


def marginal_facts(marginal: Marginal) -> dict[str, Any]:
    """One column, given what is known."""
    variable = marginal.variable
    facts: dict[str, Any] = {"kind": variable.kind.value}
    if marginal.probs:
        facts["probs"] = [
            {"level": plain(level), "written": shown(variable, level), "prob": share}
            for level, share in zip(variable.levels or variable.atoms, marginal.probs.values(), strict=True)
        ]
    if marginal.cells is not None:
        facts |= {"cells": marginal.cells.tolist(), "below": marginal.below, "above": marginal.above}
    for name in ("mean", "median", "low", "high", "best"):
        value = getattr(marginal, name)
        if value is not None:
            facts[name] = plain(value)
    facts["written"] = {
        name: shown(variable, getattr(marginal, name))
        for name in ("mean", "median", "low", "high", "best")
        if getattr(marginal, name) is not None
    }
    facts["standard_error"] = marginal.standard_error
    return facts


def _value(marginals: Marginals, variable: Variable, number: float) -> dict[str, Any]:
    """A number in the units of the data as a value of the column, and as people write it."""
    value = marginals.in_units(variable, [number])[0]
    return {"value": plain(value), "written": shown(variable, value), "number": number}
