"""Tables: the public face of a fitted model, in the columns and units of the data."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pandas as pd
import torch

from anyorder.data.frames import as_pandas, is_frame, like_input
from anyorder.errors import UserError
from anyorder.modalities.card import still_improving
from anyorder.modalities.face import FittedModel
from anyorder.model.likelihood import log_prob, usual_orders
from anyorder.query import Query
from anyorder.questions.ask import reply_to
from anyorder.questions.batch import RowConditionals
from anyorder.questions.conditional import Conditional
from anyorder.questions.estimate import Estimate
from anyorder.questions.grammar import parse_question
from anyorder.questions.information import mutual_information
from anyorder.questions.most_probable import MostProbable
from anyorder.questions.rules import Rules, parse_rules
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

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame


class TableModel(FittedModel):
    """A fitted model of a table. Every method speaks in the columns, values and units of that table.

    Made by :func:`anyorder.fit` or :func:`anyorder.load`. A question never changes a model, so many threads may ask
    one.
    """

    modality = "table"
    noun = "a table"

    def __repr__(self) -> str:
        state = still_improving(self.card)
        return f"TableModel({len(self.schema)} variables: {', '.join(self.schema.names)}{state and '; ' + state})"

    @overload
    def given(
        self, evidence: Mapping[str, Any] | None = None, /, *, rules: Sequence[str] | None = None, **more: Any
    ) -> Conditional: ...

    @overload
    def given(self, evidence: IntoDataFrame, /) -> RowConditionals: ...

    def given(
        self, evidence: Any = None, /, *, rules: Sequence[str] | None = None, **more: Any
    ) -> Conditional | RowConditionals:
        """Condition on what is known: p(... | evidence). Lazy: nothing runs until a number is asked for.

        Not for the effect of setting a column: ``given(x=1)`` describes rows in which x = 1 was seen.

        Parameters
        ----------
        evidence, **more
            What is known, by column: a value, a range (``Between(30, 40)`` or ``"30..40"``), a set (``OneOf("a",
            "b")``), or ``MISSING``. A mapping is needed only for names that are no Python identifiers, and for a column
            that is called "rules". Or a frame (pandas, polars), each row of which is evidence of its own and a missing
            cell unknown; its rows are answered without rules.
        rules
            Rules between number columns that hold, such as ``["price > rooms"]``: linear comparisons and equations.
            None for those that the model was fitted with, an empty list for none.

        Returns
        -------
        Conditional, or RowConditionals for a frame
            Index it by a column for one distribution (one for each row), or ask it for joint draws and probabilities.

        Examples
        --------
        >>> price = model.given(rooms=6, river="yes")["price"]
        >>> low, high = price.quantile([0.05, 0.95])
        >>> low < price.mean() < high
        True
        >>> model.given(held_out[["rooms", "river"]])["price"].interval(0.9).columns.tolist()
        ['low', 'high']
        """
        if is_frame(evidence):
            if more:
                raise UserError("evidence is a frame or keywords, not both; put what all rows share into a column")
            if rules:
                raise UserError("rules are for one question at a time; for the rows of a frame use fill(rules=...)")
            return RowConditionals(self.core, evidence)
        return Conditional(self.core, {**(evidence or {}), **more}, rules=self._rules(rules))

    def asking(self, *names: str) -> Conditional:
        """Ask about some columns without evidence: p(names). The other columns are marginalised out.

        Not for columns that depend on something you know: start with :meth:`given`.

        Parameters
        ----------
        *names
            The columns to ask about.

        Returns
        -------
        Conditional

        Examples
        --------
        >>> model.asking("rooms", "price").sample(3, seed=0).columns.tolist()
        ['rooms', 'price']
        """
        return Conditional(self.core, asked=names, rules=self._rules(None))

    def __getitem__(self, name: str) -> Any:
        """The marginal distribution of one column.

        Not for plain statistics of the data, such as the mean of a column without holes: pandas has them exactly.

        Parameters
        ----------
        name
            The column.

        Returns
        -------
        Answer

        Examples
        --------
        >>> sorted(model["river"].probs())
        ['no', 'yes']
        """
        return self.given()[name]

    def ask(self, question: str, *, draws: int | None = None, seed: int = 0) -> Any:
        """Answer a typed question, in the words of the command line.

        For questions that come as text. In a program, :meth:`given` says the same and is checked by your editor.

        Parameters
        ----------
        question
            Such as ``"price | rooms=6"``, ``"P(price > 30 | rooms=6)"``, ``"E[price | river=yes]"``, ``"H(price)"`` or
            ``"I(price; rooms)"``.
        draws
            How many draws stand for ranges among the evidence.
        seed
            Decides those draws.

        Returns
        -------
        Estimate, Answer or dict
            A number with its standard error, a distribution, or several of them by name.

        Examples
        --------
        >>> 0 <= model.ask("P(price > 30 | rooms=6)") <= 1
        True
        """
        read = parse_question(question)
        return reply_to(read, self.schema, lambda e: self.given(e).using(draws=draws, seed=seed), question).only

    def prob(self, event: str, *, draws: int | None = None, seed: int = 0) -> Estimate:
        """The probability of an event, given evidence or not.

        Parameters
        ----------
        event
            Such as ``"price > 30, river=yes | rooms=6"``.
        draws, seed
            As in :meth:`ask`.

        Returns
        -------
        Estimate
            A float that also carries its standard error (0 where the answer is exact).

        Examples
        --------
        >>> more, fewer = model.prob("rooms > 5"), model.prob("rooms <= 5")
        >>> round(more + fewer, 6)
        1.0
        """
        read = parse_question(event)
        if len(read.values) < len(read.asked) or read.form not in ("", "P"):
            raise UserError(f"prob needs an event, such as 'price > 30 | rooms=6', got {event!r}")
        return self.given(read.evidence).using(draws=draws, seed=seed).prob(read.values)

    def most_probable(
        self, given: Mapping[str, Any] | None = None, columns: str | Sequence[str] | None = None
    ) -> MostProbable:
        """The values of several columns that are most probable together, given what is known.

        For one best value of every cell by itself use :meth:`fill`. Columns that you do not need are better left out:
        the most probable combination of many is one of very many.

        Parameters
        ----------
        given
            What is known, as in :meth:`given`.
        columns
            The columns to complete; all others by default.

        Returns
        -------
        MostProbable
            The values, their log-probability, and whether they are the best for certain: where all columns have levels
            and the search could be completed.

        Examples
        --------
        >>> model.most_probable({"rooms": 6}, columns=["river", "door"]).row["river"]
        'no'
        """
        names = () if columns is None else _names("columns", columns)
        return Conditional(self.core, given or {}, rules=self._rules(None)).most_probable(*names)

    def mutual_information(
        self,
        one: str | Sequence[str],
        other: str | Sequence[str],
        given: Mapping[str, Any] | None = None,
        *,
        draws: int | None = None,
        seed: int = 0,
    ) -> Estimate:
        """How much two columns, or two sets of columns, say about each other: I(one; other | given), in nats.

        It is the model's, not the data's: of a badly fitted model it says nothing. Estimates near 0 may come out below
        0.

        Parameters
        ----------
        one, other
            A column, or a list of them.
        given
            Evidence to condition on.
        draws, seed
            How many draws the outer mean is taken over, and what decides them.

        Returns
        -------
        Estimate

        Examples
        --------
        >>> model.mutual_information("price", "rooms", draws=64) > model.mutual_information("price", "door", draws=64)
        True
        """
        names = [_names("one", one), _names("other", other)]
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
        names = _names("about", about)
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
        self, frame: Any, given: Any = None, *, orders: int | None = None, seed: int = 0, unseen: Unseen = "refuse"
    ) -> Any:
        """The log-likelihood of every row, in nats and in the units of the data.

        Filled cells count jointly; unknown cells, and columns that the frame does not have, are marginalised out. A
        model fitted with ``missingness="joint"`` scores which cells are filled as well. To compare rows with different
        cells filled, use :meth:`anomalies`: densities of different columns have different units.

        Parameters
        ----------
        frame
            pandas or polars.
        given
            Names of columns, or a frame or array of booleans, whose cells are evidence instead of being asked.
        orders
            Average the probability over so many orders (SFARM eq. 14), two if not given: costs as many passes.
        seed
            Decides the orders.
        unseen
            ``"missing"`` takes a level that was never seen in training for an unknown cell; ``"refuse"`` is an error.

        Returns
        -------
        Series
            One number a row, of the frame's own library.

        Examples
        --------
        >>> nats = model.log_prob(frame, given=["rooms", "river"])
        >>> len(nats) == len(frame)
        True
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
        count = usual_orders(self.core, orders)
        average = log_prob(self.core, torch.as_tensor(values), query, orders=count, seed=seed)
        self._warn_outside(table, observed & ~known)
        scores = pd.DataFrame({"log_prob": average}, index=table.index)
        return like_input(scores, frame)["log_prob"]

    def sample(
        self, n: int = 1, seed: int = 0, *, holes: bool = False, rules: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Draw rows from the joint distribution.

        Parameters
        ----------
        n
            How many.
        seed
            The same seed gives the same rows.
        holes
            Rows as they would be recorded, missing cells included; needs a model fitted with ``missingness="joint"``.
        rules
            Rules between number columns that every row obeys, as in :meth:`given`.

        Returns
        -------
        DataFrame

        Examples
        --------
        >>> model.sample(5, seed=1).shape
        (5, 4)
        >>> drawn = model.sample(50, seed=1, rules=["price > 6 * rooms"])
        >>> bool((drawn["price"] > 6 * drawn["rooms"]).all())
        True
        """
        return self._under(rules).sample(n, seed=seed, holes=holes)

    def fill(
        self,
        frame: Any,
        draws: int | None = None,
        seed: int = 0,
        *,
        unseen: Unseen = "refuse",
        rules: Sequence[str] | None = None,
    ) -> Any:
        """Fill the unknown cells of a table; known cells come back as they are.

        For analyses take ``draws``: a table filled by means understates every variance. Combine results of several
        draws with :func:`anyorder.pool`.

        Parameters
        ----------
        frame
            pandas or polars, with NaN or None where a cell is unknown.
        draws
            So many tables filled at random, jointly, in place of one filled by mean or most probable level.
        seed
            Decides the draws.
        unseen
            With ``"missing"`` levels never seen in training come back as they are, and the model does not hear of them.
        rules
            Rules between number columns that every filled row obeys, as in :meth:`given`.

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
        table = as_pandas(frame)
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
            As in :meth:`log_prob`.

        Returns
        -------
        Series

        Examples
        --------
        >>> prices = model.predict(held_out, "price")
        >>> bool((prices - held_out["price"]).abs().mean() < held_out["price"].std())
        True
        """
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
        return self._others(frame, column, unseen)[column].probs()

    def _others(self, frame: Any, column: str, unseen: Unseen) -> RowConditionals:
        """What the other columns say, row by row."""
        self.schema.index(column)
        table = as_pandas(frame)
        return RowConditionals(self.core, table.drop(columns=column, errors="ignore"), unseen, like=frame)

    def update(
        self,
        frame: Any,
        *,
        minutes: float | None = 0.5,
        seed: int = 0,
        config: Mapping[str, Any] | None = None,
        unseen: Unseen = "refuse",
        progress: bool = False,
    ) -> TableModel:
        """Another model, which has learned from new rows as well; this one stays as it is.

        The model does not keep the rows it was fitted to. So it becomes one member of a blend: linear experts and trees
        of the new rows stand beside it, and its own networks, trained further on them; new rows that none of these has
        seen weigh them all. A quarter of the new rows judges: where the change gains no more than its error there, the
        result answers as before. Every update makes the model larger. Where all rows are at hand, a new fit is better;
        where there are new columns or levels, it is needed.

        Parameters
        ----------
        frame
            New rows, 24 or more, with the columns of the model; missing cells, and columns that are not there, are
            unknown.
        minutes
            The most time to take; None for what ``config`` says.
        seed
            Decides which rows judge, and the growth of trees.
        config
            Further options, as for :func:`anyorder.fit`.
        unseen
            ``"missing"`` takes a level that was never seen for an unknown cell; ``"refuse"`` is an error.
        progress
            A bar on standard error.

        Returns
        -------
        TableModel
            Its card has an entry more in ``updates``: when, how many rows, the scores before and after.

        Examples
        --------
        >>> dearer = held_out.assign(price=held_out["price"] + 20)
        >>> brief = {"training": {"steps": 10, "minutes": None}, "trees": {"rounds": 5}}
        >>> newer = model.update(dearer, minutes=None, config=brief, seed=0)
        >>> newer.card["updates"][-1]["taken"]
        True
        >>> bool(newer.log_prob(dearer).mean() > model.log_prob(dearer).mean())
        True
        """
        from anyorder.modalities.tables.update import update  # it makes models, and so needs this class

        return update(self, frame, minutes=minutes, seed=seed, config=config, unseen=unseen, progress=progress)

    def calibration(self, frame: Any, seed: int = 0, *, repeats: int = 1) -> Calibration:
        """Check the model's honesty on rows not used in training: hide cells, and compare them with their conditionals.

        On rows that were used in training the result is too good to mean anything.

        Parameters
        ----------
        frame
            Held-out rows.
        seed
            Decides which cells are hidden.
        repeats
            How often each row is used, with other cells hidden.

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
            As in :meth:`log_prob`.

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
        table = None if like is None else as_pandas(like)
        held_out = as_pandas(frame)
        return conformal(self.core, held_out, given=given, like=table, by_known=by_known, seed=seed, unseen=unseen)

    def surprise(self, frame: Any, *, unseen: Unseen = "refuse") -> Any:
        """How surprising every known cell is given the rest of its row: -log p, in nats.

        Parameters
        ----------
        frame
            pandas or polars.
        unseen
            As in :meth:`log_prob`.

        Returns
        -------
        DataFrame
            NaN where a cell is unknown.

        Examples
        --------
        >>> model.surprise(frame.head(3)).shape
        (3, 4)
        """
        return like_input(surprise(self.core, as_pandas(frame), unseen), frame)

    def anomalies(self, frame: Any, top: int = 10, *, unseen: Unseen = "refuse") -> list[Anomaly]:
        """The cells least probable given the rest of their rows: typing errors, broken sensors, rare cases.

        An unlikely cell is not a wrong one; look at what the model expected instead.

        Parameters
        ----------
        frame
            pandas or polars.
        top
            How many.
        unseen
            As in :meth:`log_prob`.

        Returns
        -------
        list of Anomaly
            Row, column, value, what was expected and how surprising the value is.

        Examples
        --------
        >>> odd = held_out.copy()
        >>> odd.loc[odd.index[7], "price"] = 900.0
        >>> model.anomalies(odd, top=1)[0].column
        'price'
        """
        return anomalies(self.core, as_pandas(frame), top=top, unseen=unseen)

    def coherence(self, frame: Any, seed: int = 0) -> Coherence:
        """How much answers depend on the order in which variables are asked for, and what averaging over orders gains.

        A diagnostic: nothing forces a trained network to give the same joint density along every order.

        Parameters
        ----------
        frame
            Held-out rows.
        seed
            Decides the orders.

        Returns
        -------
        Coherence

        Examples
        --------
        >>> model.coherence(held_out, seed=0).spread >= 0
        True
        """
        return coherence(self.core, as_pandas(frame), seed=seed)

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
            raise UserError("calls are for texts; a row is coded one cell after the other")
        return compress_table(self.core, data)

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

    def _under(self, rules: Sequence[str] | None) -> Conditional:
        return Conditional(self.core, rules=self._rules(rules))

    def _rules(self, texts: Sequence[str] | None) -> Rules | None:
        """These rules, or those that the model was fitted with."""
        said = self.card.get("arguments", {}).get("rules", []) if texts is None else texts
        return Rules(parse_rules(said, self.schema), self.core.encoding) if said else None

    def _check(self) -> None:
        if not isinstance(said := self.card.get("arguments", {}).get("rules", []), list):
            raise UserError(f"arguments.rules: expected a list, got {said!r:.80}")
        self._rules(None)

    def _warn_outside(self, table: pd.DataFrame, asked: np.ndarray) -> None:
        """A bound that was guessed from the training rows must not rule out later ones without a word."""
        for index, variable in enumerate(self.schema.variables):
            low, high = variable.bounds
            rows = np.flatnonzero(asked[:, index])
            if (low is None and high is None) or not len(rows):
                continue
            numbers = pd.to_numeric(table[variable.name], errors="coerce").to_numpy(dtype=float)[rows]
            outside = rows[
                (numbers < (-np.inf if low is None else low)) | (numbers > (np.inf if high is None else high))
            ]
            if len(outside):
                warnings.warn(
                    f"column {variable.name!r}: {len(outside)} values, the first in row {outside[0]}, lie outside its "
                    f"bounds {variable.bounds} and are next to impossible. If the bounds were guessed and such values "
                    f"can occur, fit with bounds={{{variable.name!r}: (None, None)}}",
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
        if not pd.api.types.is_scalar(cell) or not missing_cells(_one_cell(cell), schema.missing)[0]
    }


def _names(option: str, said: str | Sequence[str]) -> list[str]:
    """One column, or several, as a list."""
    if isinstance(said, str):
        return [said]
    if not isinstance(said, Iterable):
        raise UserError(f"{option} must be the name of a column or a list of them, got {said!r}")
    return list(said)


def _one_cell(cell: Any) -> pd.Series:
    # A text stays as it is: Arrow, behind the texts of pandas, cannot hold half a surrogate pair.
    return pd.Series([cell], dtype=object if isinstance(cell, str) else None)
