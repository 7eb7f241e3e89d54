"""``anyorder next``: which unknown of a case is worth asking for next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyorder.cli import show
from anyorder.cli.acquisition_options import (
    About,
    Budget,
    Costs,
    Draws,
    Given,
    Least,
    LookAhead,
    Only,
    Price,
    Reward,
    Together,
    read_costs,
    read_groups,
)
from anyorder.cli.loading import load
from anyorder.cli.options import Json, ModelFile, Seed
from anyorder.cli.paths import check_picture
from anyorder.cli.sparkline import axis_of, in_a_line
from anyorder.questions.grammar import parse_evidence, parse_names
from anyorder.tasks.acquisition.measurements import DRAWS

if TYPE_CHECKING:
    from anyorder.tasks.acquisition.next_question import NextQuestion

SHOWN = 12  # candidates listed in the terminal
LITTLE = 1e-3  # a contradiction that is not worth a word


def next_(
    model: ModelFile,
    about: About,
    given: Given = "",
    candidates: Only = None,
    group: Together = None,
    costs: Costs = None,
    budget: Budget = None,
    price: Price = 0.0,
    least: Least = None,
    reward: Reward = "information",
    at_once: Annotated[int, typer.Option(min=1, help="choose so many whose answers come together")] = 1,
    look_ahead: LookAhead = 1,
    plot: Annotated[Path | None, typer.Option(metavar="PICTURE", help="draw the ranking (.png, .svg, .pdf)")] = None,
    draws: Draws = DRAWS,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Rank what is unknown of a case by how much it is expected to tell about a target, per cost.

    Gains are in nats: what a fair yes/no answer tells is 0.69 of them.
    """
    check_picture(plot)
    names, evidence = parse_names(about), parse_evidence(given)
    loaded = load(model)
    found = loaded.next_question(
        evidence,
        names,
        candidates=None if candidates is None else parse_names(candidates),
        groups=read_groups(group or []),
        costs=None if costs is None else read_costs(costs),
        budget=budget,
        price=price,
        least=least,
        reward=reward,
        at_once=at_once,
        look_ahead=look_ahead,
        draws=draws,
        seed=seed,
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
            typer.echo(show.visible(f"{name} {in_a_line(answer, axis_of(answer))}"))
        print_ranking(found)


def print_ranking(found: NextQuestion) -> None:
    """The candidates, best first, and what to do."""
    rows = found.table().head(SHOWN).to_dict("records")
    priced = any(row["cost"] != 1 for row in rows)
    lines = []
    for row in rows:
        error = f" ± {row['standard_error']:.2g}" if row["standard_error"] else ""
        line = {"ask for": str(row["name"]), f"gain ({found.unit})": f"{row['gain']:.4f}{error}"}
        if "ahead" in row:
            line["with the next"] = f"{row['ahead']:.4f}"
        if priced:
            line |= {"cost": row["cost"], "per cost": f"{row['value']:.4f}"}
        lines.append({**line, "": "" if row["worth"] else "not worth it"})
    if lines:
        show.print_table(lines)
    if found.doubt > LITTLE:
        remark = f"the model contradicts itself by some {found.doubt:.2g} {found.unit} here"
        typer.echo(f"(no true gain is negative: {remark})")
    if len(found.candidates) > SHOWN:
        typer.echo(f"... and {len(found.candidates) - SHOWN} more")
    if found.stop:
        typer.echo(show.visible(f"stop: {found.stop}"))
    elif found.together is not None:
        asked = show.visible(" and ".join(found.chosen))
        typer.echo(f"ask for {asked}: together {float(found.together):.4f} {found.unit}")
    else:
        typer.echo(show.visible(f"ask for {found.best}"))
