"""``anyorder demo``, ``demo-images`` and ``demo-text``: fit data that is at hand, hide some of it, and fill it in."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from anyorder.cli import show
from anyorder.cli.options import Json, Seed
from anyorder.cli.paths import check_picture, check_writable
from anyorder.cli.signatures import spelled_out
from anyorder.support.plain import plain

Report = Annotated[Path, typer.Option("-o", "--out", metavar="HTML", help="where to write the report")]
Fills = Annotated[Path, typer.Option("-o", "--out", metavar="PICTURE", help="where to draw the fills")]
Minutes = Annotated[float, typer.Option(help="time budget of the fit")]


@dataclass(frozen=True, kw_only=True)
class DemoRun:
    """The options that all have, and how the scores are printed."""

    seed: Seed = 0
    as_json: Json = False

    @property
    def progress(self) -> bool:
        return sys.stderr.isatty() and not self.as_json

    def print(self, result: dict[str, Any], last_line: str) -> None:
        if self.as_json:
            show.print_json(result)
        else:
            show.print_table(plain(result["scores"]))
            typer.echo(f"\n{last_line}")


@spelled_out
def demo(out: Report = Path("anyorder-demo.html"), minutes: Minutes = 1.0, *, run: DemoRun) -> None:
    """Fit a table that comes with scikit-learn, hide cells, fill them, and write a report with pictures."""
    check_writable(out)
    from anyorder.cli.demos.tables import run_demo

    result = run_demo(out, minutes=minutes, seed=run.seed, progress=run.progress)
    run.print(result, f"fitted in {result['seconds']} s; report: {result['report']}")


@spelled_out
def demo_images(out: Fills = Path("anyorder-digits.png"), minutes: Minutes = 2.25, *, run: DemoRun) -> None:
    """Fit scikit-learn's digits, hide parts of unseen digits, fill them, and draw a grid of the fills."""
    check_picture(out)
    from anyorder.cli.demos.images import run_image_demo

    result = run_image_demo(out, minutes=minutes, seed=run.seed, progress=run.progress)
    run.print(result, f"{result['seconds']} s in all; picture: {result['picture']}")


@spelled_out
def demo_text(out: Fills = Path("anyorder-text.png"), minutes: Minutes = 1.0, *, run: DemoRun) -> None:
    """Fit Python's own help pages, hide parts of unseen ones, fill them, and draw the fills."""
    check_picture(out)
    from anyorder.cli.demos.texts import run_text_demo
    from anyorder.cli.texts import print_fillings

    result, model, fillings = run_text_demo(out, minutes=minutes, seed=run.seed, progress=run.progress)
    if not run.as_json:
        print_fillings(fillings, model)
        typer.echo("")
    run.print(result, f"fitted in {result['fit_seconds']} s; picture: {result['picture']}")
