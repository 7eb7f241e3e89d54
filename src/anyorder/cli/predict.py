"""``anyorder predict``: one column of every row, given the known cells of the others."""

from __future__ import annotations

from typing import Annotated

import typer

from anyorder.cli import show
from anyorder.cli.files import load_table_model, read_frame, write_frame
from anyorder.cli.options import EscapeFormulas, Missing, ModelFile, Out, TableFile, UnseenValues
from anyorder.cli.paths import check_table
from anyorder.errors import UserError


def predict(
    model: ModelFile,
    table: TableFile,
    column: Annotated[str, typer.Option("--column", metavar="COLUMN", help="the column to predict")],
    quantiles: Annotated[
        str, typer.Option(metavar="LEVELS", help="quantiles as well, such as 0.05,0.5,0.95", show_default=False)
    ] = "",
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="the probability of each level as well")
    ] = False,
    out: Out = None,
    missing: Missing = None,
    unseen: UnseenValues = "refuse",
    escape_formulas: EscapeFormulas = False,
) -> None:
    """Predict one column of every row, given the known cells of the others; its own cells, if any, are ignored.

    Writes a line for each row: the best value (the mean of a number, the most probable level), then what else is asked.
    """
    levels = _levels(quantiles)
    check_table(out)
    loaded = load_table_model(model)
    loaded.schema.asked(column)
    frame = read_frame(table, (*loaded.schema.missing, *(missing or ())))
    from anyorder.questions.batch import RowConditionals

    rows = RowConditionals(loaded.core, frame.drop(columns=column, errors="ignore"), unseen)
    with show.bar("predicting rows"):
        answers = rows[column]
    found = answers.best().to_frame()
    if levels:
        for level, values in answers.quantile(levels).items():
            found[f"{column} {level:g}"] = values
    if probabilities:
        for level, values in answers.probs().items():
            found[f"P({column}={level})"] = values
    write_frame(found, out, escape_formulas=escape_formulas, like=frame)


def _levels(text: str) -> list[float]:
    """Levels as they are typed: ``0.05,0.95``."""
    try:
        return [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise UserError(f"--quantiles takes numbers between 0 and 1, such as 0.05,0.95; got {text!r}") from None
