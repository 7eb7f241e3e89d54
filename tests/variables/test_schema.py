"""Schemas: names and grids, variables kept once, plain data in a file, and a clear refusal of what is broken."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anyorder.data.tables import prepare
from anyorder.errors import UserError
from anyorder.variables.schema import Kind, Schema, Variable

ROWS = 60
COUNT = np.arange(ROWS)


def test_json_round_trip_and_refusals() -> None:
    frame = pd.DataFrame(
        {"x": COUNT / 7, "c": pd.Categorical(COUNT % 2 == 0), "t": pd.date_range("2024", periods=ROWS)}
    )
    schema, _ = prepare(frame, missing=["?"])
    text = json.dumps(schema.to_json())
    assert Schema.from_json(json.loads(text)) == schema
    assert type(Schema.from_json(json.loads(text))["c"].levels[0]) is bool

    def broken(change: dict[str, Any], words: str) -> None:
        described = json.loads(text)
        described["variables"][0].update(change)
        with pytest.raises(UserError, match=words):
            Schema.from_json(described)

    broken({"kind": "contiuous"}, "unknown kind 'contiuous'; did you mean 'continuous'")
    broken({"levels": [1, 2]}, "cannot have levels")
    broken({"kind": "categorical"}, "needs at least one level")
    broken({"levels": "ab", "kind": "categorical"}, "must be a list")
    broken({"resolution": "day"}, "resolution")
    broken({"colour": 1}, "no entry 'colour'")
    broken({"name": "c"}, "repeated: 'c'")
    for described, words in [({}, "needs the entry 'variables'"), ([], "mapping"), ({"variables": [1]}, "list of")]:
        with pytest.raises(UserError, match=words):
            Schema.from_json(described)  # type: ignore[arg-type]


def test_names_and_grid() -> None:
    pixels = tuple(Variable(f"p{i}", Kind.INTEGER) for i in range(6))
    schema = Schema(pixels, grid=(2, 3), alike=True)
    assert Schema.from_json(schema.to_json()) == schema
    assert (len(schema), schema.index("p4"), "p9" in schema) == (6, 4, False)
    with pytest.raises(UserError, match="no variable 'P4'; did you mean 'p4'"):
        schema.index("P4")
    with pytest.raises(UserError, match="6 variables do not fill a grid of 2 x 2"):
        Schema(pixels, grid=(2, 2))


def test_a_repeated_variable_is_kept_once() -> None:
    pixel = Variable("p", Kind.CATEGORICAL, ("dark", "light"), dtype="str")
    schema = Schema.repeat(pixel, (2, 3))
    one_by_one = tuple(Variable(f"p{i}", Kind.CATEGORICAL, ("dark", "light"), dtype="str") for i in range(6))
    assert schema == Schema(one_by_one, (2, 3), alike=True)
    assert schema.repeated == pixel
    described = json.loads(json.dumps(schema.to_json()))
    assert described["repeat"] == pixel.to_json()
    assert "variables" not in described
    assert Schema.from_json(described) == schema
    marked = Schema(one_by_one, (2, 3), missing=("?",), alike=True)
    assert Schema.from_json(marked.to_json()) == marked


@pytest.mark.parametrize(
    "variables",
    [
        (Variable("p0", Kind.INTEGER), Variable("p1", Kind.CONTINUOUS)),
        (Variable("p0", Kind.INTEGER), Variable("q1", Kind.INTEGER)),
        (Variable("p1", Kind.INTEGER), Variable("p0", Kind.INTEGER)),
        (Variable("p", Kind.INTEGER),),
    ],
    ids=["other kind", "other name", "other order", "no number"],
)
def test_variables_that_differ_are_listed(variables: tuple[Variable, ...]) -> None:
    schema = Schema(variables, alike=True)
    assert schema.repeated is None
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema


def test_what_is_repeated_must_be_clear() -> None:
    described = Schema.repeat(Variable("p", Kind.INTEGER), (2, 3)).to_json()
    for change, words in [
        ({"variables": []}, "no entry 'variables'"),
        ({"repeat": "p"}, "mapping"),
        ({"grid": "23"}, "list of int"),
        ({"grid": [0]}, "at least one variable"),
    ]:
        with pytest.raises(UserError, match=words):
            Schema.from_json({**described, **change})
    with pytest.raises(UserError, match="needs the entry 'grid'"):
        Schema.from_json({"repeat": described["repeat"]})
