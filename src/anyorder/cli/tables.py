"""What the commands do with a model of a table, and the options they take for it."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from anyorder.cli import show
from anyorder.cli.files import check_names, read_bytes, read_frame, write_bytes, write_frame
from anyorder.cli.options import (
    CompressedFile,
    Count,
    EscapeFormulas,
    Given,
    Json,
    Missing,
    Orders,
    Out,
    PlainOut,
    RuleTexts,
    Seed,
    TableFile,
    UnseenValues,
    at_least_one,
)
from anyorder.cli.parts import folder_for, in_parts, into_parts, print_parts, working_off
from anyorder.cli.paths import check_table, check_writable
from anyorder.errors import UserError
from anyorder.questions.facts import variable_facts
from anyorder.questions.grammar import parse_evidence, parse_names, write_set
from anyorder.support.boundary import field
from anyorder.support.plain import plain

if TYPE_CHECKING:
    import pandas as pd

    from anyorder.modalities.tables.model import TableModel

MODALITY, NOUN = "table", "tables"


def _share(value: float) -> float:
    if not 0 < value < 1:
        raise typer.BadParameter(f"must lie between 0 and 1, got {value:g}")
    return value


def fill(
    model: TableModel,
    file: TableFile,
    out: Out = None,
    draws: Annotated[
        int | None,
        typer.Option(callback=at_least_one, help="this many random fills, stacked; a first column 'draw' numbers them"),
    ] = None,
    seed: Seed = 0,
    intervals: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="also write an interval for every filled cell to this file"),
    ] = None,
    held_out: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="rows not used in training, on which the intervals are calibrated"),
    ] = None,
    level: Annotated[
        float, typer.Option(callback=_share, help="the share of the intervals that should contain the true value")
    ] = 0.9,
    missing: Missing = None,
    unseen: UnseenValues = "refuse",
    rule: RuleTexts = None,
    escape_formulas: EscapeFormulas = False,
) -> None:
    """The best guess for every unknown cell; with --draws, random fills of all unknown cells of a row together."""
    if (intervals is None) != (held_out is None):
        raise UserError(
            "--intervals CSV and --held-out TABLE (rows that the model has not seen) need each other: give both"
        )
    if in_parts(file, out):
        if intervals is not None:
            raise UserError("--intervals is for a table in one file; of parts, take the quantiles of --draws")
        with working_off("filling rows"):
            done = model.fill_files(
                file,
                folder_for(out),
                draws=draws,
                seed=seed,
                unseen=unseen,
                rules=rule or None,
                missing=missing or (),
                escape_formulas=escape_formulas,
            )
        print_parts("filled", done)
        return
    check_table(out)
    check_table(intervals)
    marks = (*model.schema.missing, *(missing or ()))
    frame = read_frame(file, marks)
    if intervals is not None and held_out is not None:
        adjusted = model.conformal(read_frame(held_out, marks), seed=seed, like=frame, unseen=unseen)
        found = _as_cells(adjusted.intervals(frame, level, unseen=unseen))
        write_frame(found, intervals, escape_formulas=escape_formulas, like=frame)
    if draws is None:
        with show.bar("filling rows"):
            filled = model.fill(frame, seed=seed, unseen=unseen, rules=rule or None)
        write_frame(filled, out, escape_formulas=escape_formulas, like=frame, schema=model.schema)
        return
    if "draw" in frame.columns:
        raise UserError("the table already has a column 'draw', and --draws adds one of that name: rename it first")
    import pandas as pd

    with show.bar("filling rows"):
        drawn = model.fill(frame, draws=draws, seed=seed, unseen=unseen, rules=rule or None)
    for index, one in enumerate(drawn):
        one.insert(0, "draw", index)
    together = pd.concat(drawn, ignore_index=True)
    write_frame(together, out, escape_formulas=escape_formulas, like=frame, schema=model.schema)


def _as_cells(intervals: pd.DataFrame) -> pd.DataFrame:
    """Ends as cells of a table: empty where an interval goes on without end, a set of levels as questions write it."""
    import pandas as pd

    endless = (-math.inf, math.inf, pd.Timestamp.min, pd.Timestamp.max)
    for end in ("low", "high"):
        intervals[end] = intervals[end].astype(object).map(lambda value: None if value in endless else value)
    intervals["levels"] = [
        write_set(map(str, levels)) if isinstance(levels, list) else None for levels in intervals["levels"]
    ]
    return intervals


def sample(
    model: TableModel,
    count: Count = 100,
    out: Out = None,
    seed: Seed = 0,
    given: Given = "",
    holes: Annotated[
        bool, typer.Option("--holes", help="leave cells empty as in the data (needs fit --missingness joint)")
    ] = False,
    rule: RuleTexts = None,
    escape_formulas: EscapeFormulas = False,
) -> None:
    """Full rows, in which what is given stays fixed."""
    evidence = parse_evidence(given)
    if into_parts(out):
        check_names(model, evidence)
        with working_off("drawing rows"):
            done = model.sample_files(
                count,
                folder_for(out),
                given=evidence,
                seed=seed,
                holes=holes,
                rules=rule or None,
                escape_formulas=escape_formulas,
            )
        print_parts("drew", done)
        return
    check_table(out)
    check_names(model, evidence)
    drawn = model.given(evidence, rules=rule or None).sample(count, seed=seed, holes=holes)
    write_frame(drawn, out, escape_formulas=escape_formulas, schema=model.schema)


def score(
    model: TableModel,
    file: TableFile,
    as_json: Json = False,
    orders: Orders = 2,  # an order and its opposite
    given: Annotated[
        str, typer.Option(metavar="COLUMNS", help="known columns: score the others given these", show_default=False)
    ] = "",
    per_row: Annotated[bool, typer.Option("--per-row", help="one number per row")] = False,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FOLDER", help="write the score of every row there, part by part"),
    ] = None,
    missing: Missing = None,
    unseen: UnseenValues = "refuse",
) -> None:
    """Log-likelihood of the known cells of each row, in nats: the mean and its standard error."""
    known = parse_names(given)
    check_names(model, known)
    if in_parts(file, out) or out is not None:
        _score_parts(
            model,
            file,
            out,
            as_json=as_json,
            orders=orders,
            known=known,
            missing=missing,
            unseen=unseen,
            per_row=per_row,
        )
        return
    frame = read_frame(file, (*model.schema.missing, *(missing or ())))
    if not len(frame):
        raise UserError(f"{str(file)!r} has no rows to score")
    with show.bar("scoring rows"):
        scores = model.log_prob(frame, given=known or None, orders=orders, unseen=unseen)
    rows = len(scores)
    error = float(scores.std(ddof=1)) / math.sqrt(rows) if rows > 1 else math.nan
    result = _scores(rows, known, float(scores.mean()), error)
    if as_json:
        show.print_json({**result, "log_prob": scores.tolist()} if per_row else result)
        return
    if per_row:
        scores.rename("log_prob").to_csv(sys.stdout, index_label="row")
    typer.echo(_in_words(result), err=per_row)


def _scores(rows: int, known: list[str], mean: float, error: float) -> dict[str, Any]:
    return {"rows": rows, "given": known, "mean": mean, "standard_error": error, "unit": "nats per row"}


def _in_words(result: Mapping[str, Any]) -> str:
    rows = result["rows"]
    spread = f" ± {result['standard_error']:.4f}" if rows > 1 else ""
    return f"{result['mean']:.4f}{spread} nats per row ({rows} row{'s' if rows > 1 else ''})"


def _score_parts(
    model: TableModel,
    file: Path,
    out: Path | None,
    *,
    as_json: bool,
    orders: int,
    known: list[str],
    missing: list[str] | None,
    unseen: Literal["refuse", "missing"],
    per_row: bool,
) -> None:
    if per_row:
        raise UserError("--per-row prints the scores of one file; those of parts are written with -o FOLDER")
    with working_off("scoring rows"):
        found = model.score_files(
            file,
            None if out is None else folder_for(out),
            given=known,
            orders=orders,
            unseen=unseen,
            missing=missing or (),
        )
    result = _scores(found.rows, known, found.mean, found.standard_error)
    if found.written is not None:
        result |= {"folder": found.written.folder, "parts": found.written.parts, "kept": found.written.kept}
    if as_json:
        show.print_json(result)
        return
    typer.echo(_in_words(result))
    if found.written is not None:
        print_parts("scored", found.written)


def info(model: TableModel, as_json: Json = False) -> None:
    """Its variables, and how it was trained."""
    variables = [variable_facts(variable) for variable in model.schema.variables]
    if as_json:
        show.print_json({"variables": variables, "card": model.card})
    else:
        show.print_variables(variables)
        typer.echo()
        show.print_facts(plain(model.card))


def compress(model: TableModel, file: TableFile, out: PlainOut, as_json: Json = False) -> None:
    """Every cell comes back, but not its formatting: 0.130 becomes 0.13."""
    check_writable(out)
    write_bytes(model.compress(read_frame(file, ())), out)
    show.print_compression(file, out, as_json=as_json)


def decompress(model: TableModel, file: CompressedFile, out: PlainOut, escape_formulas: EscapeFormulas = False) -> None:
    """A table with the same cells, as CSV (in the dialect that it was read in), CSV.gz or Parquet."""
    check_table(out)
    with field(str(file)):
        table = model.decompress(read_bytes(file))
    write_frame(table, out, escape_formulas=escape_formulas)
