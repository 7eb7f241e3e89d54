"""Tables: from a frame to a fitted model, and the model's public face in the units of the data."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from anyorder.acquire import NextQuestion, next_question
from anyorder.anomaly import Anomaly, anomalies, surprise
from anyorder.calibration import Calibration, calibrate
from anyorder.card import make_card
from anyorder.cells import missing_cells
from anyorder.checkpoint import model_from_bytes, model_to_bytes, save_model
from anyorder.conditional import Conditional, log_probs
from anyorder.config import Config
from anyorder.conformal import Conformal, conformal
from anyorder.curves import curves_to
from anyorder.data.frames import as_pandas, like_input
from anyorder.data.tables import prepare
from anyorder.device import check_run, chosen_device, run_folder
from anyorder.diagnostics import Coherence, coherence
from anyorder.encoding import Encoding, Unseen
from anyorder.engines import Engine, Run, fit_engine
from anyorder.errors import UserError
from anyorder.estimate import Estimate
from anyorder.grammar import parse_question
from anyorder.impute import fill_draws, fill_point
from anyorder.information import mutual_information
from anyorder.measurements import DRAWS, Measurements
from anyorder.missingness import Missingness, check_missingness, with_indicators, with_own_indicators
from anyorder.model import AnyOrderModel
from anyorder.query import Query
from anyorder.questions import reply_to
from anyorder.schema import Schema

FEWEST_ROWS = 4  # two to learn from and two to judge by


class TableModel:
    """A fitted model of a table. Every method speaks in the columns, values and units of that table."""

    def __init__(self, core: AnyOrderModel, card: dict[str, Any]) -> None:
        self.core = core
        self.card = card

    def __repr__(self) -> str:
        return f"TableModel({len(self.schema)} variables: {', '.join(self.schema.names)})"

    def __getstate__(self) -> bytes:
        # Processes of a parallel cross-validation hand models to each other: as bytes of a model file, never as code.
        return model_to_bytes(self.core, self.card)

    def __setstate__(self, state: bytes) -> None:
        self.core, self.card = model_from_bytes(state)

    @property
    def schema(self) -> Schema:
        return self.core.schema

    def given(self, evidence: Mapping[str, Any] | None = None, /, **more: Any) -> Conditional:
        """p(... | evidence), lazily: nothing runs until a number is asked for."""
        return Conditional(self.core, {**(evidence or {}), **more})

    def asking(self, *names: str) -> Conditional:
        """p(names), no evidence."""
        return Conditional(self.core, asked=names)

    def __getitem__(self, name: str) -> Any:
        """The marginal distribution of one column."""
        return self.given()[name]

    def ask(self, question: str, *, draws: int | None = None, seed: int = 0) -> Any:
        """A typed question, such as ``"P(price > 30 | rooms=6)"``: an Estimate, an Answer, or a dict of them."""
        read = parse_question(question)
        return reply_to(read, self.schema, lambda e: self.given(e).using(draws=draws, seed=seed), question).only

    def prob(self, event: str, *, draws: int | None = None, seed: int = 0) -> Estimate:
        """The probability of an event, given evidence or not: ``prob("price > 30 | rooms=6, age=30..40")``."""
        read = parse_question(event)
        if len(read.values) < len(read.asked) or read.form not in ("", "P"):
            raise UserError(f"prob needs an event, such as 'price > 30 | rooms=6', got {event!r}")
        return self.given(read.evidence).using(draws=draws, seed=seed).prob(read.values)

    def mutual_information(
        self,
        one: str | Sequence[str],
        other: str | Sequence[str],
        given: Mapping[str, Any] | None = None,
        *,
        draws: int | None = None,
        seed: int = 0,
    ) -> Estimate:
        """I(one; other | given) in nats, between two variables or two sets of them."""
        names = [[part] if isinstance(part, str) else list(part) for part in (one, other)]
        return mutual_information(self.given(given).using(draws=draws, seed=seed), *names)

    def next_question(
        self,
        row: Any = None,
        about: str | Sequence[str] = (),
        *,
        candidates: Sequence[str] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        costs: Mapping[str, float] | None = None,
        budget: float | None = None,
        price: float = 0.0,
        least: float | None = None,
        reward: str = "information",
        at_once: int = 1,
        look_ahead: int = 1,
        draws: int = DRAWS,
        seed: int = 0,
    ) -> NextQuestion:
        """Which unknown of a case is worth asking for next, for the sake of the columns ``about``.

        ``row`` is what is known: a mapping, a Series or a frame of one row; unknown cells are candidates. Candidates
        are ranked by mutual information with the target given what is known, in nats, per unit of ``costs``;
        ``reward="variance"`` and ``"error"`` rank by the target's expected variance or error instead. ``groups`` names
        columns that are measured together. ``budget`` is what is left to spend; ``price`` says how many nats a unit of
        cost must bring at least, and ``least`` what any question must. ``at_once=q`` chooses q measurements whose
        answers come together; ``look_ahead=2`` counts the best question that may follow.
        """
        names = [about] if isinstance(about, str) else list(about)
        measurements = Measurements.of(self.schema, names, candidates=candidates, groups=groups, costs=costs)
        return next_question(
            self.given(known_cells(self.schema, row)),
            names,
            measurements,
            budget=budget,
            price=price,
            least=least,
            reward=reward,
            at_once=at_once,
            look_ahead=look_ahead,
            draws=draws,
            seed=seed,
        )

    def log_prob(
        self, frame: Any, given: Any = None, *, orders: int = 1, seed: int = 0, unseen: Unseen = "refuse"
    ) -> Any:
        """One number a row, in nats: log p of its filled cells, jointly; unknown cells are marginalised out.

        A model fitted with ``missingness="joint"`` scores the filled cells *and which cells are filled*, jointly: the
        indicators first, then the values given them. Columns that the frame does not have are left out altogether.
        ``given``: names of columns, or a frame or array of booleans, whose cells are evidence instead of being asked.
        ``orders`` > 1 averages the probability over that many orders (SFARM eq. 14).
        ``unseen="missing"`` takes a level that was never seen in training for an unknown cell.
        """
        table = as_pandas(frame)
        marks = self._given_mask(table, given, (len(table), len(self.schema)))
        # Columns of which no cell is asked: what is only given need not be a value that could be drawn.
        only_given = [
            name
            for name, mark in zip(self.schema.names, marks.T, strict=True)
            if name in table.columns and bool((mark | table[name].isna().to_numpy()).all())
        ]
        values, observed = self.core.encoding.encode(table, unseen, evidence=only_given)
        known = observed & with_own_indicators(self.schema, marks)
        query = Query(torch.as_tensor(known), torch.as_tensor(observed & ~known))
        nats = log_probs(self.core, torch.as_tensor(values), query, orders=orders, seed=seed)
        average = np.logaddexp.reduce(nats, axis=0) - np.log(orders)
        self._warn_outside(table, observed & ~known & np.isneginf(average)[:, None])
        scores = pd.DataFrame({"log_prob": average}, index=table.index)
        return like_input(scores, frame)["log_prob"]

    def sample(self, n: int = 1, seed: int = 0, *, holes: bool = False) -> pd.DataFrame:
        """``n`` rows from the joint distribution.

        ``holes=True`` gives rows as they would be recorded, missing cells included; it needs a model fitted with
        ``missingness="joint"``. The same seed gives the same rows with and without their holes.
        """
        return self.given().sample(n, seed=seed, holes=holes)

    def fill(self, frame: Any, draws: int | None = None, seed: int = 0, *, unseen: Unseen = "refuse") -> Any:
        """Unknown cells filled: by mean or most probable level, or by ``draws`` joint draws (a list of frames).

        Known cells come back as they are. With ``unseen="missing"`` so do levels that were never seen in training,
        which the model then does not hear of.
        """
        table = as_pandas(frame)
        if draws is None:
            return like_input(fill_point(self.core, table, unseen), frame)
        if draws < 1:
            raise UserError(f"draws must be 1 or more, got {draws}; leave it out for one best fill")
        return [like_input(filled, frame) for filled in fill_draws(self.core, table, draws, seed, unseen)]

    def calibration(self, frame: Any, seed: int = 0, *, repeats: int = 1) -> Calibration:
        """Hidden cells of rows not used in training against their conditionals: PIT, coverage, CRPS, log score."""
        return calibrate(self.core, as_pandas(frame), seed=seed, repeats=repeats)

    def conformal(
        self,
        frame: Any,
        seed: int = 0,
        *,
        given: Sequence[str] | None = None,
        like: Any = None,
        by_known: bool = False,
        unseen: Unseen = "refuse",
    ) -> Conformal:
        """Intervals and sets whose coverage holds however wrong the model is, from rows not used in training.

        ``given``: for evidence on just these columns. ``like``: for filling this table, whose holes the rows are given.
        """
        table = None if like is None else as_pandas(like)
        held_out = as_pandas(frame)
        return conformal(self.core, held_out, given=given, like=table, by_known=by_known, seed=seed, unseen=unseen)

    def surprise(self, frame: Any, *, unseen: Unseen = "refuse") -> Any:
        """-log p(cell | the rest of its row) for every known cell, in nats; a frame."""
        return like_input(surprise(self.core, as_pandas(frame), unseen), frame)

    def anomalies(self, frame: Any, top: int = 10, *, unseen: Unseen = "refuse") -> list[Anomaly]:
        """The cells least probable given the rest of their rows."""
        return anomalies(self.core, as_pandas(frame), top=top, unseen=unseen)

    def coherence(self, frame: Any, seed: int = 0) -> Coherence:
        """How much answers depend on the order, on these rows, and what averaging over orders gains."""
        return coherence(self.core, as_pandas(frame), seed=seed)

    def save(self, path: str | Path) -> None:
        """One ``.anyorder`` file, written atomically."""
        save_model(self.core, self.card, path)

    def _warn_outside(self, table: pd.DataFrame, ruled_out: np.ndarray) -> None:
        """A bound that was guessed from the training rows must not rule out later ones without a word."""
        for place, variable in enumerate(self.schema.variables):
            low, high = variable.bounds
            rows = np.flatnonzero(ruled_out[:, place])
            if (low is None and high is None) or not len(rows):
                continue
            numbers = pd.to_numeric(table[variable.name], errors="coerce").to_numpy(dtype=float)[rows]
            outside = rows[
                (numbers < (-np.inf if low is None else low)) | (numbers > (np.inf if high is None else high))
            ]
            if len(outside):
                warnings.warn(
                    f"column {variable.name!r}: {len(outside)} values, the first in row {outside[0]}, lie outside its "
                    f"bounds {variable.bounds} and have probability 0. If the bounds were guessed and such values can "
                    f"occur, fit with bounds={{{variable.name!r}: (None, None)}}",
                    UserWarning,
                    stacklevel=3,
                )

    def _given_mask(self, table: pd.DataFrame, given: Any, shape: tuple[int, ...]) -> np.ndarray:
        mask = np.zeros(shape, dtype=bool)
        if given is None:
            return mask
        if isinstance(given, str):
            given = [given]
        if isinstance(given, Sequence) and all(isinstance(name, str) for name in given):
            mask[:, [self.schema.index(name) for name in given]] = True
            return mask
        if isinstance(given, np.ndarray):
            if given.dtype != bool or given.shape != (len(table), table.shape[1]):
                raise UserError(
                    f"given must be booleans of shape {(len(table), table.shape[1])}, got {given.dtype} {given.shape}"
                )
            given = pd.DataFrame(given, columns=table.columns)
        marks = as_pandas(given)
        if len(marks) != len(table):
            raise UserError(f"given has {len(marks)} rows and the table {len(table)}; they must be the same rows")
        for name in marks.columns:
            if not pd.api.types.is_bool_dtype(marks[name].dtype):
                raise UserError(f"given must hold booleans; its column {name!r} is {marks[name].dtype}")
            if name in self.schema or name not in table.columns:  # the table's other columns were left out by fit
                mask[:, self.schema.index(name)] = marks[name].to_numpy()
        return mask


def known_cells(schema: Schema, row: Any) -> dict[str, Any]:
    """What is known of a case: the cells of a mapping, a Series or a frame of one row that are not missing.

    Columns that the model was fitted without are left out, and a mark that stood for a missing cell then does so here.
    """
    if row is None:
        return {}
    if isinstance(row, pd.Series | Mapping):
        cells = dict(row.items())
    else:
        frame = as_pandas(row)
        if len(frame) != 1:
            raise UserError(f"one case is expected: a mapping, or a frame of one row, got {len(frame)} rows")
        cells = dict(frame.iloc[0].items())
    ignored = {*schema.left_out, *schema.dropped}
    known = {str(name): cell for name, cell in cells.items() if name not in ignored}
    # A list or a range is evidence too, and not a cell that could be missing.
    return {
        name: cell
        for name, cell in known.items()
        if not pd.api.types.is_scalar(cell) or not missing_cells(pd.Series([cell]), schema.missing)[0]
    }


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
    missingness: Missingness = "ignore",
    config: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    log: str | Path | None = None,
    tensorboard: str | Path | None = None,
    progress: bool = False,
    device: str = "auto",
) -> TableModel:
    """Fit one model to a table; afterwards ask it any conditional question.

    Parameters
    ----------
    frame
        pandas or polars; NaN, None and the marks in ``missing`` are unknown cells, in training too.
    minutes
        The most time to train (2 by default). Ctrl-C stops earlier and keeps the best model so far.
    engine
        ``"neural"``: a network; ``"trees"``: boosted trees, quick and strong on short tables; ``"auto"``, the default:
        both, blended by how well they do on held-out rows.
    kinds
        Overrides of what a column is, such as ``{"zip": "categorical"}``.
    bounds
        The least and greatest value of a number column, such as ``{"age": (0, None)}``; ``(None, None)`` for none.
    missingness
        ``"ignore"``: a missing cell is never asked and never evidence. ``"joint"``: which cells are missing is modelled
        too, by one variable ``missing(COLUMN)`` for each column with holes (see :mod:`anyorder.missingness`).
    config
        Further options, as a TOML file holds them (see :class:`~anyorder.config.Config`).
    checkpoint, resume
        A folder that keeps the state of the run; with ``resume`` a killed run goes on from there.
    log, tensorboard
        A file to which the training curve is written, one JSON object a line; a folder for TensorBoard.
    """
    began = time.monotonic()
    check_run(seed, checkpoint, resume=resume)
    check_missingness(missingness)
    settings = Config.read(config, minutes=minutes, engine=engine)
    schema, table = prepare(frame, kinds=kinds, missing=missing, drop=drop, bounds=bounds)
    if len(table) < FEWEST_ROWS:
        raise UserError(f"a table needs at least {FEWEST_ROWS} rows to learn from, got {len(table)}")
    if missingness == "joint":
        _, observed = Encoding.fit(table, schema, "standard").encode(table)
        schema = with_indicators(schema, observed)
    curves = curves_to(log, tensorboard)
    folder = None if checkpoint is None else run_folder(Path(checkpoint))
    run = Run(settings, schema, table, seed, chosen_device(device), folder, curves, resume, progress, began)
    fitted = fit_engine(run)
    arguments = {"seed": seed, "kinds": dict(kinds or {}), "missing": list(missing), "drop": list(drop)}
    if bounds:
        arguments["bounds"] = {str(name): list(ends) for name, ends in bounds.items()}
    if missingness != "ignore":
        arguments["missingness"] = missingness
    return TableModel(fitted.core, make_card(fitted, settings, table, arguments))
