r"""The distribution of one variable when some of the evidence is a range: a weighted mixture of exact conditionals.

$$p(x \mid e, R) \approx \sum_m \bar w_m\, p(x \mid e, x_R^{(m)})$$

Every number is an :class:`~anyorder.questions.estimate.Estimate`. What is linear in the mixture (density, cdf, mean,
probabilities) has the error of a weighted mean; a quantile divides the error of the cdf by the density, a standard
deviation that of the variance by twice itself. Lists of values give plain numbers: ask for one to have its error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anyorder.distributions.sums import lattice_of
from anyorder.distributions.weighted import Weighted
from anyorder.questions.answer import Answer, as_time, single
from anyorder.questions.doubt import doubted
from anyorder.questions.estimate import Estimate, mean_of, weighted_mean
from anyorder.questions.highest_density import fine_levels
from anyorder.questions.one_variable import check_order
from anyorder.support.memory import check_room
from anyorder.support.threads import answering
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Variable

SURPRISES = 2000  # draws behind an entropy
GRID = 499  # points among which a mode is looked for
RESAMPLES = 100
TABLE = 1 << 14  # points between which a function of very many values is taken to be straight


class RangedAnswer(Answer):
    """p(variable | evidence with ranges): a mixture over draws, whose numbers carry standard errors.

    It is asked as any :class:`~anyorder.questions.answer.Answer`. Where the evidence can be given exactly, give it so:
    answers are then exact and faster. A quantile has a standard error where one level is asked for, and only for
    numbers: times and texts have none. That of a mode is the spread of the modes of resampled draws.

    Parameters
    ----------
    variable, encoding
        As in :class:`~anyorder.questions.answer.Answer`.
    mixture
        The exact conditionals, one a draw, with the weights of the draws.
    method
        How the numbers came about, in words.

    Examples
    --------
    >>> price = model.given(rooms=ao.Between(4, 6))["price"]
    >>> price.mean().exact, price.cdf(30.0).standard_error > 0
    (False, True)
    >>> price.quantile(0.5).standard_error > 0
    True
    """

    def __init__(self, variable: Variable, encoding: Encoding, mixture: Weighted, method: str) -> None:
        super().__init__(variable, encoding, mixture)
        self._mixture = mixture
        self.method = method

    @answering
    @doubted
    def log_prob(self, value: Any) -> Any:
        model = self._encode(value)
        nats = self._mixture.log_prob(torch.as_tensor(model)[:, None])[:, 0].numpy() + self._log_slope(model)
        if not single(value):
            return nats
        density = self._linear(lambda at: self._mixture.members.log_prob(at).double().exp(), model)
        relative = density.standard_error / density.value if density.value > 0 else 0.0
        return self._number(float(nats[0]), relative)

    @doubted
    def pdf(self, value: Any) -> Any:
        nats = self.log_prob(value)
        if not single(value):
            return np.exp(nats)
        return self._number(float(np.exp(nats.value)), float(np.exp(nats.value)) * nats.standard_error)

    @answering
    @doubted
    def cdf(self, value: Any) -> Any:
        check_order(self.variable, "cdf")
        model = self._encode(value)
        if not single(value):
            return self.cumulative(model)
        return self._linear(self._mixture.members.cdf, model)

    @answering
    def _quantile(self, levels: NDArray[np.float64]) -> Any:
        found = super()._quantile(levels)
        return found if levels.ndim else self._with_error(found)

    def _interval(self, levels: NDArray[np.float64]) -> tuple[Any, Any]:
        low, high = (self.quantile(level) for level in levels)  # one by one, since only one has an error
        return low, high

    @answering
    def _mode(self) -> Any:
        if self.variable.levels or self.variable.kind == "datetime" or self._atoms():
            return super()._mode()
        points = self.spread(GRID)
        each = self._mixture.each(lambda at: self._mixture.members.log_prob(at).double().exp(), _column(points)).numpy()
        each = each * np.exp(self._log_slope(points))[:, None]
        weights = self._weights()
        units = self.decode(points).astype(np.float64)
        draws = np.random.default_rng(0).multinomial(len(weights), np.full(len(weights), 1 / len(weights)), RESAMPLES)
        again = units[np.argmax((draws * weights) @ each.T, axis=1)]
        method = f"densest of {GRID} points, {self.method}, error by {RESAMPLES} resamples"
        return Estimate(float(units[np.argmax(each @ weights)]), float(again.std()), method)

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
            Levels, or intervals (low, high). The error of an end is that of the quantile that lies there.

        Examples
        --------
        >>> intervals = model.given(rooms=ao.Between(4, 6)).using(draws=16)["price"].hdi(0.9)
        >>> all(low <= high for low, high in intervals)
        True
        """
        found = super().hdi(level)
        if self.variable.levels:
            return found
        return [(self._with_error(low), self._with_error(high)) for low, high in found]

    def _with_error(self, found: Any) -> Any:
        """A quantile with its standard error: that of the cdf there, carried over to the value."""
        if not isinstance(found, int | float | np.number) or not np.isfinite(found):  # a time or a text has none
            return found
        at = self._encode(found)
        reached = self._linear(self._mixture.members.cdf, at)
        if self.discrete or bool(self._mixture.mass_at(_column(at))[0] > 0):
            # Where the cdf jumps: half the way between the quantiles one standard error below and above (Woodruff).
            step = max(reached.standard_error, self._linear(self._below, at).standard_error)
            band = np.clip([reached.value - step, reached.value + step], 1e-9, 1 - 1e-9)
            low, high = super()._quantile(band)
            return self._number(float(found), float(high - low) / 2 if step > 0 else 0.0)
        density = float(self._mixture.log_prob(_column(at))[0, 0])
        slope = float(np.exp(density + self._log_slope(at)[0]))
        return self._number(float(found), reached.standard_error / slope if slope > 0 else 0.0)

    def _below(self, at: torch.Tensor) -> torch.Tensor:
        """P(X < at) of each member."""
        return self._mixture.members.cdf(at).double() - self._mixture.members.mass_at(at).double()

    @answering
    @doubted
    def _mean(self) -> Any:
        mean = self._expected(1)
        return as_time(mean.value, self.variable) if self.variable.kind == "datetime" else mean

    @answering
    @doubted
    def _std(self) -> Estimate:
        variance = self._expected(2, self._expected(1).value)
        deviation = max(variance.value, 0.0) ** 0.5
        return self._number(deviation, variance.standard_error / (2 * deviation) if deviation > 0 else 0.0)

    @answering
    @doubted
    def _probs(self) -> dict[Any, float]:
        if self.variable.levels:
            mean, error = weighted_mean(self._weights(), self._by_draw())
            return self._by_level([self._number(m, e) for m, e in zip(mean.tolist(), error.tolist(), strict=True)])
        found = super()._probs()  # of atoms
        return {atom: self._linear(self._mixture.members.mass_at, self._encode(atom)) for atom in found}

    @answering
    @doubted
    def entropy(self) -> Estimate:
        if self.variable.levels:
            each = self._by_draw()
            found = weighted_mean(self._weights(), each)[0]
            logs = np.log(np.maximum(found, 1e-300))
            # The levels of one draw hang together: dH = -sum log(p) dp, taken draw by draw.
            _, error = weighted_mean(self._weights(), -(each * logs).sum(axis=1))
            return self._number(float(-(found * logs).sum()), float(error))
        # The mean surprise at draws of the mixture itself.
        drawn = self._mixture.draws(SURPRISES, torch.Generator().manual_seed(0))
        surprise = -self._mixture.log_prob(drawn[:, None])[:, 0].numpy() - self._log_slope(drawn.numpy())
        return mean_of(surprise, self.method)

    @answering
    def _sample(self, n: int, generator: torch.Generator) -> Any:
        check_room("n", n, 1)
        return self._cells(self._mixture.draws(n, generator).numpy())

    @answering
    def spread(self, count: int, left_out: float = 0.001) -> NDArray[np.float64]:
        # The cdf is inverted on a grid, twice: exact quantiles of the mixture would be a search for each.
        levels = fine_levels(count, left_out)
        ends = self._mixture.each(self._mixture.members.quantile, _column(np.array([left_out, 1 - left_out])))
        points = np.linspace(float(ends[0].min()), float(ends[1].max()), count + 1)
        for _ in range(2):
            points = np.interp(levels, self.cumulative(points), points)
        lattice = lattice_of(self._mixture.members) if self.discrete else None
        return points if lattice is None else np.unique(lattice.nearest(torch.as_tensor(points)).numpy())

    def _by_draw(self) -> NDArray[np.float64]:
        """The probability of every level given each draw, [draws, levels]."""
        codes = torch.arange(len(self.variable.levels), dtype=torch.float64)
        each = self._mixture.each(lambda at: self._mixture.members.log_prob(at).double().exp(), codes[:, None])
        return np.asarray(each.T.numpy())

    def _linear(self, function: Callable[[torch.Tensor], torch.Tensor], model: NDArray[np.float64]) -> Estimate:
        each = self._mixture.each(function, torch.as_tensor(model)[:, None])[0].numpy()
        mean, error = weighted_mean(self._weights(), each)
        return self._number(float(mean), float(error))

    def _expected(self, power: int, centre: float = 0.0) -> Estimate:
        def in_units(z: torch.Tensor) -> torch.Tensor:
            return torch.as_tensor((tabulated(self.measure, z.double().numpy()) - centre) ** power)

        each = self._mixture.members.expect(in_units).double().numpy()
        mean, error = weighted_mean(self._weights(), each)
        return self._number(float(mean), float(error))

    def _weights(self) -> NDArray[np.float64]:
        return np.asarray(self._mixture.weights.numpy())

    def _number(self, value: float, error: float) -> Estimate:
        return Estimate(value, error, self.method)


def tabulated(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A smooth function of many numbers, off a fine table of it: the error is far below that of the draws."""
    if values.size <= 4 * TABLE:
        return function(values)
    some = values.ravel()[:: values.size // TABLE]
    low, middle, high = np.quantile(some, [0.25, 0.5, 0.75])
    if not low < high or not np.isfinite(values).all():
        return function(values)
    # Evenly spaced near the middle, and ever wider apart where few of the values are.
    position = np.arcsinh((values - middle) / (high - low))
    first, last = float(position.min()), float(position.max())
    table = function(middle + (high - low) * np.sinh(np.linspace(first, last, TABLE)))
    position = (position - first) * ((TABLE - 1) / (last - first))
    before = position.astype(np.int64).clip(max=TABLE - 2)
    found: NDArray[np.float64] = table[before] + (position - before) * np.diff(table)[before]
    return found


def _column(values: NDArray[np.float64]) -> torch.Tensor:
    return torch.as_tensor(values)[:, None]
