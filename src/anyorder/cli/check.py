"""``anyorder check``: does the model know how much it knows, and does it agree with itself?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from anyorder.cli import show
from anyorder.cli.files import load_table_model, read_frame
from anyorder.cli.options import Json, Missing, ModelFile, Seed, TableFile, UnseenValues, at_least_one
from anyorder.cli.paths import check_figure
from anyorder.errors import UserError
from anyorder.support.plain import plain


def check(
    model: ModelFile,
    table: TableFile,
    plot: Annotated[Path | None, typer.Option(metavar="PICTURE", help="draw the report (.png, .svg, .pdf)")] = None,
    repeats: Annotated[
        int, typer.Option(callback=at_least_one, help="how often each row is used, with other cells hidden each time")
    ] = 1,
    seed: Seed = 0,
    missing: Missing = None,
    unseen: UnseenValues = "refuse",
    as_json: Json = False,
) -> None:
    """Check a model on held-out rows: how often its intervals contain the truth, its scores, its consistency."""
    check_figure(plot)
    loaded = load_table_model(model)
    frame = read_frame(table, (*loaded.schema.missing, *(missing or ())))
    if not len(frame):
        raise UserError(f"{str(table)!r} has no rows to check the model on")
    calibration = loaded.calibration(frame, seed=seed, repeats=repeats, unseen=unseen)
    coherence = loaded.coherence(frame, seed=seed, unseen=unseen).to_json()
    lines = calibration.table().to_dict(orient="records")
    result: dict[str, Any] = {"rows": len(frame), "calibration": lines, "coherence": coherence}
    if plot is not None:
        calibration.plot(plot)
        result["plot"] = str(plot)
    if as_json:
        show.print_json(result)
        return
    _show(plain(lines), calibration.levels, plain(coherence))


def _show(lines: list[dict[str, Any]], levels: tuple[float, ...], coherence: dict[str, Any]) -> None:
    headings = {"all": "", "variable": "variable", "known": "known cells"}
    for group, heading in headings.items():
        shown = []
        for line in (line for line in lines if line["group"] == group):
            cells: dict[str, Any] = {heading: str(line["which"]), "cells": line["cells"]}
            for name in (f"{100 * level:g}%" for level in levels):
                cells[f"in {name}"] = f"{line[name]:.3f} ± {_short(line[f'{name} ±'])}"
            cells |= {"KS p": _short(line["ks_p"]), "log score": show.number(line["log_score"])}
            if group == "variable":
                cells["CRPS"] = show.number(line["crps"])
            shown.append(cells)
        if shown:
            show.print_table(shown)
            typer.echo()
    gains = ", ".join(
        f"{orders} orders: {one['gain']:+.3f} ± {_short(one['standard_error'])}"
        for orders, one in coherence["gain"].items()
        if orders != "1"
    )
    left = f" (averaged over an order and its opposite, as scores are: {_short(coherence['left'])})"
    typer.echo(f"spread of log p of a row over orders: {coherence['spread']:.3f} nats{left}")
    typer.echo(
        f"ratio of marginals minus direct chain: {coherence['gap']:+.3f} ± {_short(coherence['gap_error'])} nats"
        f" per row (root mean square {coherence['gap_size']:.3f})"
    )
    typer.echo(f"gain of averaging over orders, nats per row: {gains}")


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
