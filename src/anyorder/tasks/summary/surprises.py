"""The oddest cells of a table, in words: row 17: rooms 45, expected 3 to 7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anyorder.model import AnyOrderModel
from anyorder.questions.batch import RowConditionals
from anyorder.questions.units import shown
from anyorder.tasks.anomalies import Anomaly, least_probable
from anyorder.tasks.summary.judged import JudgedCells
from anyorder.tasks.summary.written import percent, value_text
from anyorder.tasks.unseen_rows import Judge

LEVEL = 0.9


@dataclass(frozen=True)
class Surprise:
    """One cell that is improbable given the rest of its row.

    ``expected``: the central interval of 90 %, or the likeliest level. ``probability``: of all values that are no more
    probable. ``by_chance``: how many such cells would be expected among all that were looked at, were none wrong.
    """

    row: Any
    column: str
    value: str
    expected: str
    probability: float
    by_chance: float

    def __str__(self) -> str:
        return f"row {self.row}: {self.column} {self.value}, expected {self.expected}"


def surprises(
    model: AnyOrderModel, frame: pd.DataFrame, judges: Sequence[Judge], cells: JudgedCells, top: int
) -> list[Surprise]:
    """The oddest cells among those that were judged."""
    judged = cells.judged
    rows = np.flatnonzero(judged.any(axis=1))
    if not len(rows):
        return []
    whose = {row: part for part, own in judges for row in own.tolist()}
    looked_at = frame.iloc[rows]
    by_position = looked_at.set_axis(pd.RangeIndex(len(rows)))
    found = least_probable(model, by_position, cells.nats[rows], cells.tail[rows], top)
    count = int(judged.sum())
    return [
        Surprise(
            row=_plain(looked_at.index[one.row]),
            column=one.column,
            value=value_text(one.value),
            expected=_expected(whose[int(rows[one.row])], looked_at.iloc[[one.row]], one),
            probability=one.probability,
            by_chance=one.probability * count,
        )
        for one in found
    ]


def _expected(part: AnyOrderModel, row: pd.DataFrame, one: Anomaly) -> str:
    answer = RowConditionals(part, row.drop(columns=one.column))[one.column]
    if answer.variable.levels:
        masses = answer.probs().iloc[0]
        return f"{value_text(masses.idxmax())} ({percent(masses.max())})"
    ends = answer.interval(LEVEL).iloc[0]
    low, high = (shown(answer.variable, end) for end in (ends["low"], ends["high"]))
    return low if low == high else f"{low} to {high}"


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
