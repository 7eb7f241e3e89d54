"""Answer: the distribution of one variable given evidence, in the units of the data.

Exact, without sampling: one step of the model is a normalised one-dimensional distribution, and the encoding carries
it into the user's units with its Jacobian. Single numbers are :class:`~anyorder.questions.estimate.Estimate`: floats
that also carry a standard error (0 here) and a method. Answers under ranges (:mod:`anyorder.questions.range_answer`)
are used in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from anyorder.distributions.base import Distribution
from anyorder.errors import UserError
from anyorder.questions.doubt import doubted
from anyorder.questions.estimate import Estimate
from anyorder.questions.highest_density import fine_levels, highest_density
from anyorder.questions.one_variable import check_order
from anyorder.questions.shown_answer import ShownAnswer
from anyorder.questions.units import in_units, one_value
from anyorder.support.checks import inside
from anyorder.support.memory import check_room
from anyorder.support.threads import answering
from anyorder.variables.encoding import Encoding
from anyorder.variables.restore import EARLIEST, LATEST
from anyorder.variables.schema import Variable
from anyorder.variables.times import MICROSECONDS_PER_DAY, from_ticks


class Answer(ShownAnswer):
    """p(variable | evidence): the distribution of one variable, in the units of the data.

    Made by indexing: ``model.given(rooms=6)["price"]``. Which questions make sense depends on the kind of the variable:
    levels without an order have :meth:`probs` and no quantiles, ordered levels have quantiles and no mean.

    Parameters
    ----------
    variable
        What the schema says of the variable.
    encoding
        Between model values and the units of the data.
    distribution
        The distribution of its model value.

    Examples
    --------
    >>> price = model.given(rooms=6)["price"]
    >>> price.kind, price.discrete
    ('continuous', False)
    >>> bool(price.quantile(0.1) < price.median() < price.quantile(0.9))
    True
    """

    def __init__(self, variable: Variable, encoding: Encoding, distribution: Distribution) -> None:
        self.variable = variable
        self._encoding = encoding
        self._distribution = distribution  # of batch shape [1]
        self.parts: Callable[[], Sequence[Answer]] | None = None  # what each part of the model answers, if it has any
        self.given = ""  # what is known, in words

    @property
    def discrete(self) -> bool:
        """Whether :meth:`log_prob` is a log-probability and not a log-density."""
        return self._distribution.discrete

    @answering
    @doubted
    def log_prob(self, value: Any) -> Any:
        """The log-density per unit of the data (per day for times), or the log-probability of a level or whole number.

        Parameters
        ----------
        value
            One value, or a list of them.

        Returns
        -------
        Estimate, or an array for a list

        Examples
        --------
        >>> river = model.given(rooms=6)["river"]
        >>> bool(abs(sum(2.718281828 ** river.log_prob(["yes", "no"])) - 1) < 1e-6)
        True
        """
        model = self._encode(value)
        nats = self._distribution.log_prob(torch.as_tensor(model)[:, None])[:, 0].double().numpy()
        nats = nats + self._log_slope(model)
        return Estimate(float(nats[0])) if single(value) else nats

    @doubted
    def pdf(self, value: Any) -> Any:
        """The density; the probability where the variable is discrete, or the value one of its atoms.

        Parameters
        ----------
        value
            One value, or a list of them.

        Returns
        -------
        Estimate, or an array for a list

        Examples
        --------
        >>> model.given(rooms=6)["price"].pdf([30.0, 36.0, 42.0]).shape
        (3,)
        """
        density = np.exp(self.log_prob(value))
        return Estimate(float(density)) if single(value) else density

    @answering
    @doubted
    def cdf(self, value: Any) -> Any:
        """P(variable <= value), for a variable with an order.

        Parameters
        ----------
        value
            One value, or a list of them.

        Returns
        -------
        Estimate, or an array for a list

        Examples
        --------
        >>> price = model.given(rooms=6)["price"]
        >>> price.cdf(20.0) < price.cdf(50.0)
        True
        """
        check_order(self.variable, "cdf")
        at = self._distribution.cdf(torch.as_tensor(self._encode(value))[:, None])[:, 0].double().numpy()
        return Estimate(float(at[0])) if single(value) else at

    @answering
    def _quantile(self, levels: NDArray[np.float64]) -> Any:
        at = self._distribution.quantile(torch.as_tensor(np.atleast_1d(levels))[:, None])[:, 0]
        values = self.decode(at.double().numpy())
        return one_value(values[0]) if levels.ndim == 0 else values

    def _interval(self, levels: NDArray[np.float64]) -> tuple[Any, Any]:
        low, high = self._quantile(levels)
        return one_value(low), one_value(high)

    @answering
    @doubted
    def _mean(self) -> Any:
        mean = self._moment(1)
        return as_time(mean, self.variable) if self.variable.kind == "datetime" else Estimate(mean)

    @answering
    @doubted
    def _std(self) -> Estimate:
        mean = self._moment(1)
        return Estimate(max(self._moment(2, mean), 0.0) ** 0.5)

    @answering
    @doubted
    def _probs(self) -> dict[Any, float]:
        if self.variable.atoms:
            atoms = self.log_prob(list(self.variable.atoms))
            return dict(zip(self.variable.atoms, (Estimate(float(np.exp(nats))) for nats in atoms), strict=True))
        codes = torch.arange(len(self.variable.levels), dtype=torch.float64)
        at = self._distribution.log_prob(codes[:, None])[:, 0].double().exp().tolist()
        return self._by_level([Estimate(probability) for probability in at])

    def _by_level(self, found: Sequence[float]) -> dict[Any, float]:
        levels = self.variable.levels
        if len(set(levels)) < len(levels):  # 1 and True are one key to Python, but two levels of a mixed column
            return dict(zip(map(repr, levels), found, strict=True))
        return dict(zip(levels, found, strict=True))

    @answering
    def _mode(self) -> Any:
        probabilities = self.probs() if self.variable.levels else self._atoms()
        if probabilities:
            return max(probabilities, key=lambda level: probabilities[level])
        grid = self.decode(self.spread(499))
        return one_value(grid[int(np.argmax(self.log_prob(grid)))])

    def _atoms(self) -> dict[Any, float]:
        """The atoms of a spiked variable that can happen: a range leaves out those beyond it."""
        found = self.probs() if self.kind == "spiked" else {}
        return {atom: probability for atom, probability in found.items() if probability > 0}

    @answering
    def hdi(self, level: float = 0.9) -> list[Any]:
        """The smallest set that holds the variable with this probability.

        Parameters
        ----------
        level
            The probability, between 0 and 1.

        Returns
        -------
        list
            Levels, the most probable first; or intervals (low, high), ascending.

        Examples
        --------
        >>> intervals = model.given(rooms=6)["price"].hdi(0.9)
        >>> all(low <= high for low, high in intervals)
        True
        """
        found = highest_density(self, level)
        return found if self.variable.levels else [(one_value(low), one_value(high)) for low, high in found]

    @answering
    def spread(self, count: int, left_out: float = 0.001) -> NDArray[np.float64]:
        """Model values, ascending, that divide the distribution into parts of equal probability: for plots and grids.

        Parameters
        ----------
        count
            How many parts.
        left_out
            The probability left out at each end.

        Returns
        -------
        array

        Examples
        --------
        >>> points = model.given(rooms=6)["price"].spread(20)
        >>> bool((points[1:] > points[:-1]).all())
        True
        """
        levels = torch.as_tensor(fine_levels(count, left_out))
        return np.asarray(self._distribution.quantile(levels[:, None])[:, 0].double().numpy())

    @answering
    def cumulative(self, model: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(variable <= value) for model values; :meth:`cdf` takes values in the units of the data.

        Parameters
        ----------
        model
            Model values.

        Returns
        -------
        array

        Examples
        --------
        >>> price = model.given(rooms=6)["price"]
        >>> below = price.cumulative(price.spread(20))
        >>> bool(below.min() >= 0 and below.max() <= 1)
        True
        """
        return np.asarray(self._distribution.cdf(torch.as_tensor(model)[:, None])[:, 0].double().numpy())

    def mass(self, model: float) -> float:
        """P(variable = this model value): above 0 for whole numbers, levels and atoms alone.

        Parameters
        ----------
        model
            A model value.

        Returns
        -------
        float

        Examples
        --------
        >>> model.given(rooms=6)["price"].mass(0.0)
        0.0
        """
        if not inside(model, "[-inf, inf]"):
            raise UserError(f"expected a model value, which is a number, got {model!r}")
        at = torch.tensor([[float(model)]], dtype=torch.float64)
        return float(self._distribution.mass_at(at)[0, 0])

    def decode(self, model: NDArray[np.float64]) -> NDArray[Any]:
        """Model values in the units of the data: numbers, times or levels, whatever texts the column is written in.

        Parameters
        ----------
        model
            Model values.

        Returns
        -------
        array

        Examples
        --------
        >>> price = model.given(rooms=6)["price"]
        >>> len(price.decode(price.spread(20))) == len(price.spread(20))
        True
        """
        return np.asarray(in_units(self._encoding.codec(self.variable.name), np.asarray(model, dtype=np.float64)))

    def measure(self, model: NDArray[np.float64]) -> NDArray[np.float64]:
        """Model values as numbers in the units of the data: days since 1970 for times.

        Parameters
        ----------
        model
            Model values.

        Returns
        -------
        array

        Examples
        --------
        >>> price = model.given(rooms=6)["price"]
        >>> price.measure(price.spread(20)).dtype.kind
        'f'
        """
        return self._encoding.measure(self.variable.name, model)

    @answering
    def measured_quantiles(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Quantiles as numbers in the units of the data: days since 1970 for times.

        For drawings; :meth:`quantile` gives times as times.

        Parameters
        ----------
        levels
            Numbers between 0 and 1.

        Returns
        -------
        array

        Examples
        --------
        >>> model.given(rooms=6)["price"].measured_quantiles(np.array([0.25, 0.75])).shape
        (2,)
        """
        at = self._distribution.quantile(torch.as_tensor(levels)[:, None])[:, 0]
        return self.measure(at.double().numpy())

    @answering
    def measured_cdf(self, values: NDArray[np.float64], *, below: bool = False) -> NDArray[np.float64]:
        """P(variable <= value) for numbers in the units of the data: days since 1970 for times.

        Parameters
        ----------
        values
            The numbers.
        below
            P(variable < value) instead.

        Returns
        -------
        array

        Examples
        --------
        >>> price = model.given(rooms=6)["price"]
        >>> bool(np.isclose(price.measured_cdf(np.array([20.0]))[0], price.cdf(20.0)))
        True
        """
        model = self._encoding.codec(self.variable.name).from_measure(np.asarray(values, dtype=np.float64))
        reached = self.cumulative(model)
        return reached - [self.mass(value) for value in model] if below else reached

    @answering
    @doubted
    def entropy(self) -> Estimate:
        """The entropy in nats; differential, in the units of the data, where the variable is continuous.

        A differential entropy may be negative, and entropies of columns in different units do not compare.

        Returns
        -------
        Estimate

        Examples
        --------
        >>> model.given(rooms=6)["price"].entropy() < model["price"].entropy()
        True
        """
        nats = float(self._distribution.entropy()[0])
        if self._distribution.discrete:
            return Estimate(nats)
        shift = self._distribution.expect(lambda z: torch.as_tensor(self._log_slope(z.double().numpy())))
        return Estimate(nats - float(shift[0]))

    @answering
    def _sample(self, n: int, generator: torch.Generator) -> Any:
        check_room("n", n, 1)
        # By inversion, for levels as well: a code is a quantile of the codes.
        levels = torch.rand(n, generator=generator, dtype=torch.float64)
        return self._cells(self._distribution.quantile(levels[:, None])[:, 0].double().numpy())

    def _moment(self, power: int, centre: float = 0.0) -> float:
        name = self.variable.name

        def in_units(z: torch.Tensor) -> torch.Tensor:
            numbers = self._encoding.measure(name, z.double().numpy())
            return torch.as_tensor((numbers - centre) ** power)

        return float(self._distribution.expect(in_units)[0])

    def _log_slope(self, model: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._encoding.codec(self.variable.name).log_slope(model)

    def _encode(self, value: Any) -> NDArray[np.float64]:
        if single(value):
            return np.array([self._encoding.encode_value(self.variable.name, value)])
        model, known = self._encoding.encode_column(self.variable.name, value)
        if not known.all():
            raise UserError(
                f"{self.variable.name!r}: expected values, but the one at position {int(np.argmin(known))} is missing"
            )
        return model

    def _cells(self, model: NDArray[np.float64]) -> NDArray[Any]:
        """Model values as cells of the column: in its precision, and as it writes them."""
        return np.asarray(self._encoding.decode_column(self.variable.name, model, recorded=True))


def as_time(days: float, variable: Variable) -> pd.Timestamp:
    """Days since 1970 as a time on the variable's clock."""
    return as_times(np.array([days]), variable)[0]


def as_times(days: NDArray[np.float64], variable: Variable) -> pd.DatetimeIndex:
    """Days since 1970 as times on the variable's clock."""
    # Whole days are counted on the wall clock of the zone, finer times since 1970 everywhere.
    microseconds = np.rint(days.clip(EARLIEST, LATEST) * MICROSECONDS_PER_DAY).astype(np.int64)
    return from_ticks(microseconds, variable.zone, wall=variable.resolution == "day")


def single(value: Any) -> bool:
    """Whether this is one value and not a list of them."""
    return isinstance(value, str) or not isinstance(value, Sequence | np.ndarray | pd.Series)
