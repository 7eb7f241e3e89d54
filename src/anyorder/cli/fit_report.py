"""What ``anyorder fit`` found, as one page: columns, predictions, dependence, calibration, odd cells, examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyorder.cli.explored import explorer_section
from anyorder.cli.report import Picture, Section, write_report
from anyorder.cli.sparkline import axis_of, heights
from anyorder.errors import UserError
from anyorder.support import html
from anyorder.support.plain import plain
from anyorder.tasks.summary.heat_map import heat_map
from anyorder.tasks.summary.page import pair_table, predicted_table, steps_list
from anyorder.tasks.summary.predicted import worth_asking
from anyorder.tasks.summary.written import percent, value_text
from anyorder.variables.hints import for_commands

if TYPE_CHECKING:
    import pandas as pd

    from anyorder.data.columns import Understood
    from anyorder.modalities.tables.model import TableModel
    from anyorder.questions.answer import Answer
    from anyorder.tasks.calibration import Calibration
    from anyorder.tasks.summary import Summary
    from anyorder.variables.schema import Variable

CALIBRATED = 1_000  # rows at most
MOST_EXAMPLES = 3
QUANTILES = (0.1, 0.5, 0.9)
MOST_LEVELS = 3
SHOWN_LEVELS = 4


def write_fit_report(
    path: Path,
    model: TableModel,
    frame: pd.DataFrame,
    found: Sequence[Understood],
    summary: Summary,
    *,
    title: str,
    place: Path,
) -> None:
    """Write the page; it fetches nothing from elsewhere. ``place`` is where the model is saved."""
    training = model.card.get("training", {})
    sections = [
        _columns(frame, model, found),
        Section(
            "How well each column can be predicted from the others",
            f"{summary.basis}\n\nErrors are compared with those of always giving the same answer: the most frequent "
            "value, or the median.",
            parts=[predicted_table(summary.predicted)],
        ),
        Section(
            "What depends on what",
            "How much two columns tell about each other: mutual information in nats, measured on rows that were not "
            "used for training. Darker is more; white is no more than chance. The answer to an even yes-or-no question "
            "is worth 0.69 nats.",
            parts=[heat_map(summary.depends), pair_table(summary.pairs())],
        ),
        *_calibration(model, frame),
        _surprises(summary),
        _examples(model, summary),
        *explorer_section(model, place.stem, file=str(place)),
        Section("Worth asking next", parts=[steps_list(summary.steps)]),
    ]
    seconds = training.get("seconds")
    spent = "" if seconds is None else f" · fitted in {seconds:.0f} s"
    write_report(
        path, title, sections, subtitle=f"{summary.rows:,} rows, {len(model.schema.names)} columns learned{spent}"
    )


def _columns(frame: pd.DataFrame, model: TableModel, found: Sequence[Understood]) -> Section:
    lines = []
    for each in found:
        variable = each.variable
        unknown = int(frame[each.name].isna().sum())
        if variable is not None:
            unknown = int((~model.core.encoding.cells(frame)[1][:, model.schema.index(each.name)]).sum())
        note = "; ".join((*each.doubts, *([f"change it with {for_commands(each.remedy)}"] if each.remedy else [])))
        lines.append(
            (
                each.name,
                "left out" if variable is None else _taken_for(model.schema[each.name]),
                each.why,
                f"{unknown:,}" if unknown else "",
                note,
            )
        )
    head = ("column", "taken for", "why", "unknown cells", "")
    return Section("Columns", parts=[html.table(head, lines, numeric=(3,))])


def _taken_for(variable: Variable) -> str:
    return f"{variable.kind.value}, context" if variable.context else variable.kind.value


def _calibration(model: TableModel, frame: pd.DataFrame) -> Iterator[Section]:
    from anyorder.data.frames import as_pandas
    from anyorder.modalities.tables.summary import unlearned
    from anyorder.tasks.calibration import calibrate
    from anyorder.tasks.summary.making import taken

    judges, why = unlearned(model, as_pandas(frame))
    heading = "Does the model know how much it knows?"
    if not any(len(rows) for _, rows in judges):
        yield Section(heading, f"Not known: {why}.")
        return
    found = calibrate(model.core, as_pandas(frame), by=taken(judges, CALIBRATED, 0))
    lines = [
        {
            "cells": "all" if line["group"] == "all" else str(line["which"]),
            "number": line["cells"],
            **{f"inside {100 * level:g}%": f"{line[f'{100 * level:g}%']:.0%}" for level in found.levels},
        }
        for line in found.table().to_dict(orient="records")
        if line["group"] != "known"
    ]
    text = (
        "Cells were hidden at random in rows that were not used for training. If the model's uncertainty is right, "
        "its 90% intervals contain 90% of them."
    )
    yield Section(heading, text, lines, pictures=_pictures(found))


def _pictures(found: Calibration) -> list[Picture]:
    """The picture of the calibration, where there is something to draw it with."""
    from anyorder.support import plotting
    from anyorder.tasks.calibration_plots import plot_calibration

    try:
        plotting.require_matplotlib()
    except UserError:
        return []
    return [Picture(plot_calibration(found), "Where hidden cells fell, and how often intervals contained them.")]


def _surprises(summary: Summary) -> Section:
    lines = [
        {
            "row": str(one.row),
            "column": one.column,
            "value": one.value,
            "expected": one.expected,
            "as odd by chance": f"{one.by_chance:.2g} cells",
        }
        for one in summary.surprises
    ]
    text = (
        "The cells that fit the rest of their rows least; rows are counted from 0. An unlikely cell need not be wrong: "
        "the last column says how many cells as odd would be expected in a table where nothing is wrong."
    )
    return Section("What is surprising", text if lines else "No cells were checked.", lines)


def _examples(model: TableModel, summary: Summary) -> Section:
    """How what is known of a column changes with the column that tells most about it."""
    tables: list[html.Markup] = []
    for name in worth_asking(summary.predicted, model.schema):
        near = summary.depends.about(name) if name in summary.depends.columns else []
        if not near or len(tables) == MOST_EXAMPLES:
            continue
        alone = model.given({})
        axis = axis_of(alone[name])
        rows = [("nothing", *_shown(alone[name], axis))]
        for text in _values(alone[near[0]]):
            try:
                answer = model.given({near[0]: text})[name]
            except UserError:
                continue
            rows.append((f"{near[0]} = {text}", *_shown(answer, axis)))
        tables.append(html.titled(name, html.table(("known", "", ""), rows)))
    if not tables:
        return Section("Examples of answers", "No column says enough about another.")
    return Section("Examples of answers", "The same model, asked with more evidence and with less.", parts=tables)


def _values(answer: Answer) -> list[str]:
    """A few values of a column, from low to high, or the likeliest."""
    if answer.variable.levels:
        likely = sorted(answer.probs().items(), key=lambda pair: -pair[1])[:MOST_LEVELS]
        return [value_text(level) for level, _ in likely]
    return list(dict.fromkeys(value_text(value) for value in answer.quantile(list(QUANTILES))))


def _shown(answer: Answer, axis: list[float]) -> tuple[Any, Any]:
    """A small picture of an answer, and its numbers."""
    if answer.variable.levels:
        masses = answer.probs()
        likely = sorted(masses.items(), key=lambda pair: -pair[1])[:SHOWN_LEVELS]
        said = ", ".join(f"{value_text(level)} {percent(probability)}" for level, probability in likely)
        return html.columns([float(mass) for mass in masses.values()]), said
    low, middle, high = (value_text(plain(value)) for value in answer.quantile([0.05, 0.5, 0.95]))
    return html.columns(heights(answer, axis)), f"{middle} (90% in {low} to {high})"
