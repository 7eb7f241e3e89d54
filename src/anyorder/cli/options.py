"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def at_least_one(value: int | None) -> int | None:
    """A count, if it is one."""
    if value is not None and value < 1:
        raise typer.BadParameter(f"must be at least 1, got {value}")
    return value


ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="a model file (.anyorder)", show_default=False)]
TableFile = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="CSV (any delimiter), CSV.gz, Parquet, Excel, JSON lines, or - for standard input; a folder or a quoted "
        "pattern of Parquet or CSV parts, where parts are read",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "-o", "--out", metavar="FILE", help="where to write; standard output if not given; a folder for parts"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object instead of text")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="the same seed gives the same draws")]
Count = Annotated[int, typer.Option("-n", "--count", callback=at_least_one, help="how many to draw")]
Orders = Annotated[
    int, typer.Option("--orders", callback=at_least_one, help="average the probability over this many orders")
]

Missing = Annotated[
    list[str] | None,
    typer.Option("--missing", metavar="MARK", help="text that marks an unknown cell, such as '?'; repeatable"),
]
UnseenValues = Annotated[
    Literal["refuse", "missing"],
    typer.Option("--unseen", help="a value never seen in training: refuse the table, or treat the cell as unknown"),
]

Given = Annotated[
    str, typer.Option("--given", metavar="EVIDENCE", help="what is known, e.g. 'rooms=6, age > 30'", show_default=False)
]

RuleTexts = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        metavar="RULE",
        help="a rule between numbers or times, such as 'end > start', 'total = a + b'; repeatable",
    ),
]

EscapeFormulas = Annotated[
    bool,
    typer.Option("--escape-formulas", help="put ' before texts that a spreadsheet would calculate, such as =1+1 (CSV)"),
]

NetworkCalls = Annotated[
    int | None, typer.Option("--calls", min=1, help="make only this many network calls; no longer exact")
]
Order = Annotated[
    str, typer.Option(help="model, or confidence: the surest first, which is not the model's distribution")
]
Evenly = Annotated[
    int | None, typer.Option("--windows", min=1, help="score only this many windows or pictures, evenly spread")
]
PlainOut = Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="where to write the result")]
CompressedFile = Annotated[Path, typer.Argument(metavar="FILE", help="what compress wrote", show_default=False)]
