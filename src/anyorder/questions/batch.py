"""Conditionals of many rows at once: p(variable | the known cells of its row), for every row of a frame.

Each row is evidence of its own; its missing cells are unknown and marginalised out. One pass of the network serves
thousands of rows, and every number asked for comes back as one column, or one frame, of the library the rows came in
and with their index. What a row gets is what :class:`~anyorder.questions.answer.Answer` gives for its known cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from anyorder.data.frames import as_pandas, in_kind_of
from anyorder.distributions.base import Distribution
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel, row_chunks
from anyorder.questions.answer import as_times, central_levels, check_order, checked_levels
from anyorder.questions.evidence import Missing
from anyorder.questions.highest_density import fine_levels
from anyorder.support.advance import tracked
from anyorder.support.checks import checked_seed, whole
from anyorder.support.memory import check_room
from anyorder.support.threads import answering
from anyorder.variables.codecs import Codec
from anyorder.variables.encoding import Unseen
from anyorder.variables.ranges import Between, OneOf
from anyorder.variables.schema import Kind, Variable

NUMBERS_AT_ONCE = 1 << 21  # of one intermediate array: rows times levels, draws or quantiles
GRID = 499  # quantiles among which the densest point is looked for, as for a single answer


class RowConditionals:
    """p(... | known cells), for every row of a frame.

    Made by :meth:`TableModel.given <anyorder.modalities.tables.model.TableModel.given>` with a frame. Index it by a
    column that the frame does not know. Ranges and sets are evidence of single questions only: ask those one by one.

    Parameters
    ----------
    model
        The ``core`` of a table model.
    frame
        pandas or polars, one row a question; a missing cell, like a column that is not there, is unknown.
    unseen
        ``"missing"`` takes a level that was never seen in training for an unknown cell; ``"refuse"`` is an error.
    like
        The frame whose kind the results have, where it is another.

    Examples
    --------
    >>> rows = model.given(held_out[["rooms", "river"]])
    >>> len(rows) == len(held_out)
    True
    >>> rows["price"].quantile([0.05, 0.95]).shape == (len(held_out), 2)
    True
    """

    def __init__(self, model: AnyOrderModel, frame: Any, unseen: Unseen = "refuse", *, like: Any = None) -> None:
        self.model = model
        self._given = frame if like is None else like
        self._table = as_pandas(frame)
        for name, column in self._table.items():
            if column.dtype == object and (partial := next(filter(_is_partial, column), None)) is not None:
                raise UserError(
                    f"column {name!r} holds {partial!r}: a cell of a frame is a value or unknown; ask rows with "
                    "ranges, sets or MISSING one by one, as in model.given(age=Between(30, 40))"
                )
        self._values, self._known = model.encoding.encode(self._table, unseen, evidence=model.schema.names)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"p(... | {len(self)} rows of {', '.join(map(str, self._table.columns))})"

    def __getitem__(self, name: str) -> RowAnswers:
        """The distributions of one column, one for each row.

        Parameters
        ----------
        name
            The column.

        Returns
        -------
        RowAnswers

        Examples
        --------
        >>> prices = model.given(held_out[["rooms", "river"]])["price"].mean()
        >>> prices.index.equals(held_out.index)
        True
        """
        index = self.model.schema.index(name)
        if self._known[:, index].any():
            row = self._table.index[int(self._known[:, index].argmax())]
            raise UserError(f"{name!r} is given in row {row!r}; leave the column out of the frame to ask for it")
        values, known = torch.as_tensor(self._values), torch.as_tensor(self._known)
        features = _features(self.model, values, known, index)
        return RowAnswers(self.model, index, features, self._given, self._table.index)


class RowAnswers:
    """The distributions of one variable, one for each row of a frame: see :class:`~anyorder.questions.answer.Answer`.

    Made by indexing: ``model.given(frame)["price"]``. Columns and frames that come back have the index of the frame, in
    pandas, or are polars where the frame was.

    Parameters
    ----------
    model
        The ``core`` of a table model.
    index
        Which variable.
    features
        What its head makes distributions of, one line for each row.
    frame
        The frame whose kind the results have.
    labels
        The index of the results in pandas.

    Examples
    --------
    >>> price = model.given(held_out[["rooms"]])["price"]
    >>> bool((price.quantile(0.1) < price.median()).all())
    True
    """

    def __init__(
        self,
        model: AnyOrderModel,
        index: int,
        features: Float[Tensor, "rows width"],
        frame: Any,
        labels: pd.Index[Any],
    ) -> None:
        self._model = model
        self._index = index
        self._features = features
        self._frame = frame
        self._labels = labels

    @property
    def variable(self) -> Variable:
        """What the schema says of the variable."""
        return self._model.schema.variables[self._index]

    def __len__(self) -> int:
        return len(self._features)

    def __repr__(self) -> str:
        return f"RowAnswers({self.variable.name}: {len(self)} rows)"

    def probs(self) -> Any:
        """The probability of each level in every row, or of each atom where the variable is spiked.

        Returns
        -------
        DataFrame
            A line for each row and a column for each level.

        Examples
        --------
        >>> found = model.given(held_out[["rooms", "price"]])["river"].probs()
        >>> sorted(found.columns), bool((abs(found.sum(axis=1) - 1) < 1e-6).all())
        (['no', 'yes'], True)
        """
        variable = self.variable
        if not variable.levels and not variable.atoms:
            raise UserError(
                f"{variable.name!r} is {variable.kind}: it has no list of levels; ask for quantile, mean or log_prob"
            )
        names = list(variable.atoms or variable.levels)
        if len(set(names)) < len(names):  # 1 and True are one key to Python, but two levels of a mixed column
            names = [repr(name) for name in names]
        return self._as_frame(self._masses(), names)

    def mode(self) -> Any:
        """The most probable level or atom of every row; else the point of highest density on a grid of quantiles.

        Returns
        -------
        Series

        Examples
        --------
        >>> river = model.given(held_out[["price"]])["river"]
        >>> bool((river.mode() == river.probs().idxmax(axis=1)).all())
        True
        """
        if self.variable.levels:
            return self._as_series(self._decoded(self._masses().argmax(axis=1).astype(np.float64)))
        levels = torch.as_tensor(fine_levels(GRID, 0.001))

        def densest(law: Distribution) -> NDArray[np.float64]:
            grid = law.quantile(levels[:, None]).double()
            height = law.log_prob(grid).double().numpy() + self._codec.log_slope(grid.numpy())
            points: NDArray[np.float64] = grid.numpy()
            top: NDArray[np.float64] = points[height.argmax(axis=0), np.arange(points.shape[1])]
            return top

        best = self._of_rows(densest, GRID)
        if self.variable.atoms:
            # As for a single answer: an atom that can happen has more than any density.
            masses = self._masses()
            best = np.where(masses.max(axis=1) > 0, np.array(self._codec.atoms)[masses.argmax(axis=1)], best)
        return self._as_series(self._decoded(best))

    def quantile(self, level: ArrayLike) -> Any:
        """The least value whose cdf reaches a level, in every row; for a variable with an order.

        Parameters
        ----------
        level
            A number from 0 to 1, or a list of them.

        Returns
        -------
        Series, or a DataFrame with a column for each level of a list

        Examples
        --------
        >>> model.given(held_out[["rooms"]])["price"].quantile([0.05, 0.5, 0.95]).columns.tolist()
        [0.05, 0.5, 0.95]
        """
        levels = checked_levels(self.variable, level)
        columns = [self._decoded(values) for values in self._quantiles(np.atleast_1d(levels)).T]
        if levels.ndim == 0:
            return self._as_series(columns[0])
        return self._framed(dict(zip(levels.tolist(), columns, strict=True)))

    def median(self) -> Any:
        """The value with half of the probability at or below it, in every row.

        Returns
        -------
        Series

        Examples
        --------
        >>> price = model.given(held_out[["rooms"]])["price"]
        >>> bool((price.median() == price.quantile(0.5)).all())
        True
        """
        return self.quantile(0.5)

    def interval(self, level: float = 0.9) -> Any:
        """The central interval that holds the variable with this probability, in every row.

        Parameters
        ----------
        level
            The probability, between 0 and 1.

        Returns
        -------
        DataFrame
            With the columns ``low`` and ``high``.

        Examples
        --------
        >>> ends = model.given(held_out[["rooms"]])["price"].interval(0.9)
        >>> bool((ends["low"] < ends["high"]).all())
        True
        """
        levels = checked_levels(self.variable, list(central_levels(level)))
        low, high = (self._decoded(values) for values in self._quantiles(levels).T)
        return self._framed({"low": low, "high": high})

    def mean(self) -> Any:
        """The expectation in every row, in the units of the data; times for a datetime.

        Returns
        -------
        Series

        Examples
        --------
        >>> rows = held_out.head(2)[["rooms"]].assign(rooms=[4, 8])
        >>> model.given(rows)["price"].mean().is_monotonic_increasing
        True
        """
        check_order(self.variable, "mean", distance=True)
        means = self._of_rows(self._mean, 64)
        if self.variable.kind is Kind.DATETIME:
            return self._as_series(pd.Series(as_times(means, self.variable)))
        return self._as_series(pd.Series(means))

    def std(self) -> Any:
        """The standard deviation in every row, in the units of the data; days for a datetime.

        Returns
        -------
        Series

        Examples
        --------
        >>> bool((model.given(held_out[["rooms"]])["price"].std() > 0).all())
        True
        """
        check_order(self.variable, "std", distance=True)

        def deviation(law: Distribution) -> NDArray[np.float64]:
            # Around one centre for all rows of a part: the digits of a small spread are not lost in a large offset.
            means = self._mean(law)
            centre = float(means.mean())
            squares = law.expect(lambda z: torch.as_tensor((self._codec.measure(z.double().numpy()) - centre) ** 2))
            variance = squares.double().numpy() - (means - centre) ** 2
            found: NDArray[np.float64] = np.sqrt(np.clip(variance, 0.0, None))
            return found

        return self._as_series(pd.Series(self._of_rows(deviation, 64)))

    def best(self) -> Any:
        """The value that :meth:`TableModel.fill <anyorder.modalities.tables.model.TableModel.fill>` would put in every
        row: the mean of a number, on its lattice where it has one; the most probable level.

        Returns
        -------
        Series

        Examples
        --------
        >>> rows = held_out[["rooms", "river"]]
        >>> filled = model.fill(rows.assign(price=None))["price"].astype(float)
        >>> bool((abs(model.given(rows)["price"].best() - filled) < 1e-3).all())
        True
        """
        return self._as_series(self._decoded(self._of_rows(self._codec.point, 16), recorded=True))

    def log_prob(self, values: Any) -> Any:
        """The log-density per unit of the data, or the log-probability, of a value in every row.

        Parameters
        ----------
        values
            One value for all rows, or a column with one for each.

        Returns
        -------
        Series

        Examples
        --------
        >>> nats = model.given(held_out[["rooms", "river"]])["price"].log_prob(held_out["price"])
        >>> len(nats) == len(held_out)
        True
        """
        at = self._encoded(values)
        nats = self._of_values(lambda law, here: law.log_prob(here), at)
        return self._as_series(pd.Series(nats + self._codec.log_slope(at)))

    def cdf(self, values: Any) -> Any:
        """P(variable <= value) in every row, for a variable with an order.

        Parameters
        ----------
        values
            One value for all rows, or a column with one for each.

        Returns
        -------
        Series

        Examples
        --------
        >>> price = model.given(held_out[["rooms"]])["price"]
        >>> bool((price.cdf(20.0) <= price.cdf(50.0)).all())
        True
        """
        check_order(self.variable, "cdf")
        return self._as_series(pd.Series(self._of_values(lambda law, here: law.cdf(here), self._encoded(values))))

    def sample(self, n: int = 1, seed: int = 0) -> Any:
        """Independent draws of this variable in every row.

        For joint draws of several columns, use :meth:`TableModel.fill
        <anyorder.modalities.tables.model.TableModel.fill>` with ``draws``.

        Parameters
        ----------
        n
            How many for each row.
        seed
            The same seed gives the same draws.

        Returns
        -------
        DataFrame
            A line for each row, a column for each draw.

        Examples
        --------
        >>> model.given(held_out[["rooms"]])["price"].sample(3, seed=0).shape == (len(held_out), 3)
        True
        """
        n, generator = whole("n", n, 0), torch.Generator().manual_seed(checked_seed(seed))
        check_room("n", n, len(self), "draw fewer, or for fewer rows, at a time")
        levels = torch.rand(len(self), n, generator=generator, dtype=torch.float64)
        drawn = np.zeros((len(self), n))
        for rows, law in self._laws(n):
            drawn[rows] = law.quantile(levels[rows].T).double().numpy().T
        decoded = self._decoded(drawn.ravel(), recorded=True)
        if isinstance(decoded.dtype, np.dtype):
            table = pd.DataFrame(decoded.to_numpy().reshape(drawn.shape), index=self._labels)
            return in_kind_of(table, self._frame)
        return self._framed({number: decoded.iloc[number::n] for number in range(n)})

    @property
    def _codec(self) -> Codec:
        return self._model.encoding.codecs[self._index]

    def _laws(self, numbers: int) -> Iterator[tuple[slice, Distribution]]:
        """The distributions in parts, so that so many numbers for each row fit into memory."""
        size = max(1, NUMBERS_AT_ONCE // max(numbers, self._features.shape[1], 1))
        for start in range(0, len(self), size):
            rows = slice(start, start + size)
            yield rows, self._model.heads.distribution(self._features[rows], self._index)

    @answering
    @torch.no_grad()
    def _of_rows(self, number: Callable[[Distribution], NDArray[np.float64]], numbers: int) -> NDArray[np.float64]:
        """One number for each row, from its distribution."""
        found = np.zeros(len(self))
        for rows, law in self._laws(numbers):
            found[rows] = number(law)
        return found

    @answering
    @torch.no_grad()
    def _of_values(
        self, number: Callable[[Distribution, Tensor], Tensor], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """One number for each row, from its distribution and its own model value."""
        found = np.zeros(len(self))
        for rows, law in self._laws(1):
            found[rows] = number(law, torch.as_tensor(values[rows])).double().numpy()
        return found

    @answering
    @torch.no_grad()
    def _quantiles(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Model values [rows, levels]."""
        found = np.zeros((len(self), len(levels)))
        for rows, law in self._laws(len(levels)):
            found[rows] = law.quantile(torch.as_tensor(levels)[:, None]).double().numpy().T
        return found

    @answering
    @torch.no_grad()
    def _masses(self) -> NDArray[np.float64]:
        """The probabilities of levels or atoms [rows, levels]."""
        codec = self._codec
        at = torch.tensor(codec.atoms or range(len(self.variable.levels)), dtype=torch.float64)
        found = np.zeros((len(self), len(at)))
        for rows, law in self._laws(len(at)):
            found[rows] = law.mass_at(at[:, None]).double().numpy().T
        return found

    def _mean(self, law: Distribution) -> NDArray[np.float64]:
        means: NDArray[np.float64] = (
            law.expect(lambda z: torch.as_tensor(self._codec.measure(z.double().numpy()))).double().numpy()
        )
        return means

    def _decoded(self, values: NDArray[np.float64], *, recorded: bool = False) -> pd.Series:
        """Model values in the units of the data; ``recorded``: in the precision in which they came."""
        return self._model.encoding.decode_column(self.variable.name, values, recorded=recorded)

    def _encoded(self, values: Any) -> NDArray[np.float64]:
        """Model values, one for each row, of one value or a column."""
        name, encoding = self.variable.name, self._model.encoding
        if isinstance(values, str) or not hasattr(values, "__len__"):
            return np.full(len(self), encoding.encode_value(name, values))
        column = values if isinstance(values, pd.Series) else pd.Series(list(values))
        if len(column) != len(self):
            raise UserError(f"{name!r}: expected one value, or one for each of {len(self)} rows, got {len(column)}")
        encoded, known = encoding.encode_column(name, column)
        if not known.all():
            raise UserError(f"{name!r}: expected values, but number {int(np.argmin(known))} is missing")
        return encoded

    def _as_series(self, column: pd.Series) -> Any:
        return self._framed({self.variable.name: column})[self.variable.name]

    def _as_frame(self, table: NDArray[np.float64], names: list[Any]) -> Any:
        return self._framed({name: pd.Series(table[:, number]) for number, name in enumerate(names)})

    def _framed(self, columns: Mapping[Any, pd.Series]) -> Any:
        index = pd.RangeIndex(len(self))
        parts = [column.set_axis(index) for column in columns.values()]
        found = pd.concat(parts, axis=1) if parts else pd.DataFrame(index=index)
        labels = pd.Index(list(columns))
        return in_kind_of(found.set_axis(labels, axis="columns").set_axis(self._labels), self._frame)


@answering
@torch.no_grad()
def _features(model: AnyOrderModel, values: Tensor, known: Tensor, index: int) -> Float[Tensor, "rows width"]:
    """The network's features of one variable in every row."""
    size = model.heads.of(index).size
    check_room("rows", len(values), size, "ask for fewer rows at a time")
    parts = [
        model.features_of(values[rows].to(model.device), known[rows].to(model.device), index)[:, :size].cpu()
        for rows in tracked(row_chunks(model, len(values)), len(values))
    ]
    return torch.cat(parts) if parts else torch.zeros(0, size)


def _is_partial(cell: object) -> bool:
    return isinstance(cell, Between | OneOf | Missing)
