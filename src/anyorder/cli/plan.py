"""``anyorder plan``: what a paper's run would cost, before anybody pays for it."""

from __future__ import annotations

from typing import Annotated

import typer

from anyorder.cli import show
from anyorder.cli.options import Json


def plan(
    preset: Annotated[
        str | None,
        typer.Option(help="a paper's preset, such as mac_text8; all of them if not given", show_default=False),
    ] = None,
    device: Annotated[
        str, typer.Option(help="A40, A100, H100, L4, T4, V100, RTX3090, RTX4090, RTX5000; cpu or cuda: this machine")
    ] = "A40",
    count: Annotated[int, typer.Option(min=1, help="how many of them train together")] = 1,
    teraflops: Annotated[
        float | None,
        typer.Option(
            metavar="T", help="10^12 operations a second that one comes to (half of the maker's figure if not given)"
        ),
    ] = None,
    precision: Annotated[str, typer.Option(help="float32, or bfloat16 where the device has it")] = "float32",
    recompute: Annotated[
        bool, typer.Option("--recompute", help="activations are computed again for the gradient: less memory")
    ] = False,
    as_json: Json = False,
) -> None:
    """Plan the run of a paper: parameters, memory, operations and time, from its network and a device's speed."""
    from anyorder.modalities.plan import PRESETS
    from anyorder.modalities.plan import plan as planned

    plans = [
        planned(name, device, count, teraflops=teraflops, precision=precision, recompute=recompute)
        for name in ([preset] if preset is not None else PRESETS)
    ]
    if as_json:
        show.print_json(plans[0].to_json() if preset is not None else {"plans": [one.to_json() for one in plans]})
        return
    for number, one in enumerate(plans):
        if number:
            typer.echo()
        show.print_facts(one.to_text())
