"""Answer: the distribution of one variable given evidence, in the units of the data.

Exact, without sampling: one step of the model is a normalised one-dimensional distribution, and the encoding carries
it into the user's units with its Jacobian. Single numbers are :class:`~anyorder.questions.estimate.Estimate`: floats
that also carry a standard error (0 here) and a method; answers under ranges (:mod:`anyorder.questions.range_answer`)
read the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray

from anyorder.distributions.base import Distribution
from anyorder.errors import UserError
from anyorder.questions.estimate import Estimate
from anyorder.questions.highest_density import fine_levels, highest_density
from anyorder.variables.encoding import Encoding
from anyorder.variables.restore import EARLIEST, LATEST
from anyorder.variables.schema import Variable
from anyorder.variables.times import MICROSECONDS_PER_DAY, from_ticks


class Answer:
    """p(variable | evidence). Numbers for a numeric variable, probabilities of levels for the others."""

    def __init__(self, variable: Variable, encoding: Encoding, distribution: Distribution) -> None:
        self.variable = variable
        self._encoding = encoding
        self._distribution = distribution  # of batch shape [1]

    @property
    def kind(self) -> str:
        """The kind of the variable: ``continuous``, ``categorical``, ..."""
        return str(self.variable.kind)

    @property
    def discrete(self) -> bool:
        """Whether :meth:`log_prob` is a log-probability and not a log-density."""
        return self._distribution.discrete

    def __repr__(self) -> str:
        if self.variable.levels:
            best = sorted(self.probs().items(), key=lambda item: -item[1])[:3]
            return f"Answer({self.variable.name}: " + ", ".join(f"{k!r} {p:.3f}" for k, p in best) + ")"
        low, middle, high = self.quantile([0.05, 0.5, 0.95])
        return f"Answer({self.variable.name}: median {_short(middle)}, 90 % in {_short(low)} .. {_short(high)})"

    def log_prob(self, value: Any) -> Any:
        """Log-density (per unit of the data; per day for times) or log-probability; an array for an array."""
        model = self._encode(value)
        nats = self._distribution.log_prob(torch.as_tensor(model)[:, None])[:, 0].double().numpy()
        nats = nats + self._log_slope(model)
        return Estimate(float(nats[0])) if single(value) else nats

    def pdf(self, value: Any) -> Any:
        """The density at ``value`` (the probability, where the variable is discrete or ``value`` one of its atoms)."""
        density = np.exp(self.log_prob(value))
        return Estimate(float(density)) if single(value) else density

    def cdf(self, value: Any) -> Any:
        """P(variable <= value), for a variable with an order."""
        self._needs_order("cdf")
        at = self._distribution.cdf(torch.as_tensor(self._encode(value))[:, None])[:, 0].double().numpy()
        return Estimate(float(at[0])) if single(value) else at

    def quantile(self, level: ArrayLike) -> Any:
        """The least value whose cdf reaches ``level``; an array for an array."""
        self._needs_order("quantile")
        levels = np.asarray(level, dtype=float)
        if not bool(((levels >= 0) & (levels <= 1)).all()):
            raise UserError(f"quantile levels lie between 0 and 1, got {level!r}")
        if self.variable.kind in ("integer", "datetime") and bool(((levels == 0) | (levels == 1)).any()):
            raise UserError(f"{self.variable.name!r} has no least or greatest value; ask for levels inside 0 and 1")
        at = self._distribution.quantile(torch.as_tensor(np.atleast_1d(levels))[:, None])[:, 0]
        values = self._decode(at.double().numpy())
        return values[0] if levels.ndim == 0 else values

    def median(self) -> Any:
        """The value with half of the probability at or below it, for a variable with an order."""
        return self.quantile(0.5)

    def interval(self, level: float = 0.9) -> tuple[Any, Any]:
        """The central interval that holds the variable with probability ``level``."""
        low, high = self.quantile([(1 - level) / 2, (1 + level) / 2])
        return low, high

    def mean(self) -> Any:
        """The expectation, in the units of the data (a time for a datetime)."""
        self._needs_order("mean", distance=True)
        mean = self._moment(1)
        return as_time(mean, self.variable) if self.variable.kind == "datetime" else Estimate(mean)

    def std(self) -> Estimate:
        """The standard deviation, in the units of the data (days for a datetime)."""
        self._needs_order("std", distance=True)
        mean = self._moment(1)
        return Estimate(max(self._moment(2, mean), 0.0) ** 0.5)

    def probs(self) -> dict[Any, float]:
        """The probability of each level; of each atom, where the variable is spiked (they leave a rest)."""
        if self.variable.atoms:
            atoms = self.log_prob(list(self.variable.atoms))
            return dict(zip(self.variable.atoms, (Estimate(float(np.exp(nats))) for nats in atoms), strict=True))
        if not self.variable.levels:
            raise UserError(
                f"{self.variable.name!r} is {self.kind}: it has no list of levels; ask for quantile, mean or pdf"
            )
        codes = torch.arange(len(self.variable.levels), dtype=torch.float64)
        at = self._distribution.log_prob(codes[:, None])[:, 0].double().exp().tolist()
        return self._by_level([Estimate(probability) for probability in at])

    def _by_level(self, found: Sequence[float]) -> dict[Any, float]:
        levels = self.variable.levels
        if len(set(levels)) < len(levels):  # 1 and True are one key to Python, but two levels of a mixed column
            return dict(zip(map(repr, levels), found, strict=True))
        return dict(zip(levels, found, strict=True))

    def mode(self) -> Any:
        """The most probable level (or atom), or the point of highest density on a fine grid of quantiles."""
        probabilities = self.probs() if self.variable.levels else self._atoms()
        if probabilities:
            return max(probabilities, key=lambda level: probabilities[level])
        grid = self._decode(self.spread(499))
        return grid[int(np.argmax(self.log_prob(grid)))]

    def _atoms(self) -> dict[Any, float]:
        """The atoms of a spiked variable that can happen: a range leaves out those beyond it."""
        found = self.probs() if self.kind == "spiked" else {}
        return {atom: probability for atom, probability in found.items() if probability > 0}

    def hdi(self, level: float = 0.9) -> list[Any]:
        """The smallest set that holds the variable with probability ``level``: levels, or intervals (low, high)."""
        return highest_density(self, level)

    def spread(self, count: int, left_out: float = 0.001) -> NDArray[np.float64]:
        """So many model values, ascending, that share out the distribution but for ``left_out`` at each end."""
        levels = torch.as_tensor(fine_levels(count, left_out))
        return np.asarray(self._distribution.quantile(levels[:, None])[:, 0].double().numpy())

    def cumulative(self, model: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(variable <= value) for model values."""
        return np.asarray(self._distribution.cdf(torch.as_tensor(model)[:, None])[:, 0].double().numpy())

    def mass(self, model: float) -> float:
        """P(variable = this model value): above 0 for whole numbers and atoms alone."""
        at = torch.tensor([[model]], dtype=torch.float64)
        return float(self._distribution.mass_at(at)[0, 0])

    def decode(self, model: NDArray[np.float64]) -> NDArray[Any]:
        """Model values in the units of the data."""
        return self._decode(model)

    def measure(self, model: NDArray[np.float64]) -> NDArray[np.float64]:
        """Model values as numbers in the units of the data (days since 1970 for times)."""
        return self._encoding.measure(self.variable.name, model)

    def entropy(self) -> Estimate:
        """Entropy in nats (differential, in the units of the data, where the variable is continuous)."""
        nats = float(self._distribution.entropy()[0])
        if self._distribution.discrete:
            return Estimate(nats)
        shift = self._distribution.expect(lambda z: torch.as_tensor(self._log_slope(z.double().numpy())))
        return Estimate(nats - float(shift[0]))

    def sample(self, n: int = 1, seed: int = 0) -> Any:
        """``n`` independent draws."""
        if n < 0:
            raise UserError(f"cannot draw {n} values; give a number from 0 up")
        # By inversion, for levels as well: a code is a quantile of the codes.
        levels = torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        return self._decode(self._distribution.quantile(levels[:, None])[:, 0].double().numpy())

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
            raise UserError(f"{self.variable.name!r}: expected values, but number {int(np.argmin(known))} is missing")
        return model

    def _decode(self, model: NDArray[np.float64]) -> NDArray[Any]:
        return np.asarray(self._encoding.decode_column(self.variable.name, model))

    def _needs_order(self, what: str, *, distance: bool = False) -> None:
        if distance and self.variable.kind == "ordinal":
            raise UserError(
                f"{self.variable.name!r} is ordinal: its levels have an order but no distance, so no {what}; "
                "ask for median() or probs()"
            )
        if self.variable.kind in ("categorical", "boolean"):
            raise UserError(
                f"{self.variable.name!r} is {self.kind}: its levels have no order, so no {what}; ask for probs()"
            )


def as_time(days: float, variable: Variable) -> pd.Timestamp:
    """Days since 1970 as a time on the variable's clock."""
    inside = np.array([days]).clip(EARLIEST, LATEST)
    # Whole days are counted on the wall clock of the zone, finer times since 1970 everywhere.
    microseconds = np.rint(inside * MICROSECONDS_PER_DAY).astype(np.int64)
    return from_ticks(microseconds, variable.zone, wall=variable.resolution == "day")[0]


def single(value: Any) -> bool:
    """Whether this is one value and not a list of them."""
    return isinstance(value, str) or not isinstance(value, Sequence | np.ndarray | pd.Series)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
