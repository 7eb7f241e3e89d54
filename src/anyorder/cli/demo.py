"""``anyorder demo``: fit, hide, fill and report on data that comes with scikit-learn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from anyorder.cli import show
from anyorder.cli.options import Json, Seed
from anyorder.cli.paths import check_writable


def demo(
    out: Annotated[Path, typer.Option("-o", "--out", metavar="HTML", help="where to write the report")] = Path(
        "anyorder-demo.html"
    ),
    minutes: Annotated[float, typer.Option(help="time budget of the fit")] = 1.0,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Fit on data that comes with scikit-learn, hide cells, fill them, and write a report with pictures."""
    from anyorder.cli.demos.tables import run_demo

    check_writable(out)
    result = run_demo(out, minutes=minutes, seed=seed, progress=sys.stderr.isatty() and not as_json)
    if as_json:
        show.print_json(result)
    else:
        show.print_table(show.plain(result["scores"]))
        typer.echo(f"\nfitted in {result['seconds']} s; report: {result['report']}")
