"""One column given all the others, by anyorder: one model of the whole table, asked for whichever column is wanted."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

import anyorder as ao
from anyorder.questions.batch import RowConditionals

from columns import LEVELS, Array, Question
from table_sets import TableSet


@dataclass(frozen=True)
class Variant:
    """A row of anyorder: its engine and its budget in minutes, None for the library's own."""

    engine: str | None = None
    minutes: float | None = None


VARIANTS = {
    "anyorder": Variant(),
    "anyorder 15 s": Variant(minutes=0.25),
    "anyorder neural": Variant("neural"),
    "anyorder trees": Variant("trees"),
}


def fitted(learn: pd.DataFrame, table: TableSet, method: str, minutes: float | None) -> ao.TableModel:
    """A model of the training rows; levels are declared, what kind of number a number is it finds out by itself."""
    variant = VARIANTS[method]
    return ao.fit(
        learn.reset_index(drop=True),
        minutes=variant.minutes if minutes is None else minutes,
        engine=variant.engine,
        kinds=dict.fromkeys(table.levels, "categorical"),
        seed=0,
    )


def answers(model: ao.TableModel, question: Question) -> Array:
    """anyorder's probabilities or quantiles for every test row; a level that training has not is left unknown."""
    # Also where few different numbers were taken for levels.
    asked = RowConditionals(model.core, question.test[question.inputs], "missing")[question.target]
    if question.levels:
        return asked.probs().reindex(columns=question.levels, fill_value=0.0).to_numpy(dtype=float)
    return asked.quantile(LEVELS).to_numpy(dtype=float)
