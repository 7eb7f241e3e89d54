"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="a model file (.anyorder)", show_default=False)]
TableFile = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE", help="CSV (any delimiter), CSV.gz, Parquet, or - for standard input", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object instead of text")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="the same seed gives the same draws")]
Missing = Annotated[
    list[str] | None,
    typer.Option("--missing", metavar="MARK", help="a mark for an unknown cell, such as '?'; repeatable"),
]
UnseenValues = Annotated[
    Literal["refuse", "missing"],
    typer.Option("--unseen", help="a value that was never seen in training: a mistake, or as good as unknown"),
]
