"""The summary of a table, within seconds whatever its size: some of its rows tell for all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from anyorder.model import AnyOrderModel
from anyorder.questions.conditional import Conditional
from anyorder.tasks.summary.dependence import MOST_COLUMNS, dependence, rows_for
from anyorder.tasks.summary.judged import judge_cells
from anyorder.tasks.summary.page import Summary
from anyorder.tasks.summary.predicted import predictions, ranked
from anyorder.tasks.summary.steps import Files, Given, next_steps
from anyorder.tasks.summary.surprises import surprises
from anyorder.tasks.unseen_rows import Judge

CELLS = 20_000  # that are judged
MOST_ROWS = 2_000
FEWEST_ROWS = 100
TOP = 3


def summarise(
    model: AnyOrderModel,
    frame: pd.DataFrame,
    judges: Sequence[Judge],
    *,
    files: Files | None = None,
    given: Given | None = None,
    unjudged: str = "",
    seed: int = 0,
) -> Summary:
    """What there is to know of the table first.

    ``judges``: parts of the model, and the rows of the frame that each of them has never learned from; where there are
    none, ``unjudged`` says why. ``files``: the names by which commands call the model and the table. ``given``: the
    model, asked with evidence, where it has rules.
    """
    schema = model.schema
    columns = [schema.names[index] for index in schema.answered if not schema.variables[index].indicates]
    some = taken(judges, int(np.clip(CELLS // len(columns), FEWEST_ROWS, MOST_ROWS)), seed)
    cells = judge_cells(model, frame, some)
    predicted = predictions(model.schema, cells)
    judged = sum(len(rows) for _, rows in some)
    shown = columns
    if len(columns) > MOST_COLUMNS:
        best = {one.column for one in ranked(predicted)[:MOST_COLUMNS]}
        shown = [name for name in columns if name in best]
    depends = dependence(model, frame, taken(some, rows_for(len(shown)), seed), shown)
    return Summary(
        rows=len(frame),
        judged=judged,
        unjudged=unjudged,
        predicted=tuple(predicted),
        depends=depends,
        surprises=tuple(surprises(model, frame, some, cells, TOP)),
        steps=tuple(
            next_steps(
                model,
                frame,
                predicted,
                depends,
                files or Files(),
                given or (lambda evidence: Conditional(model, dict(evidence))),
            )
        ),
    )


def taken(judges: Sequence[Judge], most: int, seed: int) -> list[Judge]:
    """The judges with at most so many of their rows in all, drawn at random."""
    total = sum(len(rows) for _, rows in judges)
    if total <= most:
        return list(judges)
    chosen = np.random.default_rng(seed).permutation(total) < most
    ends = np.cumsum([len(rows) for _, rows in judges])
    return [
        (part, rows[chosen[end - len(rows) : end]]) for (part, rows), end in zip(judges, ends.tolist(), strict=True)
    ]
