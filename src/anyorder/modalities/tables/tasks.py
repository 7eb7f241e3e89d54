"""What is done with many answers of a fitted model of a table: filling, predicting, checking, compressing.

Every method takes a frame of the user's own library and hands its rows on to :mod:`anyorder.tasks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from anyorder.data.files import frame_or_file
from anyorder.data.frames import as_pandas, like_input
from anyorder.errors import UserError
from anyorder.modalities.tables.fingerprint import warn_if_fitted_on
from anyorder.modalities.tables.questions import TableQuestions, column_names
from anyorder.questions.batch import RowConditionals
from anyorder.questions.case import known_cells
from anyorder.support.bars import told_by_rows
from anyorder.tasks.acquisition.measurements import DRAWS, Measurements
from anyorder.tasks.acquisition.next_question import NextQuestion, next_question
from anyorder.tasks.anomalies import Anomalies, anomalies, surprise
from anyorder.tasks.calibration import Calibration, calibrate
from anyorder.tasks.coherence import Coherence, coherence
from anyorder.tasks.compression import compress_table, decompress_table
from anyorder.tasks.conformal import Conformal, conformal
from anyorder.tasks.imputation import fill_draws, fill_point
from anyorder.variables.encoding import Unseen

if TYPE_CHECKING:
    from anyorder.tasks.summary import Summary


class TableTasks(TableQuestions):
    """The tasks of a :class:`~anyorder.modalities.tables.model.TableModel`, all of which are questions in the end."""

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

        Parameters
        ----------
        row
            What is known: a mapping, a Series or a frame of one row. Unknown cells are candidates.
        about
            The column, or columns, to learn about.
        candidates
            Ask for these only.
        groups
            Columns that are measured together, by the name of the measurement.
        costs
            What each measurement costs; gains are ranked per unit of cost.
        budget
            What is left to spend.
        price
            How many nats a unit of cost must bring at least.
        least
            How many nats any question must bring.
        reward
            ``"information"``: mutual information with the target given what is known. ``"variance"`` and ``"error"``
            rank by the target's expected variance or error instead.
        at_once
            Choose so many measurements whose answers come together.
        look_ahead
            2 counts the best question that may follow: slower, and worth it only where one answer decides what to ask
            next.
        draws, seed
            How many draws stand for a candidate's answers, and what decides them.

        Returns
        -------
        NextQuestion
            The candidates in order, with gains, standard errors and a reason to stop if there is one.

        Examples
        --------
        >>> model.next_question({"door": 1.0}, about="price", draws=64).best
        'rooms'
        """
        names = column_names("about", about)
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

    def fill(
        self,
        frame: Any,
        draws: int | None = None,
        seed: int = 0,
        *,
        unseen: Unseen = "refuse",
        rules: Sequence[str] | None = None,
        progress: bool | None = None,
    ) -> Any:
        """Fill the unknown cells of a table; known cells come back as they are.

        So do words that stand among numbers or dates and are no mark for unknown (31/02/2024, "call us").
        For analyses take ``draws``: a table filled by means understates every variance. Combine results of several
        draws with :func:`anyorder.pool`.

        Parameters
        ----------
        frame
            pandas or polars, with NaN or None where a cell is unknown, or the name of a file with such a table.
        draws
            So many tables filled at random, jointly, in place of one filled by mean or most probable level.
        seed
            Decides the draws.
        unseen
            With ``"missing"`` levels never seen in training come back as they are, and the model does not hear of them.
        rules
            Rules between number columns that every filled row obeys, as in :meth:`given
            <anyorder.modalities.tables.model.TableModel.given>`.
        progress
            How far it is, as for :func:`anyorder.fit`.

        Returns
        -------
        DataFrame, or a list of them with ``draws``

        Examples
        --------
        >>> holes = frame.head(3).assign(price=None)
        >>> bool(model.fill(holes)["price"].notna().all())
        True
        >>> len(model.fill(holes, draws=4, seed=0))
        4
        """
        frame = frame_or_file(frame, self.schema.missing)
        table = as_pandas(frame)
        with told_by_rows("filling rows", progress):
            if draws is None:
                return like_input(fill_point(self.core, table, unseen, self._rules(rules)), frame)
            filled = fill_draws(self.core, table, draws, seed, unseen, self._rules(rules))
        return [like_input(one, frame) for one in filled]

    def predict(self, frame: Any, column: str, *, unseen: Unseen = "refuse") -> Any:
        """The best value of one column in every row, given the known cells of the others.

        The mean of a number (on its lattice where it has one), the most probable level: what :meth:`fill` puts into an
        unknown cell. For quantiles, means and draws of every row, ask ``given(frame)[column]``.

        Parameters
        ----------
        frame
            pandas or polars; missing cells are unknown. The column itself, if it is there, is not looked at.
        column
            The column to predict.
        unseen
            As in :meth:`log_prob <anyorder.modalities.tables.model.TableModel.log_prob>`.

        Returns
        -------
        Series

        Examples
        --------
        >>> prices = model.predict(held_out, "price")
        >>> bool((prices - held_out["price"]).abs().mean() < held_out["price"].std())
        True
        """
        with told_by_rows("predicting rows"):
            return self._others(frame, column, unseen)[column].best()

    def predict_proba(self, frame: Any, column: str, *, unseen: Unseen = "refuse") -> Any:
        """The probability of every level of one column in every row, given the known cells of the others.

        Parameters
        ----------
        frame, column, unseen
            As in :meth:`predict`; the column must have levels or atoms.

        Returns
        -------
        DataFrame
            A line for each row, a column for each level.

        Examples
        --------
        >>> sorted(model.predict_proba(held_out, "river").columns)
        ['no', 'yes']
        """
        with told_by_rows("predicting rows"):
            return self._others(frame, column, unseen)[column].probs()

    def _others(self, frame: Any, column: str, unseen: Unseen) -> RowConditionals:
        """What the other columns say, row by row."""
        self.schema.asked(column)
        frame = frame_or_file(frame, self.schema.missing)
        table = as_pandas(frame)
        return RowConditionals(self.core, table.drop(columns=column, errors="ignore"), unseen, like=frame)

    def _rows(self, frame: Any) -> pd.DataFrame:
        """The rows in pandas, of a frame or of the file that is named."""
        return as_pandas(frame_or_file(frame, self.schema.missing))

    def calibration(self, frame: Any, seed: int = 0, *, repeats: int = 1, unseen: Unseen = "refuse") -> Calibration:
        """Check the model's honesty on rows not used in training: hide cells, and compare them with their conditionals.

        On rows that were used in training the result is too good to mean anything; if the whole table is the one that
        the model was fitted on, a warning says so.

        Parameters
        ----------
        frame
            Held-out rows.
        seed
            Decides which cells are hidden.
        repeats
            How often each row is used, with other cells hidden.
        unseen
            ``"missing"`` treats values never seen in training as unknown; otherwise they are refused.

        Returns
        -------
        Calibration
            PIT values, coverage, CRPS and log score; it can draw itself.

        Examples
        --------
        >>> share, error = model.calibration(held_out, seed=0).share(0.9)
        >>> 0.5 < share <= 1
        True
        """
        table = self._rows(frame)
        found = calibrate(self.core, table, seed=seed, repeats=repeats, unseen=unseen)
        warn_if_fitted_on(self.card, table)
        return found

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

        The guarantee is on average over rows like the held-out ones, not for each row. Where the model is calibrated
        its own quantiles are as good and cheaper.

        Parameters
        ----------
        frame
            Held-out rows, exchangeable with those to come.
        seed
            Decides which cells are hidden.
        given
            For evidence on just these columns.
        like
            For filling this table, whose pattern of holes the held-out rows are given.
        by_known
            Adjust by how many cells are known.
        unseen
            As in :meth:`log_prob <anyorder.modalities.tables.model.TableModel.log_prob>`.

        Returns
        -------
        Conformal

        Examples
        --------
        >>> adjusted = model.conformal(held_out, given=["rooms", "river", "door"])
        >>> low, high = adjusted.interval({"rooms": 6, "river": "no", "door": 0.5}, "price", level=0.8)
        >>> bool(low < high)
        True
        """
        table = None if like is None else self._rows(like)
        held_out = self._rows(frame)
        return conformal(self.core, held_out, given=given, like=table, by_known=by_known, seed=seed, unseen=unseen)

    def surprise(self, frame: Any, *, unseen: Unseen = "refuse") -> Any:
        """How surprising every known cell is given the rest of its row: -log p, in nats.

        Parameters
        ----------
        frame
            pandas or polars.
        unseen
            As in :meth:`log_prob <anyorder.modalities.tables.model.TableModel.log_prob>`.

        Returns
        -------
        DataFrame
            NaN where a cell is unknown.

        Examples
        --------
        >>> model.surprise(frame.head(3)).shape
        (3, 4)
        """
        frame = frame_or_file(frame, self.schema.missing)
        with told_by_rows("scoring cells"):
            return like_input(surprise(self.core, as_pandas(frame), unseen), frame)

    def anomalies(self, frame: Any, top: int = 10, *, unseen: Unseen = "refuse") -> Anomalies:
        """The cells least probable given the rest of their rows: typing errors, broken sensors, rare cases.

        An unlikely cell is not a wrong one; look at what the model expected instead.

        Parameters
        ----------
        frame
            pandas or polars.
        top
            How many.
        unseen
            As in :meth:`log_prob <anyorder.modalities.tables.model.TableModel.log_prob>`.

        Returns
        -------
        Anomalies
            A list of :class:`~anyorder.tasks.anomalies.Anomaly`: row, column, value, what was expected and how
            surprising the value is. Its ``to_frame`` makes a DataFrame of it.

        Examples
        --------
        >>> odd = held_out.copy()
        >>> odd.loc[odd.index[7], "price"] = 900.0
        >>> model.anomalies(odd, top=1)[0].column
        'price'
        """
        with told_by_rows("scoring cells"):
            return anomalies(self.core, self._rows(frame), top=top, unseen=unseen)

    def summary(self, frame: Any) -> Summary:
        """What there is to know of a table first: what can be predicted from what, what is odd, what to ask next.

        Every number is about rows that the part of the model that is asked has never learned from. Rows of another
        table than the one the model was fitted to are taken to be new.

        Parameters
        ----------
        frame
            The table that the model was fitted to, or another one with its columns.

        Returns
        -------
        Summary
            It prints as text, shows itself in a notebook, and has ``predicted``, ``depends``, ``surprises`` and
            ``steps``.

        Examples
        --------
        >>> found = model.summary(held_out)
        >>> sorted(one.column for one in found.predicted)
        ['door', 'price', 'river', 'rooms']
        >>> len(found.steps)
        3
        """
        from anyorder.modalities.tables.summary import summary_of  # it divides rows as a fit does, which makes models

        return summary_of(self, frame)

    def coherence(self, frame: Any, seed: int = 0, *, unseen: Unseen = "refuse") -> Coherence:
        """How much answers depend on the order in which variables are asked for, and what averaging over orders gains.

        A diagnostic: nothing forces a trained network to give the same joint density along every order.

        Parameters
        ----------
        frame
            Held-out rows.
        seed
            Decides the orders.
        unseen
            As in :meth:`calibration`.

        Returns
        -------
        Coherence

        Examples
        --------
        >>> model.coherence(held_out, seed=0).spread >= 0
        True
        """
        return coherence(self.core, self._rows(frame), seed=seed, unseen=unseen)

    def compress(self, data: Any, **options: Any) -> bytes:
        """The rows of a frame in as few bytes as the model can, without loss.

        Pays where columns have few distinct values; nearly distinct numbers are mostly dictionary. Needs the extra
        ``compress``. The same model, on the same kind of machine, gives the rows back.

        Parameters
        ----------
        data
            pandas or polars; its index is left out.

        Returns
        -------
        bytes

        Examples
        --------
        >>> model.decompress(model.compress(frame.head(20))).equals(frame.head(20))
        True
        """
        if options.pop("calls", None) is not None:
            raise UserError("calls= is only for models of texts; leave it out")
        return compress_table(self.core, frame_or_file(data))

    def decompress(self, data: bytes) -> pd.DataFrame:
        """The rows that :meth:`compress` compressed with this model.

        Parameters
        ----------
        data
            What :meth:`compress` returned.

        Returns
        -------
        DataFrame

        Examples
        --------
        >>> len(model.decompress(model.compress(frame.head(5))))
        5
        """
        return decompress_table(self.core, data)
