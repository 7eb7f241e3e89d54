"""Tables: from a frame to a fitted model, and the model's public face in the units of the data."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch

from anyorder.data.frames import as_pandas, like_input
from anyorder.errors import UserError
from anyorder.modalities.face import FittedModel
from anyorder.model.likelihood import log_probs
from anyorder.query import Query
from anyorder.questions.ask import reply_to
from anyorder.questions.conditional import Conditional
from anyorder.questions.estimate import Estimate
from anyorder.questions.grammar import parse_question
from anyorder.questions.information import mutual_information
from anyorder.tasks.acquisition.measurements import DRAWS, Measurements
from anyorder.tasks.acquisition.next_question import NextQuestion, next_question
from anyorder.tasks.anomalies import Anomaly, anomalies, surprise
from anyorder.tasks.calibration import Calibration, calibrate
from anyorder.tasks.coherence import Coherence, coherence
from anyorder.tasks.compression import compress_table, decompress_table
from anyorder.tasks.conformal import Conformal, conformal
from anyorder.tasks.imputation import fill_draws, fill_point
from anyorder.variables.cells import missing_cells
from anyorder.variables.encoding import Unseen
from anyorder.variables.missingness import with_own_indicators
from anyorder.variables.schema import Schema


class TableModel(FittedModel):
    """A fitted model of a table. Every method speaks in the columns, values and units of that table."""

    modality = "table"
    noun = "a table"

    def __repr__(self) -> str:
        return f"TableModel({len(self.schema)} variables: {', '.join(self.schema.names)})"

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

    def compress(self, data: Any, **options: Any) -> bytes:
        """The rows of a frame in as few bytes as the model can."""
        if options.pop("calls", None) is not None:
            raise UserError("calls are for texts; a row is coded one cell after the other")
        return compress_table(self.core, data)

    def decompress(self, data: bytes) -> pd.DataFrame:
        """The rows that :meth:`compress` compressed with this model."""
        return decompress_table(self.core, data)

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
