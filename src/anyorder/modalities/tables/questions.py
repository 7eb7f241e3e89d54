"""What a fitted model of a table can be asked: evidence, events, probabilities, draws, information.

Every method speaks in the columns, values and units of the table and hands the question on to
:mod:`anyorder.questions`; what is done with many answers is in :mod:`anyorder.modalities.tables.tasks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import pandas as pd

from anyorder.data.files import frame_or_file
from anyorder.data.frames import as_pandas, is_frame, like_input
from anyorder.errors import UserError
from anyorder.modalities.face import FittedModel
from anyorder.questions.ask import reply_to
from anyorder.questions.batch import RowConditionals
from anyorder.questions.case import cells_of_row, known_cells
from anyorder.questions.conditional import Conditional
from anyorder.questions.estimate import Estimate
from anyorder.questions.grammar import parse_question
from anyorder.questions.information import mutual_information
from anyorder.questions.marginals import DRAWS as MARGINAL_DRAWS
from anyorder.questions.marginals import Marginal, Marginals
from anyorder.questions.most_probable import MostProbable
from anyorder.questions.row_log_probs import row_log_probs
from anyorder.questions.rules import Rules, parse_rules
from anyorder.support.bars import told_by_rows
from anyorder.variables.encoding import Unseen

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame


class TableQuestions(FittedModel):
    """The questions to a :class:`~anyorder.modalities.tables.model.TableModel`."""

    @overload
    def given(
        self,
        evidence: Mapping[str, Any] | pd.Series[Any] | None = None,
        /,
        *,
        rules: Sequence[str] | None = None,
        **more: Any,
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
            "b")``), or ``MISSING``; what is NaN or None is not known. A mapping is needed only for names that are no
            Python identifiers, and for a column that is called "rules". A row, such as ``frame.iloc[0]``, is evidence
            too: one of its columns may be asked given the others. Or a frame (pandas, polars), each row of which is
            evidence of its own and a missing cell unknown; its rows are answered without rules.
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
        >>> model.given(held_out.iloc[0].drop("price"))["price"].mean() > 0
        True
        >>> model.given(held_out[["rooms", "river"]])["price"].interval(0.9).columns.tolist()
        ['low', 'high']
        """
        if is_frame(evidence):
            if more:
                raise UserError(
                    "give evidence as a frame or as keywords, not both; a value for all rows can be a column"
                )
            if rules:
                raise UserError("rules are for one question at a time; for the rows of a frame use fill(rules=...)")
            return RowConditionals(self.core, evidence)
        row = cells_of_row(evidence) - more.keys()
        known = {**known_cells(self.schema, evidence), **more}
        return Conditional(self.core, known, rules=self._rules(rules), _row=row, _library=self._library)

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
        return Conditional(self.core, asked=names, rules=self._rules(None), _library=self._library)

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

    def marginals(
        self,
        evidence: Any = None,
        columns: str | Sequence[str] = (),
        *,
        draws: int = MARGINAL_DRAWS,
        seed: int = 0,
        rules: Sequence[str] | None = None,
    ) -> dict[str, Marginal]:
        """What is to be said of every column given evidence, in one go: to look at, or to draw.

        Means and quantiles are read off a table of the cdf, and so are not exact: to about a hundredth of the spread.
        Where digits matter ask ``given(...)[column]``.

        Parameters
        ----------
        evidence
            What is known, as in :meth:`given`: a mapping or a row.
        columns
            The columns to answer; all that are not given a value by default.
        draws, seed
            How many draws stand for ranges among the evidence, and what decides them.
        rules
            As in :meth:`given`.

        Returns
        -------
        dict
            A :class:`~anyorder.questions.marginals.Marginal` by the name of each column.

        Examples
        --------
        >>> found = model.marginals({"rooms": 6})
        >>> list(found), found["river"].best
        (['river', 'door', 'price'], 'no')
        >>> found["price"].low < found["price"].mean < found["price"].high
        True
        """
        question = self.given(evidence, rules=rules).using(draws=draws, seed=seed)
        return Marginals(self.core).of([question], [column_names("columns", columns)])[0]

    def ask(self, question: str, *, draws: int | None = None, seed: int = 0) -> Any:
        """Answer a typed question, in the words of the command line.

        For questions that come as text. In a program, :meth:`given` says the same and is checked by your editor.

        Parameters
        ----------
        question
            Such as ``"price | rooms=6"``, ``"P(price > 30 | rooms=6)"``, ``"P(price < 10 or price > 90)"``,
            ``"E[price | river=yes]"``, ``"median(price)"``, ``"H(price)"`` or ``"I(price; rooms)"``.
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

    def log_prob(
        self,
        frame: Any,
        given: Any = None,
        *,
        orders: int | None = None,
        seed: int = 0,
        unseen: Unseen = "refuse",
        progress: bool | None = None,
    ) -> Any:
        """The log-likelihood of every row, in nats and in the units of the data.

        Filled cells count jointly; unknown cells, and columns that the frame does not have, are marginalised out. A
        model fitted with ``missingness="joint"`` scores which cells are filled as well. To compare rows with different
        cells filled, use :meth:`anomalies <anyorder.modalities.tables.model.TableModel.anomalies>`: densities of
        different columns have different units.

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
        progress
            How far it is, as for :func:`anyorder.fit`.

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
        frame = frame_or_file(frame, self.schema.missing)
        with told_by_rows("scoring rows", progress):
            scores = row_log_probs(self.core, as_pandas(frame), given, orders=orders, seed=seed, unseen=unseen)
        return like_input(scores, frame)["log_prob"]

    def sample(self, n: int = 1, seed: int = 0, *, holes: bool = False, rules: Sequence[str] | None = None) -> Any:
        """Draw rows from the joint distribution.

        Parameters
        ----------
        n
            How many.
        seed
            The same seed gives the same rows, so two calls without one do too; for other rows, give another seed.
        holes
            Rows as they would be recorded, missing cells included; needs a model fitted with ``missingness="joint"``.
        rules
            Rules between number columns that every row obeys, as in :meth:`given`.

        Returns
        -------
        DataFrame
            Of the library of the frame that the model was fitted to, pandas or polars.

        Examples
        --------
        >>> model.sample(5, seed=1).shape
        (5, 4)
        >>> drawn = model.sample(50, seed=1, rules=["price > 6 * rooms"])
        >>> bool((drawn["price"] > 6 * drawn["rooms"]).all())
        True
        """
        with told_by_rows("drawing rows"):
            return self.given(rules=rules).sample(n, seed=seed, holes=holes)

    def most_probable(
        self, given: Mapping[str, Any] | None = None, columns: str | Sequence[str] | None = None
    ) -> MostProbable:
        """The values of several columns that are most probable together, given what is known.

        For one best value of every cell by itself use :meth:`fill
        <anyorder.modalities.tables.model.TableModel.fill>`. Columns that you do not need are better left out: the most
        probable combination of many is one of very many.

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
        names = () if columns is None else column_names("columns", columns)
        return self.given(given).most_probable(*names)

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
        names = [column_names("one", one), column_names("other", other)]
        return mutual_information(self.given(given).using(draws=draws, seed=seed), *names)

    @property
    def _library(self) -> object:
        """The library of the frame that the model was fitted to, where that is not pandas."""
        return self.card.get("data", {}).get("library", "")

    def _rules(self, texts: Sequence[str] | None) -> Rules | None:
        """These rules, or those that the model was fitted with."""
        said = self.card.get("arguments", {}).get("rules", []) if texts is None else texts
        return Rules(parse_rules(said, self.schema), self.core.encoding) if said else None


def column_names(option: str, said: str | Sequence[str]) -> list[str]:
    """One column, or several, as a list."""
    if isinstance(said, str):
        return [said]
    if not isinstance(said, Iterable):
        raise UserError(f"{option} must be the name of a column or a list of them, got {said!r}")
    return list(said)
