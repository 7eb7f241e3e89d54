"""The distributions of one variable in many rows: every number asked for comes back as a column, or a frame of them.

What a row gets is what :class:`~anyorder.questions.answer.Answer` gives for its known cells. Rows are answered in
parts, so that the numbers behind the answers fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from anyorder.data.frames import in_kind_of
from anyorder.distributions.base import Distribution
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.questions.answer import as_times
from anyorder.questions.highest_density import fine_levels
from anyorder.questions.one_variable import OneVariable, check_order
from anyorder.questions.units import in_units, shown
from anyorder.support import html
from anyorder.support.memory import check_room
from anyorder.support.threads import answering
from anyorder.variables.codecs import Codec
from anyorder.variables.schema import Kind, Variable

NUMBERS_AT_ONCE = 1 << 21  # of one intermediate array: rows times levels, draws or quantiles
MOST_ROWS = 10  # that are shown in a notebook
GRID = 499  # quantiles among which the densest point is looked for, as for a single answer


class RowAnswers(OneVariable):
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
        self.variable: Variable = model.schema.variables[index]
        self._model = model
        self._index = index
        self._features = features
        self._frame = frame
        self._labels = labels

    def __len__(self) -> int:
        return len(self._features)

    def __repr__(self) -> str:
        return f"RowAnswers({self.variable.name}: {len(self)} rows)"

    def _repr_html_(self) -> str:
        first = self._labels[:MOST_ROWS]
        some = RowAnswers(self._model, self._index, self._features[:MOST_ROWS], pd.DataFrame(index=first), first)
        variable = self.variable
        if variable.levels and variable.kind is not Kind.ATOMS:
            shares = some._masses()
            names = ["row", "most probable", "", ""]
            lines: list[list[object]] = [
                [label, shown(variable, variable.levels[at]), html.bar(float(own[at])), f"{own[at]:.3f}"]
                for label, at, own in zip(first, shares.argmax(axis=1).tolist(), shares, strict=True)
            ]
        else:
            names = ["row", "median", "90 % in"]
            columns = [some.quantile(level) for level in (0.5, 0.05, 0.95)]
            lines = [
                [label, shown(variable, middle), f"{shown(variable, low)} .. {shown(variable, high)}"]
                for label, middle, low, high in zip(first, *columns, strict=True)
            ]
        more = html.remark(f"and {len(self) - MOST_ROWS} rows more") if len(self) > MOST_ROWS else ""
        return html.titled(f"{variable.name} in every row", html.table(names, lines, [len(names) - 1]), more)

    def _probs(self) -> Any:
        names = list(self.variable.atoms or self.variable.levels)
        if len(set(names)) < len(names):  # 1 and True are one key to Python, but two levels of a mixed column
            names = [repr(name) for name in names]
        return self._as_frame(self._masses(), names)

    def _mode(self) -> Any:
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

    def _quantile(self, levels: NDArray[np.float64]) -> Any:
        columns = [self._decoded(values) for values in self._quantiles(np.atleast_1d(levels)).T]
        if levels.ndim == 0:
            return self._as_series(columns[0])
        return self._framed(dict(zip(levels.tolist(), columns, strict=True)))

    def _interval(self, levels: NDArray[np.float64]) -> Any:
        low, high = (self._decoded(values) for values in self._quantiles(levels).T)
        return self._framed({"low": low, "high": high})

    def _mean(self) -> Any:
        means = self._of_rows(self._means, 64)
        if self.variable.kind is Kind.DATETIME:
            return self._as_series(pd.Series(as_times(means, self.variable)))
        return self._as_series(pd.Series(means))

    def _std(self) -> Any:

        def deviation(law: Distribution) -> NDArray[np.float64]:
            # Around one centre for all rows of a part: the digits of a small spread are not lost in a large offset.
            means = self._means(law)
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

    def _sample(self, n: int, generator: torch.Generator) -> Any:
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

    def _means(self, law: Distribution) -> NDArray[np.float64]:
        means: NDArray[np.float64] = (
            law.expect(lambda z: torch.as_tensor(self._codec.measure(z.double().numpy()))).double().numpy()
        )
        return means

    def _decoded(self, values: NDArray[np.float64], *, recorded: bool = False) -> pd.Series:
        """Model values in the units of the data; ``recorded``: as cells of the column, in its precision and form."""
        if recorded:
            return self._model.encoding.decode_column(self.variable.name, values, recorded=True)
        return in_units(self._codec, np.asarray(values, dtype=np.float64)).rename(self.variable.name)

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
            raise UserError(f"{name!r}: expected values, but the one at position {int(np.argmin(known))} is missing")
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
