"""The summary of a table by the model that was fitted to it: which rows can judge which parts of it.

A model of folds has, for every row, parts that have never seen it. Where rows were dealt out to the folds, because the
table repeats itself, or held back once, the card's seed and options deal them out again. Rows that nobody has left out
judge nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from anyorder.data.frames import as_pandas
from anyorder.errors import UserError
from anyorder.modalities.tables.fingerprint import fingerprint
from anyorder.modalities.tables.folds import divide
from anyorder.modalities.tables.options import TableOptions
from anyorder.model.leave_out import folds, part_count, parts_alone
from anyorder.tasks.summary import Summary, summarise
from anyorder.tasks.summary.steps import Files
from anyorder.tasks.unseen_rows import Judge, unseen_parts

if TYPE_CHECKING:
    from anyorder.modalities.tables.tasks import TableTasks


def summary_of(model: TableTasks, frame: Any, *, model_file: str = "MODEL", table_file: str = "TABLE") -> Summary:
    """What there is to know of a table first, by a model that was fitted to it or to rows like these.

    Parameters
    ----------
    model
        The fitted model.
    frame
        The table it was fitted to, or another one; rows of another table are taken to be new to the model.
    model_file, table_file
        The names by which the commands that it proposes call the two.

    Returns
    -------
    Summary
        How well each column can be predicted from the others, which columns go together, the oddest cells, and three
        commands worth typing next. It prints as text and shows itself in a notebook.
    """
    table = as_pandas(frame)
    judges, unjudged = unlearned(model, table)
    return summarise(
        model.core,
        table,
        judges,
        files=Files(model_file, table_file),
        given=lambda evidence: model.given(dict(evidence)),
        unjudged=unjudged,
    )


def unlearned(model: TableTasks, table: pd.DataFrame) -> tuple[list[Judge], str]:
    """Parts of the model, with rows of the table that they have never learned from; why there are none, if so."""
    core, card = model.core, model.card
    if folds(core) > 1:
        return list(unseen_parts(core, table)), ""
    data, columns = card.get("data", {}), card.get("data", {}).get("columns", [])
    if not set(columns) <= set(table.columns) or fingerprint(table[columns]) != data.get("fingerprint"):
        return [(core, np.arange(len(table)))], ""
    if card.get("training", {}).get("interrupted"):
        return [], "training was interrupted before every row had been held out once"
    try:
        options = TableOptions.read(card["config"])
        divided = divide(options, core.schema, table[columns], card["arguments"]["seed"])
    except (UserError, KeyError, TypeError):
        return [], "the model does not record which rows it was trained on"
    parts, count = part_count(core), len(divided)
    if count > 1:
        if parts % count:
            return [], "the model does not record which rows it was trained on"
        return [
            (parts_alone(core, range(fold, parts, count), parts), divided.held_out[fold]) for fold in range(count)
        ], ""
    grown = card.get("training", {}).get("engine") == "trees" or "trees" in card.get("scores", {}).get("members", {})
    if grown and len(table) <= options.trees.refit_below:
        return [], "the table is so short that every row was used for training"
    return [(core, divided.held_out[0])], ""
