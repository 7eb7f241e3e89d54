"""Options that say what the columns of a table are: the same for ``fit`` and ``look``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from anyorder.cli.configuration import read_bounds
from anyorder.errors import UserError
from anyorder.questions.grammar import parse_evidence, parse_names

Kinds = Annotated[
    list[str] | None, typer.Option("--kind", metavar="COLUMN=KIND", help="override a column's kind; repeatable")
]
BoundTexts = Annotated[
    list[str] | None,
    typer.Option("--bounds", metavar="COLUMN=LOW..HIGH", help="range of a number column, such as 0..; repeatable"),
]
LevelTexts = Annotated[
    list[str] | None,
    typer.Option(
        "--levels",
        metavar="COLUMN=A<B<C",
        help="the order of a column's levels, such as 'pain=none<some<much'; repeatable",
    ),
]
Dropped = Annotated[list[str] | None, typer.Option("--drop", metavar="COLUMN", help="leave a column out; repeatable")]

ContextNames = Annotated[
    list[str] | None,
    typer.Option(
        "--context",
        metavar="COLUMNS",
        help="columns that every question will know, such as age,sex: nothing is learned of them; repeatable",
    ),
]


def column_arguments(
    kind: Sequence[str] | None,
    bounds: Sequence[str] | None,
    levels: Sequence[str] | None,
    missing: Sequence[str] | None,
    drop: Sequence[str] | None,
) -> dict[str, Any]:
    """The arguments of :func:`anyorder.fit` and :func:`anyorder.look` that these options stand for."""
    given: dict[str, Any] = {}
    if kind:
        given["kinds"] = _pairs(kind)
    if bounds:
        given["bounds"] = {name: read_bounds(name, text) for name, text in _pairs(bounds).items()}
    if levels:
        given["levels"] = dict(_order(text) for text in levels)
    if missing:
        given["missing"] = list(missing)
    if drop:
        given["drop"] = [name for text in drop for name in parse_names(text)]
    return given


def _pairs(texts: Sequence[str]) -> dict[str, Any]:
    return {name: value for text in texts for name, value in parse_evidence(text).items()}


def _order(text: str) -> tuple[str, list[str]]:
    name, equals, rest = text.partition("=")
    order = [level.strip() for level in rest.split("<")]
    if not equals or not name.strip() or len(order) < 2 or not all(order):
        raise UserError(
            f"--levels expects a column and its levels from the least, such as pain=none<some<much; got {text!r}"
        )
    return name.strip(), order
