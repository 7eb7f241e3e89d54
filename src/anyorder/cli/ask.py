"""``anyorder ask``: the distribution of some variables given others, the probability of an event, and the like."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyorder.cli import show
from anyorder.cli.files import load_table_model, write_bytes
from anyorder.cli.options import EscapeFormulas, Given, Json, ModelFile, RuleTexts, Seed
from anyorder.cli.paths import check_figure, check_writable
from anyorder.errors import UserError
from anyorder.questions.ask import Reply, reply_to
from anyorder.questions.facts import UNORDERED, estimate_facts, reply_facts
from anyorder.questions.grammar import Question, parse_evidence, parse_question, write_question
from anyorder.support.csv_rows import csv_rows, without_formula
from anyorder.support.plain import plain

if TYPE_CHECKING:
    from anyorder.modalities.tables.model import TableModel
    from anyorder.questions.answer import Answer

LISTED = (0.05, 0.5, 0.95)
"""The quantiles in the answers to ``--queries``."""

COLUMNS = ("question", "what", "value", "standard_error", "method", "doubt", "error")


def ask(
    model: ModelFile,
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="QUESTION",
            help="asked | evidence, e.g. 'price, tax | rooms=6, age=30..40' or 'P(price > 30 | rooms=6)'; "
            "without one, a prompt opens",
            show_default=False,
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="many questions: one per line, or a CSV with a column 'question'"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", metavar="CSV", help="where the answers to --queries go; standard output if not given"
        ),
    ] = None,
    given: Given = "",
    plot: Annotated[Path | None, typer.Option(metavar="PICTURE", help="draw the answers (.png, .svg, .pdf)")] = None,
    draws: Annotated[int | None, typer.Option(min=2, help="draws for an answer with ranges (default: 2000)")] = None,
    seed: Seed = 0,
    rule: RuleTexts = None,
    together: Annotated[
        bool, typer.Option("--most-probable", help="the values of the asked variables that are most probable together")
    ] = False,
    as_json: Json = False,
    escape_formulas: EscapeFormulas = False,
) -> None:
    """Ask about columns given others: a distribution, how likely a value is (price=22), the probability of a range.

    Without a question a prompt opens, where names and values can be completed; if the input is not a terminal, each of
    its lines is a question.
    """
    if question is not None and queries is not None:
        raise UserError("ask takes one question, or a file of them with --queries FILE, not both")
    if together and (question is None or plot is not None):
        raise UserError("--most-probable answers one question, with neither --queries nor --plot")
    known = parse_evidence(given)
    if question is None:
        if plot is not None:
            raise UserError("--plot draws the answer to one question, but no question was given")
        if queries is None and sys.stdin.isatty():
            _converse(load_table_model(model), known, draws, seed, rule, as_json=as_json)
            return
        check_writable(out)
        texts = read_questions(queries or Path("-"))
        loaded = load_table_model(model)
        rows = [row for text in texts for row in answer_rows(loaded, text, draws, seed, rule, known)]
        _write_rows(rows, out, as_json, escape_formulas)
        return
    if out is not None:
        raise UserError("-o belongs to --queries FILE; one answer goes to standard output")
    read = _with(parse_question(question), known)
    check_figure(plot)
    loaded = load_table_model(model)
    if together:
        _print_completion(loaded, read, rule, as_json=as_json)
        return
    result = reply_facts(_reply(loaded, read, draws, seed, question, rule), read)
    if plot is not None:
        from anyorder.questions import plots
        from anyorder.support import plotting

        plotting.save_figure(
            plots.plot_answers(loaded.given(read.evidence, **({"rules": rule} if rule else {})), list(read.asked)), plot
        )
        result["plot"] = str(plot)
    (show.print_json if as_json else show.print_answers)(result)


def _converse(
    model: TableModel, known: dict[str, str], draws: int | None, seed: int, rule: list[str] | None, *, as_json: bool
) -> None:
    """Open the prompt."""
    from anyorder.cli.prompt import Prompt

    def answer(text: str, read: Question) -> None:
        read = _with(read, known)
        (show.print_json if as_json else show.print_answers)(
            reply_facts(_reply(model, read, draws, seed, text, rule), read)
        )

    Prompt(model, answer).run()


def _with(question: Question, known: dict[str, str]) -> Question:
    """The question with the evidence of ``--given``, where it does not speak of the same column itself."""
    return replace(question, evidence={**known, **question.evidence}) if known else question


def _print_completion(model: TableModel, question: Question, rules: list[str] | None, *, as_json: bool) -> None:
    if question.form or question.values:
        raise UserError("--most-probable expects column names without values, as in 'price, river | rooms=6'")
    found = model.given(question.evidence, rules=rules or []).most_probable(*question.asked)
    facts = {"question": write_question(question), "row": plain(found.row), "log_prob": found.log_prob}
    show.print_result(facts | {"exact": found.exact}, as_json=as_json)


def _reply(
    model: TableModel, question: Question, draws: int | None, seed: int, text: str, rules: list[str] | None = None
) -> Reply:
    def given(evidence: Any) -> Any:
        conditional = model.given(evidence, rules=rules or None)
        return conditional.using(draws=draws, seed=seed) if draws is not None or seed else conditional

    return reply_to(question, model.schema, given, text)


def read_questions(path: Path) -> list[str]:
    """The questions of a file: its column ``question`` if it is a CSV with one, else its lines."""
    from anyorder.data.files import decoded

    if str(path) == "-":
        content = decoded(sys.stdin.buffer.read(), "standard input")
    elif os.path.isfile(path):
        content = decoded(path.read_bytes(), repr(str(path)))
    else:
        raise UserError(f"no such file: {str(path)!r}; expected a file of questions")
    lines = [line.strip() for line in content.splitlines()]
    try:
        header = [name.strip() for name in next(csv_rows(lines[:1]), (0, []))[1]]
        # A row may go over several lines.
        cells = _column(path, content, header.index("question")) if "question" in header else None
    except csv.Error as error:
        raise UserError(f"{str(path)!r} cannot be read as CSV: {error}") from error
    if cells is not None:
        questions = cells
    elif path.suffix.lower() in (".csv", ".tsv"):
        raise UserError(
            f"{str(path)!r}, row 1: no column 'question' among {', '.join(map(repr, header)) or 'its columns'}; "
            "give one column that name, separate columns by commas, or put one question on each line of a .txt file"
        )
    else:
        questions = [line for line in lines if line and not line.startswith("#")]
    if not questions:
        raise UserError(f"{str(path)!r} holds no questions: write one per line, or a CSV with a column 'question'")
    return questions


def _column(path: Path, content: str, column: int) -> list[str]:
    """The cells of one column; an empty one is a mistake, unless nothing follows it."""
    rows = list(csv_rows(io.StringIO(content, newline=None)))[1:]  # lines may end in a lone \r
    while rows and not any(cell.strip() for cell in rows[-1][1]):
        rows.pop()
    for line, row in rows:
        if len(row) <= column or not row[column].strip():
            what = "is blank" if not any(cell.strip() for cell in row) else "has nothing in the column 'question'"
            raise UserError(f"{str(path)!r}, row {line} {what}: write a question there or remove the row")
    return [row[column].strip() for _, row in rows]


def answer_rows(
    model: TableModel,
    text: str,
    draws: int | None,
    seed: int,
    rules: list[str] | None = None,
    known: dict[str, str] | None = None,
) -> list[dict[str, Any]]:
    """The numbers that answer one question, one row each; a wrong question gives one row that says why."""
    try:
        reply = _reply(model, _with(parse_question(text), known or {}), draws, seed, text, rules)
        found: list[tuple[str, Any]] = [(name.replace("_", " "), number) for name, number in reply.numbers.items()]
        for what in ("mean", "median", "mode"):
            found += [(f"{what} of {name}", value) for name, value in getattr(reply, f"{what}s").items()]
        for name, answer in reply.answers.items():
            found += _numbers_of(name, answer)
    except UserError as error:
        return [{"question": text, "error": " ".join(str(error).split())}]
    return [{"question": text, "what": what, **estimate_facts(number)} for what, number in found]


def _numbers_of(name: str, answer: Answer) -> Iterator[tuple[str, Any]]:
    """The numbers that stand for a distribution: probabilities of levels, and the mean and quantiles of numbers."""
    if answer.variable.levels or answer.kind == "spiked":
        for level, probability in answer.probs().items():
            yield f"P({name}={level})", probability
    if answer.kind in UNORDERED:
        return
    if answer.kind != "ordinal":
        yield f"mean of {name}", answer.mean()
    for level in LISTED:
        what = "median" if level == 0.5 else f"{level:.0%} quantile"
        yield f"{what} of {name}", answer.quantile(level)  # one by one, since only one has an error


def _write_rows(rows: list[dict[str, Any]], out: Path | None, as_json: bool, escape_formulas: bool) -> None:
    text = io.StringIO()
    if as_json:
        text.write(show.as_json({"answers": rows}))
    else:
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        written = without_formula if escape_formulas else str
        writer.writerows(
            {name: written(cell) if isinstance(cell, str) else cell for name, cell in row.items()} for row in rows
        )
    if out is None:
        sys.stdout.write(text.getvalue())
    else:
        write_bytes(text.getvalue().encode("utf-8"), out)
    wrong = sum("error" in row for row in rows)
    if wrong:
        show.note(f"{wrong} of the questions could not be answered: see the column 'error'")
