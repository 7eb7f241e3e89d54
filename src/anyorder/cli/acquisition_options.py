"""The options that ``next`` and ``interview`` share: what may be measured, what it costs, and when to stop."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from anyorder.cli.options import Given, Seed
from anyorder.errors import UserError
from anyorder.questions.grammar import parse_names
from anyorder.tasks.acquisition.measurements import DRAWS


@dataclass(frozen=True, kw_only=True)
class AcquisitionOptions:
    """One field per option, in the order of ``--help``."""

    given: Given = ""
    candidates: Annotated[
        str | None, typer.Option(metavar="NAMES", help="what may be asked for (all other columns if not given)")
    ] = None
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COLUMNS", help="columns measured together, e.g. 'blood=hb, wbc'; repeatable"),
    ] = None
    costs: Annotated[
        Path | None, typer.Option(metavar="CSV", help="a table with the columns name and cost (above 0)")
    ] = None
    budget: Annotated[float | None, typer.Option(min=0, help="the most that may be spent")] = None
    price: Annotated[float, typer.Option(min=0, help="the least gain that justifies one unit of cost")] = 0.0
    least: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="the least gain that justifies a question (if not given: 0.01 nats; "
            "for variance and error, 1 % of what there is)",
        ),
    ] = None
    reward: Annotated[
        Literal["information", "variance", "error"],
        typer.Option(help="what a question should reduce: entropy, variance or error of the target"),
    ] = "information"
    look_ahead: Annotated[int, typer.Option(min=1, max=2, help="2: also count the best question that may follow")] = 1
    draws: Annotated[int, typer.Option(min=2, help="the most draws for each candidate")] = DRAWS
    seed: Seed = 0

    def rules(self) -> dict[str, Any]:
        """The rules by which questions are ranked, as the library takes them."""
        return {
            "candidates": None if self.candidates is None else tuple(parse_names(self.candidates)),
            "groups": read_groups(self.group or []),
            "costs": None if self.costs is None else read_costs(self.costs),
            "budget": self.budget,
            "price": self.price,
            "least": self.least,
            "reward": self.reward,
            "look_ahead": self.look_ahead,
        }


def read_groups(texts: list[str]) -> dict[str, list[str]]:
    """The columns of each group: ``["blood=hb, wbc"]`` gives ``{"blood": ["hb", "wbc"]}``."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, columns = text.partition("=")
        if not equals or not name.strip():
            raise UserError(f"--group expects NAME=COLUMN,COLUMN,..., such as blood=glucose,insulin; got {text!r}")
        if name.strip() in found:
            raise UserError(f"--group: {name.strip()!r} is given twice")
        found[name.strip()] = parse_names(columns)
    return found


def read_costs(path: Path) -> dict[str, float]:
    """The cost of each name in a table of names and costs."""
    if not path.is_file():
        raise UserError(f"no such file: {str(path)!r}; expected a table with the columns name and cost")
    from anyorder.data.files import read_table

    table = read_table(path, missing=())
    if not {"name", "cost"} <= set(table.columns):
        raise UserError(f"{str(path)!r} must have the columns name and cost, got {', '.join(map(str, table.columns))}")
    costs: dict[str, float] = {}
    for line, (name, cost) in enumerate(zip(table["name"], table["cost"], strict=True), start=2):
        try:
            number = float(cost)
        except (TypeError, ValueError):
            raise UserError(f"{str(path)!r}, row {line}: {cost!r} is not a number") from None
        if str(name) in costs:
            raise UserError(f"{str(path)!r}, row {line}: {name!r} appears twice")
        costs[str(name)] = number
    return costs
