"""Options of the two commands about measuring: ``next`` and ``interview``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from anyorder.errors import UserError
from anyorder.questions.grammar import parse_names

About = Annotated[str, typer.Option("--about", metavar="NAMES", help="what is to be learned: one column or several")]
Given = Annotated[str, typer.Option("--given", metavar="EVIDENCE", help="what is known, e.g. 'age=40, sex=f'")]
Only = Annotated[
    str | None, typer.Option("--candidates", metavar="NAMES", help="what may be asked for; all other columns if none")
]
Together = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="NAME=COLUMNS", help="columns measured together, e.g. 'blood=hb, wbc'; repeatable"),
]
Costs = Annotated[
    Path | None, typer.Option("--costs", metavar="CSV", help="a table with the columns name and cost (above 0)")
]
Budget = Annotated[float | None, typer.Option("--budget", min=0, help="the most that may be spent")]
Price = Annotated[float, typer.Option("--price", min=0, help="the least gain that is worth a unit of cost")]
Least = Annotated[
    float | None,
    typer.Option(
        "--least",
        min=0,
        help="the least gain worth any question (0.01 nats if not given; of other rewards, 1 % of what is there)",
    ),
]
Reward = Annotated[
    Literal["information", "variance", "error"],
    typer.Option("--reward", help="what a question should lessen: entropy, variance or error of the target"),
]
Draws = Annotated[int, typer.Option("--draws", min=2, help="draws behind a candidate, at most")]


LookAhead = Annotated[
    int, typer.Option("--look-ahead", min=1, max=2, help="2: count the best question that may follow")
]


def read_groups(texts: list[str]) -> dict[str, list[str]]:
    """The groups that the options name."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, columns = text.partition("=")
        if not equals or not name.strip():
            raise UserError(f"--group must read NAME=COLUMN, COLUMN, ..., got {text!r}")
        if name.strip() in found:
            raise UserError(f"--group: {name.strip()!r} is given twice")
        found[name.strip()] = parse_names(columns)
    return found


def read_costs(path: Path) -> dict[str, float]:
    """The costs in a table: a name and a number above 0 a row."""
    if not path.is_file():
        raise UserError(f"there is no file {str(path)!r} with costs")
    from anyorder.data.files import read_table

    table = read_table(path, missing=())
    if not {"name", "cost"} <= set(table.columns):
        raise UserError(f"{str(path)!r} must have the columns name and cost, got {', '.join(map(str, table.columns))}")
    costs: dict[str, float] = {}
    for line, (name, cost) in enumerate(zip(table["name"], table["cost"], strict=True), start=2):
        try:
            number = float(cost)
        except (TypeError, ValueError):
            raise UserError(f"{str(path)!r}, row {line}: {cost!r} is no number") from None
        if str(name) in costs:
            raise UserError(f"{str(path)!r}, row {line}: {name!r} stands twice")
        costs[str(name)] = number
    return costs
