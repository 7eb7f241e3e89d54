"""From a frame to a fitted model of a table."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anyorder.data.files import frame_or_file
from anyorder.data.parts import PartedTable, in_parts
from anyorder.data.tables import prepare
from anyorder.errors import UserError
from anyorder.modalities.card import make_card, still_improving
from anyorder.modalities.fit import Run
from anyorder.modalities.tables.engines import Engine, fit_engine, help_engine
from anyorder.modalities.tables.fingerprint import fingerprint
from anyorder.modalities.tables.model import TableModel
from anyorder.modalities.tables.options import TableOptions
from anyorder.modalities.tables.race import Job
from anyorder.modalities.tables.sampled import SampledTable
from anyorder.model import AnyOrderModel
from anyorder.questions.as_fitted import library_of
from anyorder.questions.rules import Rules, parse_rules
from anyorder.support.interrupt import deferred_interrupt
from anyorder.support.threads import torch_threads
from anyorder.training.dependencies import with_dependencies
from anyorder.training.rows import encoded_rows
from anyorder.variables.context import read_context, with_context
from anyorder.variables.encoding import Encoding
from anyorder.variables.missingness import Missingness, check_missingness, with_indicators
from anyorder.variables.schema import Kind, Schema

LOG = logging.getLogger("anyorder")
FEWEST_ROWS = 4  # two to learn from and two to judge by


def fit(
    frame: Any,
    *,
    minutes: float | None = None,
    engine: Engine | None = None,
    seed: int = 0,
    kinds: Mapping[str, str] | None = None,
    missing: Sequence[str] = (),
    drop: Sequence[str] = (),
    bounds: Mapping[str, tuple[float | None, float | None]] | None = None,
    levels: Mapping[str, Sequence[object]] | None = None,
    context: Sequence[str] = (),
    missingness: Missingness = "ignore",
    rules: Sequence[str] = (),
    config: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    log: str | Path | None = None,
    tensorboard: str | Path | None = None,
    progress: bool | None = None,
    device: str = "auto",
) -> TableModel:
    """Fit one model to a table; afterwards ask it any conditional question.

    Parameters
    ----------
    frame
        pandas or polars, or the name of a file (CSV, Parquet, Excel; see :func:`anyorder.data.files.read_table`); a
        folder or a pattern of Parquet or CSV parts, of which a uniform sample is read (see ``schema_rows``).
        NaN, None and the marks in ``missing`` are unknown cells, in training too.
    minutes
        The most time to train (2 by default). Ctrl-C stops earlier and keeps the best model so far.
    engine
        ``"neural"``: a network; ``"trees"``: boosted trees, quick and strong on short tables; ``"auto"``, the default:
        both, and regressions beside them, blended by how well they do on held-out rows.
    seed
        Decides which rows are held out, the first weights and the order of training; the same seed, the same model.
    kinds
        Overrides of what a column is, such as ``{"zip": "categorical"}``.
    missing
        Marks that stand for an unknown cell, such as ``["?", "-999"]``.
    drop
        Columns to leave out.
    bounds
        The least and greatest value of a number column, such as ``{"age": (0, None)}``; ``(None, None)`` for none.
    levels
        The levels of a column from the least to the greatest, such as ``{"pain": ["none", "some", "much"]}``.
    context
        Columns that every question will know, such as the inputs of a regression: they are only ever evidence, and all
        that is learned is how the other columns depend on them and on each other. Nobody can ask for them.
    missingness
        ``"ignore"``: a missing cell is never asked and never evidence. ``"joint"``: which cells are missing is modelled
        too, by one variable ``missing(COLUMN)`` for each column with holes (see :mod:`anyorder.variables.missingness`).
    rules
        Rules between number columns, such as ``["end > start", "total = a + b"]``: kept with the model, so that draws,
        fills and answers obey them. Rows that break one are named, and learned from all the same.
    config
        Further options, as a TOML file holds them (see :class:`~anyorder.modalities.tables.options.TableOptions`).
    checkpoint, resume
        A folder that keeps the state of the run; with ``resume`` a killed run goes on from there.
    log, tensorboard
        A file to which the training curve is written, one JSON object a line; a folder for TensorBoard.
    progress
        How far it is, in a line: None for one on a terminal or in a notebook once two seconds have passed, True for one
        anywhere (where there is no terminal, a line now and then), False for none.
    device
        ``"auto"`` takes a graphics processor where there is one.

    Returns
    -------
    TableModel

    Examples
    --------
    >>> quick = {"training": {"steps": 20, "minutes": None}}
    >>> ao.fit(frame, engine="neural", config=quick, seed=0)["price"].mean() > 0
    True
    """
    run = Run.start(seed, device, checkpoint, resume=resume, log=log, tensorboard=tensorboard, progress=progress)
    check_missingness(missingness)
    known = read_context(context)
    options = TableOptions.read(config, minutes=minutes, engine=engine)
    sampled = None
    if isinstance(frame, PartedTable) or in_parts(frame):
        parts = frame if isinstance(frame, PartedTable) else PartedTable(frame, missing)
        sampled = SampledTable.of(parts, options, run.seed, run.folder, progress)
        if sampled.file is not None:  # its rows are many, and one network learns from all that are not held out
            options = replace(options, folds=1)
    frame = frame_or_file(frame, missing) if sampled is None else sampled.frame
    schema, table = prepare(frame, kinds=kinds, missing=missing, drop=drop, bounds=bounds, levels=levels)
    schema = with_context(schema, known, table) if known else schema
    if len(table) < FEWEST_ROWS:
        raise UserError(f"a table needs at least {FEWEST_ROWS} rows to learn from, got {len(table)}")
    stated = parse_rules(rules, schema)
    LOG.info(reading(schema, len(table) if sampled is None else sampled.table.rows))
    if progress and options.training.minutes is not None:
        most = f"{60 * options.training.minutes:.0f} seconds"
        LOG.info(f"this takes {most} at most; Ctrl-C ends it sooner and keeps the best model so far")
    if missingness == "joint":
        _, observed = Encoding.fit(table, schema, "standard").encode(table)
        schema = with_indicators(schema, observed)
    arguments: dict[str, Any] = {"kinds": dict(kinds or {}), "missing": list(missing), "drop": list(drop)}
    if bounds:
        arguments["bounds"] = {str(name): list(ends) for name, ends in bounds.items()}
    if levels:
        arguments["levels"] = {str(name): list(order) for name, order in levels.items()}
    if known:
        arguments["context"] = known
    if missingness != "ignore":
        arguments["missingness"] = missingness
    if stated:
        arguments["rules"] = [rules] if isinstance(rules, str) else list(rules)
    job = Job(run, options, schema, table, sampled)

    def made() -> tuple[AnyOrderModel, dict[str, Any]]:
        fitted = fit_engine(job)
        core, dependencies = fitted.core, list[dict[str, Any]]()
        if options.dependencies:
            with deferred_interrupt(), torch_threads(options.training.threads):
                core, dependencies = with_dependencies(core, encoded_rows(core.encoding, table), run.seed)
        return core, make_card(
            TableModel.modality,
            data={
                "rows": len(table),
                "columns": [str(name) for name in table.columns],
                **({"library": library} if (library := library_of(frame)) else {}),
                "fingerprint": fingerprint(table),
                **({} if sampled is None else sampled.facts()),
            },
            arguments={"seed": run.seed, **arguments},
            config=options.to_json(),
            training=fitted.training,
            scores=fitted.scores,
            chosen=fitted.chosen,
            **({"dependencies": dependencies} if dependencies else {}),
        )

    core, card = run.finished(made, lambda: help_engine(job))
    if stated and run.processes.leads:
        _warn_of_breaking(Rules(stated, core.encoding), table)
    # A budget in steps is somebody's who counts them; one in minutes is kept at the cost of the model.
    ended = options.training.steps is None and not card["training"]["interrupted"] and run.processes.leads
    if ended and (warning := still_improving(card)):
        warnings.warn(warning, UserWarning, stacklevel=2)
    return TableModel(core, card)


def reading(schema: Schema, rows: int) -> str:
    """What is going to be learned from, in one line."""
    words = {Kind.CATEGORICAL: "category", Kind.BOOLEAN: "category", Kind.DATETIME: "date", Kind.ORDINAL: "ordered"}
    counts = Counter(words.get(variable.kind, "number") for variable in schema.variables)
    plural = {"number": "numbers", "category": "categories", "date": "dates"}
    kinds = [
        f"{counts[word]} {word if counts[word] == 1 else plural.get(word, word)}"
        for word in ("number", "category", "date", "ordered")
        if counts[word]
    ]
    left_out = f"; {len(schema.context)} of them context" if schema.context else ""
    left_out += f"; {len(schema.left_out)} left out" if schema.left_out else ""
    columns = "1 column" if len(schema) == 1 else f"{len(schema)} columns"
    return f"reading {columns} of {rows:,} rows: {', '.join(kinds)}{left_out}"


def _warn_of_breaking(rules: Rules, table: pd.DataFrame) -> None:
    """Say which rows break a rule."""
    encoding = rules.encoding
    values, known = encoding.encode(table)
    units = np.stack([encoding.codecs[column].measure(values[:, column]) for column in rules.columns], axis=1)
    known = known[:, rules.columns]
    for rule, broken in zip(rules.rules, rules.broken(units, known), strict=True):
        rows = np.flatnonzero(broken)
        if len(rows):
            shown = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
            warnings.warn(
                f"the rule {str(rule)!r} is broken by {len(rows)} of {len(table)} rows: {shown}",
                UserWarning,
                stacklevel=3,
            )
