"""How well each column can be predicted from all the others, in words: by how much errors are smaller than by guessing.

Of levels the errors counted are wrong answers, and whoever guesses always says the most frequent one; of numbers they
are distances, and whoever guesses always says the median. Where one level is so frequent that it is always the best
answer, probabilities can still tell: there the squared error of all probabilities counts, if less of it is left. A gain
that chance could have made is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anyorder.tasks.summary.judged import JudgedCells
from anyorder.tasks.summary.written import amount, level_text, percent
from anyorder.variables.schema import Kind, Schema, Variable

WORDS = ((0.85, "almost exactly"), (0.35, "well"), (0.05, "somewhat"))
HARDLY, TOO_FEW, ONE_VALUE = "hardly", "too few rows to say", "one value only"
FEWEST = 20  # cells of a column, to say anything of it
SURE = 2.0  # standard errors by which a gain must differ from none


@dataclass(frozen=True)
class Predicted:
    """One column, predicted from all the others.

    ``error`` and ``guess_error``: shares of wrong answers for levels (``levels`` is then true), mean distances in the
    units of the column otherwise, days for times. ``smaller``: by what share errors are smaller than by guessing.
    """

    column: str
    levels: bool
    cells: int
    error: float
    guess_error: float
    smaller: float
    word: str
    said: str

    @property
    def tells(self) -> bool:
        """Whether anything is known of the column from the others."""
        return any(self.word == word for _, word in WORDS)


def predictions(schema: Schema, cells: JudgedCells) -> list[Predicted]:
    """What is said of every column that can be asked for, in the order of the table."""
    return [
        _predicted(variable, cells, index)
        for index, variable in enumerate(schema.variables)
        if not variable.indicates and not variable.context
    ]


def _predicted(variable: Variable, cells: JudgedCells, index: int) -> Predicted:
    judged = cells.judged[:, index]
    cell, guess = cells.cell[judged, index], cells.guess[judged, index]
    levels, count = bool(variable.levels), int(judged.sum())
    if not count:
        return Predicted(variable.name, levels, 0, math.nan, math.nan, 0.0, TOO_FEW, "")
    if levels:
        shares = np.bincount(cell.astype(np.int64), minlength=len(variable.levels)) / count
        usual = int(shares.argmax())
        wrong, guessed = (cell != guess).astype(np.float64), (cell != usual).astype(np.float64)
        # Of whoever always gives each level its share.
        squares = (shares**2).sum() + 1 - 2 * shares[cell.astype(np.int64)]
        measures = [(wrong, guessed), (cells.square[judged, index], squares)]
    else:
        wrong, guessed = np.abs(cell - guess), np.abs(cell - np.median(cell))
        measures = [(wrong, guessed)]
    error, by_guessing = float(wrong.mean()), float(guessed.mean())
    if not (np.ptp(cell) > 0):
        return Predicted(variable.name, levels, count, error, by_guessing, 0.0, ONE_VALUE, "")
    by_measure = [_smaller(*measure) for measure in measures]
    smaller = max(by_measure)
    word = next((word for least, word in WORDS if smaller >= least), HARDLY) if count >= FEWEST else TOO_FEW
    if levels:
        always = level_text(variable, usual)
        said = f"right in {percent(1 - error)} (always guessing {always!r}: {percent(1 - by_guessing)})"
        if word != HARDLY and by_measure[0] < WORDS[-1][0]:
            said += ", but its probabilities say more"
    else:
        said = f"off by {amount(variable, error)} on average (guessing: {amount(variable, by_guessing)})"
    return Predicted(variable.name, levels, count, error, by_guessing, smaller, word, said)


def _smaller(errors: Float[np.ndarray, " cells"], guessed: Float[np.ndarray, " cells"]) -> float:
    """By what share errors are smaller than by guessing; 0 where chance alone could have made them so."""
    gain = guessed - errors
    sure = len(gain) > 1 and gain.mean() > SURE * gain.std(ddof=1) / math.sqrt(len(gain))
    return float(gain.mean() / guessed.mean()) if sure and guessed.mean() > 0 else 0.0


def ranked(found: Sequence[Predicted]) -> list[Predicted]:
    """The columns, those first of which most is known."""
    return sorted(found, key=lambda one: (one.word == TOO_FEW, -one.smaller))


def worth_asking(found: Sequence[Predicted], schema: Schema) -> list[str]:
    """The columns of which anything is known, those first that are most worth asking for: much is known, but not all.

    A column that another fixes is known before it is asked for, and a time is rarely what one wants to know.
    """
    told = [one for one in ranked(found) if one.tells]
    told.sort(key=lambda one: (one.word == WORDS[0][1], schema[one.column].kind is Kind.DATETIME))
    return [one.column for one in told]
