"""What can be asked of the distribution of one variable, for one question or for every row of a frame.

Here a request is documented and checked against the kind of the variable: levels without an order have no quantiles,
ordered levels have no mean. How it is answered is left to :class:`~anyorder.questions.answer.Answer` (one number) and
:class:`~anyorder.questions.row_answers.RowAnswers` (one for each row).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from anyorder.errors import UserError
from anyorder.support.checks import check_level, checked_seed, whole
from anyorder.variables.schema import Kind, Variable


class OneVariable(ABC):
    """The questions that :class:`~anyorder.questions.answer.Answer` and
    :class:`~anyorder.questions.row_answers.RowAnswers` answer alike.
    """

    variable: Variable
    """What the schema says of the variable."""

    def probs(self) -> Any:
        """The probability of each level, or of each atom where the variable is spiked (they do not sum to 1).

        A continuous variable has neither: ask for :meth:`quantile`, ``cdf`` or ``log_prob``.

        Returns
        -------
        dict, or a DataFrame for the rows of a frame
            Probabilities by level, or a column for each level. Levels that Python takes for equal (1 and True) are
            written out as texts.

        Examples
        --------
        >>> found = model.given(rooms=6, price=42.0)["river"].probs()
        >>> sorted(found), abs(sum(found.values()) - 1) < 1e-6
        (['no', 'yes'], True)
        >>> rows = model.given(held_out[["rooms", "price"]])["river"].probs()
        >>> sorted(rows.columns), bool((abs(rows.sum(axis=1) - 1) < 1e-6).all())
        (['no', 'yes'], True)
        """
        if not self.variable.levels and not self.variable.atoms:
            raise UserError(
                f"{self.variable.name!r} is {self.variable.kind}: it has no list of levels; "
                "ask for quantile, mean or log_prob"
            )
        return self._probs()

    def mode(self) -> Any:
        """The most probable level or atom; else the point of highest density on a fine grid of quantiles.

        The mode of a density depends on the units and says little about where the mass is; prefer :meth:`median` for
        numbers.

        Returns
        -------
        value, or a Series for the rows of a frame

        Examples
        --------
        >>> river = model.given(rooms=6, price=36.0)["river"]
        >>> river.probs()[river.mode()] == max(river.probs().values())
        True
        >>> rows = model.given(held_out[["price"]])["river"]
        >>> bool((rows.mode() == rows.probs().idxmax(axis=1)).all())
        True
        """
        return self._mode()

    def quantile(self, level: ArrayLike) -> Any:
        """The least value whose cdf reaches a level, for a variable with an order.

        Parameters
        ----------
        level
            A number from 0 to 1, or a list of them. Whole numbers and times have no quantiles at 0 and 1.

        Returns
        -------
        value, or an array for a list
            Numbers and times as such, also where the column holds texts such as "$1,204.50". For the rows of a frame
            a Series, or a DataFrame with a column for each level of a list.

        Examples
        --------
        >>> low, high = model.given(rooms=6)["price"].quantile([0.05, 0.95])
        >>> bool(low < high)
        True
        >>> model.given(held_out[["rooms"]])["price"].quantile([0.05, 0.5, 0.95]).columns.tolist()
        [0.05, 0.5, 0.95]
        """
        return self._quantile(checked_levels(self.variable, level))

    def median(self) -> Any:
        """The value with half of the probability at or below it, for a variable with an order.

        Returns
        -------
        value, or a Series for the rows of a frame

        Examples
        --------
        >>> price = model.given(rooms=6)["price"]
        >>> bool(price.median() == price.quantile(0.5))
        True
        """
        return self.quantile(0.5)

    def interval(self, level: float = 0.9) -> Any:
        """The central interval that holds the variable with this probability, for a variable with an order.

        Its level is the model's own word. Where that has to hold however wrong the model is, use
        :meth:`TableModel.conformal <anyorder.modalities.tables.model.TableModel.conformal>`; where a distribution has
        several peaks, :meth:`Answer.hdi <anyorder.questions.answer.Answer.hdi>` is shorter.

        Parameters
        ----------
        level
            The probability, between 0 and 1.

        Returns
        -------
        tuple, or a DataFrame for the rows of a frame
            Lower and upper end; of the rows, in the columns ``low`` and ``high``.

        Examples
        --------
        >>> price = model.given(rooms=6)["price"]
        >>> (low, high), (lower, higher) = price.interval(0.5), price.interval(0.9)
        >>> bool(lower < low < high < higher)
        True
        >>> ends = model.given(held_out[["rooms"]])["price"].interval(0.9)
        >>> bool((ends["low"] < ends["high"]).all())
        True
        """
        check_level(level, "[0, 1]")
        return self._interval(checked_levels(self.variable, [(1 - level) / 2, (1 + level) / 2]))

    def mean(self) -> Any:
        """The expectation in the units of the data; a time for a datetime.

        Returns
        -------
        Estimate or Timestamp, or a Series for the rows of a frame

        Examples
        --------
        >>> model.given(rooms=4)["price"].mean() < model.given(rooms=8)["price"].mean()
        True
        >>> rows = held_out.head(2)[["rooms"]].assign(rooms=[4, 8])
        >>> model.given(rows)["price"].mean().is_monotonic_increasing
        True
        """
        check_order(self.variable, "mean", distance=True)
        return self._mean()

    def std(self) -> Any:
        """The standard deviation in the units of the data; days for a datetime.

        Returns
        -------
        Estimate, or a Series for the rows of a frame

        Examples
        --------
        >>> model.given(rooms=6)["price"].std() < model["price"].std()
        True
        >>> bool((model.given(held_out[["rooms"]])["price"].std() > 0).all())
        True
        """
        check_order(self.variable, "std", distance=True)
        return self._std()

    def sample(self, n: int = 1, seed: int = 0) -> Any:
        """Independent draws of this variable.

        For rows of several variables use :meth:`Conditional.sample
        <anyorder.questions.conditional.Conditional.sample>`, for many rows of a frame :meth:`TableModel.fill
        <anyorder.modalities.tables.model.TableModel.fill>` with ``draws``.

        Parameters
        ----------
        n
            How many; of a frame, for each row.
        seed
            The same seed gives the same draws.

        Returns
        -------
        array, or a DataFrame for the rows of a frame
            With a column for each draw.

        Examples
        --------
        >>> len(model.given(rooms=6)["price"].sample(5, seed=0))
        5
        >>> model.given(held_out[["rooms"]])["price"].sample(3, seed=0).shape == (len(held_out), 3)
        True
        """
        return self._sample(whole("n", n, 0), torch.Generator().manual_seed(checked_seed(seed)))

    @abstractmethod
    def _probs(self) -> Any:
        """The answer to :meth:`probs`, for a variable that has levels or atoms."""

    @abstractmethod
    def _mode(self) -> Any: ...

    @abstractmethod
    def _quantile(self, levels: NDArray[np.float64]) -> Any:
        """At one level (an array without dimensions) or at several."""

    @abstractmethod
    def _interval(self, levels: NDArray[np.float64]) -> Any:
        """Between the quantiles at two levels."""

    @abstractmethod
    def _mean(self) -> Any: ...

    @abstractmethod
    def _std(self) -> Any: ...

    @abstractmethod
    def _sample(self, n: int, generator: torch.Generator) -> Any: ...


def check_order(variable: Variable, what: str, *, distance: bool = False) -> None:
    """Refuse to ask a variable without an order, or without distances, for what needs one."""
    if distance and variable.kind is Kind.ORDINAL:
        raise UserError(
            f"{variable.name!r} is ordinal: its levels have an order but no distances, so it has no {what}; "
            "ask for median() or probs()"
        )
    if variable.kind in (Kind.CATEGORICAL, Kind.BOOLEAN):
        raise UserError(
            f"{variable.name!r} is {variable.kind}: its levels have no order, so it has no {what}; ask for probs()"
        )


def checked_levels(variable: Variable, level: ArrayLike) -> NDArray[np.float64]:
    """Levels at which this variable has quantiles, as an array."""
    check_order(variable, "quantile")
    try:
        levels = np.asarray(level, dtype=float)
    except (TypeError, ValueError):
        raise UserError(f"quantile levels must be numbers between 0 and 1, got {level!r}") from None
    if not bool(((levels >= 0) & (levels <= 1)).all()):
        raise UserError(f"quantile levels must be between 0 and 1, got {level!r}")
    if variable.kind in (Kind.INTEGER, Kind.DATETIME) and bool(((levels == 0) | (levels == 1)).any()):
        raise UserError(f"{variable.name!r} has no smallest or largest value; ask for levels above 0 and below 1")
    return levels
