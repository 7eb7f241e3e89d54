r"""Which columns go together: mutual information of every pair, on rows that nobody has learned from.

$$I(i; j) \approx \tfrac12\,\mathrm{mean}\,[\log p(x_i \mid x_j) - \log p(x_i) + \log p(x_j \mid x_i) - \log p(x_j)],$$

the mean over rows. A model may say less well what a column is like when it knows nothing than when it is told a column
that has nothing to do with it. So log p(x_i | x_j') with x_j' from another row stands in the place of log p(x_i) where
it is greater: of two columns that are independent both are the same. One pass that knows column j alone answers for all
others, so a table of d columns takes 2 d passes. What chance could have made counts as nothing.

Of two normal columns with the correlation r the information is -log(1 - r^2) / 2, so sqrt(1 - exp(-2 I)) is how strong
a correlation would tell as much (Linfoot 1957).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float

from anyorder.model import AnyOrderModel
from anyorder.support.threads import answering
from anyorder.tasks.unseen_rows import Judge
from anyorder.variables.context import context_mask

MOST_COLUMNS = 40
CELLS = 300_000  # rows times the square of columns
MOST_ROWS = 500
AT_ONCE = 2_048  # rows of one pass
MOST_NATS = 6.0  # that one row counts for: more is the same to a person, and one odd row must not be the mean
LEAST_NATS = 0.01
SURE = 3.0  # standard errors: among many pairs some are large by chance


@dataclass(frozen=True)
class Pair:
    """Two columns and how much one tells about the other, in nats; ``like``: the correlation that tells as much."""

    one: str
    other: str
    nats: float
    error: float

    @property
    def like(self) -> float:
        return like_correlation(self.nats)


@dataclass(frozen=True)
class Dependence:
    """Mutual information of all pairs of some columns, in nats, and its standard error; NaN on the diagonal."""

    columns: tuple[str, ...]
    nats: Float[np.ndarray, "columns columns"]
    error: Float[np.ndarray, "columns columns"]

    def told(self) -> Float[np.ndarray, "columns columns"]:
        """The information beyond what chance could have made, else 0."""
        sure = (self.nats > LEAST_NATS) & (self.nats > SURE * self.error)
        return np.where(sure, self.nats, 0.0)

    def pairs(self) -> list[Pair]:
        """The pairs that tell of each other, the strongest first."""
        told = np.triu(self.told(), 1)
        rows, columns = np.nonzero(told)
        order = np.argsort(-told[rows, columns], kind="stable")
        return [
            Pair(self.columns[i], self.columns[j], float(self.nats[i, j]), float(self.error[i, j]))
            for i, j in zip(rows[order].tolist(), columns[order].tolist(), strict=True)
        ]

    def about(self, column: str) -> list[str]:
        """The columns that tell most about one, the strongest first."""
        return [
            pair.other if pair.one == column else pair.one for pair in self.pairs() if column in (pair.one, pair.other)
        ]


def like_correlation(nats: float) -> float:
    """The correlation of two normal columns that tell as much of each other."""
    return math.sqrt(-math.expm1(-2 * max(nats, 0.0)))


def rows_for(columns: int) -> int:
    """How many rows a matrix of so many columns is taken over."""
    return min(MOST_ROWS, CELLS // max(columns, 1) ** 2)


@answering
@torch.no_grad()
def dependence(
    model: AnyOrderModel, frame: pd.DataFrame, judges: Sequence[Judge], columns: Sequence[str]
) -> Dependence:
    """The information between each two of the columns, by what the judges say of rows that are new to them.

    Context is given.
    """
    values, observed = model.encoding.encode(frame)
    which = [model.schema.index(name) for name in columns]
    size = len(which)
    sums, rng = _Sums(size), np.random.default_rng(0)
    for part, rows in judges:
        if not len(rows):
            continue
        given, known = torch.as_tensor(values[rows]), observed[rows][:, which]
        # Context is known throughout: then it is the information beyond what that tells.
        always = torch.as_tensor(observed[rows] & context_mask(model.schema))
        before = _nats(part, given, always)[:, which]
        at_once = max(1, AT_ONCE // len(rows))
        for start in range(0, size, at_once):
            block = range(start, min(start + at_once, size))
            told = always.repeat(len(block), 1).view(len(block), *given.shape)
            own = given.repeat(len(block), 1).view(told.shape)
            others = own.clone()
            for number, column in enumerate(block):
                index, here = which[column], np.flatnonzero(known[:, column])
                told[number, here, index] = True
                mixed = rng.permutation(here)  # tables are often sorted: the next row is no other one
                others[number, mixed, index] = own[number, np.roll(mixed, 1), index]
            shape = (len(block), len(rows), size)
            after, shuffled = (
                _nats(part, each.flatten(0, 1), told.flatten(0, 1))[:, which].reshape(shape) for each in (own, others)
            )
            for number, column in enumerate(block):
                both = known & known[:, column, None]
                sums.add(column, both, (after[number] - before, after[number] - shuffled[number]))
    mean, error = sums.least()
    nats, errors = (mean + mean.T) / 2, np.sqrt(error**2 + error.T**2) / 2
    np.fill_diagonal(nats, np.nan)
    np.fill_diagonal(errors, np.nan)
    return Dependence(tuple(columns), nats, errors)


class _Sums:
    """Means and standard errors of two kinds of gains, for each pair of columns."""

    def __init__(self, size: int) -> None:
        self.count = np.zeros((size, size))
        self.total, self.squares = np.zeros((2, size, size)), np.zeros((2, size, size))

    def add(self, column: int, both: Bool[np.ndarray, "rows columns"], gains: tuple[np.ndarray, np.ndarray]) -> None:
        """Count the gains of one column, in rows that know it and the other one."""
        self.count[column] += both.sum(axis=0)
        for kind, gain in enumerate(gains):
            own = np.where(both, np.nan_to_num(gain).clip(-MOST_NATS, MOST_NATS), 0.0)
            self.total[kind, column] += own.sum(axis=0)
            self.squares[kind, column] += (own**2).sum(axis=0)

    def least(self) -> tuple[Float[np.ndarray, "columns columns"], Float[np.ndarray, "columns columns"]]:
        """The lesser mean of the two kinds, and its standard error."""
        count = np.maximum(self.count, 1)
        mean = self.total / count
        error = np.sqrt(np.maximum(self.squares / count - mean**2, 0.0) / np.maximum(count - 1, 1))
        less = mean[0] <= mean[1]
        return np.where(less, mean[0], mean[1]), np.where(less, error[0], error[1])


def _nats(model: AnyOrderModel, values: torch.Tensor, known: torch.Tensor) -> Float[np.ndarray, "rows variables"]:
    found = model.log_prob_beside(values.to(model.device), known.to(model.device))
    nats: Float[np.ndarray, "rows variables"] = found.double().cpu().numpy()
    return nats
