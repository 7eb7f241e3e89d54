"""``anyorder demo-images``: fit, hide, fill and draw digits that come with scikit-learn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from anyorder.cli import show
from anyorder.cli.options import Json, Seed
from anyorder.cli.paths import check_image


def demo_images(
    out: Annotated[Path, typer.Option("-o", "--out", metavar="PICTURE", help="where to draw the fills")] = Path(
        "anyorder-digits.png"
    ),
    minutes: Annotated[float, typer.Option(help="time budget of the fit")] = 2.25,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Fit scikit-learn's digits, hide parts of unseen ones, fill them, and draw a grid of the fills."""
    from anyorder.cli.demos.images import run_image_demo

    check_image(out)
    result = run_image_demo(out, minutes=minutes, seed=seed, progress=sys.stderr.isatty() and not as_json)
    if as_json:
        show.print_json(result)
    else:
        show.print_table(show.plain(result["scores"]))
        typer.echo(f"\n{result['seconds']} s in all; the picture: {result['picture']}")
