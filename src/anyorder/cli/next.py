"""``anyorder next``: which unknown value of a case to ask for next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyorder.cli import show
from anyorder.cli.acquisition_options import AcquisitionOptions
from anyorder.cli.files import load_table_model
from anyorder.cli.options import Json, ModelFile
from anyorder.cli.paths import check_figure
from anyorder.cli.signatures import spelled_out
from anyorder.cli.sparkline import axis_of, in_a_line
from anyorder.questions.grammar import parse_evidence, parse_names
from anyorder.support.visible import visible

if TYPE_CHECKING:
    from anyorder.tasks.acquisition.next_question import NextQuestion

SHOWN = 12  # candidates listed in the terminal
LITTLE = 1e-3  # a contradiction too small to mention


@spelled_out
def next_(
    model: ModelFile,
    about: Annotated[str, typer.Option(metavar="NAMES", help="what is to be learned: one column or several")],
    at_once: Annotated[int, typer.Option(min=1, help="choose this many, to be answered all at once")] = 1,
    plot: Annotated[Path | None, typer.Option(metavar="PICTURE", help="draw the ranking (.png, .svg, .pdf)")] = None,
    as_json: Json = False,
    *,
    options: AcquisitionOptions,
) -> None:
    """Rank the unknown values of a case by how much each is expected to tell about a target, per cost.

    Gains are in nats: a yes/no answer that could go either way tells 0.69 nats.
    """
    check_figure(plot)
    names, evidence = parse_names(about), parse_evidence(options.given)
    loaded = load_table_model(model)
    found = loaded.next_question(
        evidence,
        names,
        **options.rules(),
        at_once=at_once,
        draws=options.draws,
        seed=options.seed,
    )
    result: dict[str, Any] = {"given": evidence, **found.to_json()}
    if plot is not None:
        from anyorder.support import plotting
        from anyorder.tasks.acquisition.plots import plot_ranking

        plotting.save_figure(plot_ranking(found), plot)
        result["plot"] = str(plot)
    if as_json:
        show.print_json(result)
    else:
        for name, answer in ((name, loaded.given(evidence)[name]) for name in names):
            typer.echo(visible(f"{name} {in_a_line(answer, axis_of(answer))}"))
        print_ranking(found)


def print_ranking(found: NextQuestion) -> None:
    """The candidates, best first, and which to ask for."""
    rows = found.table().head(SHOWN).to_dict("records")
    priced = any(row["cost"] != 1 for row in rows)
    lines = []
    for row in rows:
        error = f" ± {row['error']:.2g}" if row["error"] else ""
        line = {"ask for": str(row["name"]), f"gain ({found.unit})": f"{row['gain']:.4f}{error}"}
        if "ahead" in row:
            line["with the next"] = f"{row['ahead']:.4f}"
        if priced:
            line |= {"cost": row["cost"], "per cost": f"{row['value']:.4f}"}
        lines.append({**line, "": "" if row["worth"] else "not worth it"})
    if lines:
        show.print_table(lines)
    if found.contradiction > LITTLE:
        differs = f"{found.contradiction:.2g} {found.unit}"
        typer.echo(f"(the model's answers contradict each other by up to {differs}; the gains are free of it)")
    if len(found.candidates) > SHOWN:
        typer.echo(f"... and {len(found.candidates) - SHOWN} more")
    if found.stop:
        typer.echo(visible(f"stop: {found.stop}"))
    elif found.together is not None:
        asked = visible(" and ".join(found.chosen))
        typer.echo(f"ask for {asked}: together {float(found.together):.4f} {found.unit}")
    else:
        typer.echo(visible(f"ask for {found.best}"))
