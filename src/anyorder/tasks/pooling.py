r"""Rubin's rules: one estimate from several filled tables, its error widened by what was missing.

From m filled tables come estimates $Q_j$ with squared standard errors $U_j$. With $\bar U$ the mean of the $U_j$ and
$B$ the sample variance of the $Q_j$,

$$T = \bar U + (1 + 1/m) B, \qquad r = (1 + 1/m) B / \bar U, \qquad \lambda = (1 + 1/m) B / T,
\qquad \nu = (m - 1)(1 + 1/r)^2$$

(Rubin 1987). Where the complete table would leave $\nu_c$ degrees of freedom, Barnard and Rubin (1999) put
$\nu_o = \frac{\nu_c + 1}{\nu_c + 3} \nu_c (1 - \lambda)$ beside it: $1/\nu^* = 1/\nu + 1/\nu_o$. The share of
information lost to the holes is $\gamma = (r + 2/(\nu + 3)) / (r + 1)$; m tables instead of infinitely many have the
relative efficiency $(1 + \gamma/m)^{-1}$.

The rules ask for *proper* draws, which differ from table to table in the parameters too. `fill(draws=m)` draws all
tables from one fitted model: its intervals are a little short where much is missing. Draws from models fitted to
bootstrap samples of the rows, one a table, are proper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import stats

from anyorder.errors import UserError
from anyorder.support import html
from anyorder.support.checks import inside


@dataclass(frozen=True, repr=False)
class Pooled:
    """The result of one analysis on several filled tables, pooled entry by entry. Made by :func:`anyorder.pool`.

    Parameters
    ----------
    estimate
        The mean of the tables' estimates.
    within
        The mean of their squared standard errors.
    between
        The sample variance of the estimates over the tables.
    tables
        How many filled tables there were.
    complete_degrees_of_freedom
        What the analysis would have on a table without holes.
    names
        Names of the entries, where the estimates had any.

    Examples
    --------
    >>> pooled = ao.pool([1.0, 1.2, 0.9], [0.04, 0.05, 0.04])
    >>> bool(pooled.standard_error[0] > 0.2)  # wider than within one table
    True
    >>> bool(0 < pooled.fraction_missing_information[0] < 1)
    True
    """

    estimate: Float[np.ndarray, " entries"]
    within: Float[np.ndarray, " entries"]  # the mean of the squared standard errors
    between: Float[np.ndarray, " entries"]  # the variance over the filled tables
    tables: int
    complete_degrees_of_freedom: float = np.inf
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        found = zip(self.estimate.tolist(), self.standard_error.tolist(), strict=True)
        each = [f"{value:.4g} ± {error:.2g}" for value, error in found]
        each = [f"{name} {text}" for name, text in zip(self.names, each, strict=True)] if self.names else each
        return f"Pooled({', '.join(each[:6])}{', ...' if len(each) > 6 else ''}; over {self.tables} tables)"

    def _repr_html_(self) -> str:
        table = self.table()
        names = ["", *map(str, table.columns)]
        lines = [[label, *(f"{each:.4g}" for each in line)] for label, *line in table.itertuples()]
        return html.titled(f"Pooled over {self.tables} filled tables", html.table(names, lines, range(1, len(names))))

    @property
    def variance(self) -> Float[np.ndarray, " entries"]:
        """The total variance T: within the tables and between them."""
        return self.within + (1 + 1 / self.tables) * self.between

    @property
    def standard_error(self) -> Float[np.ndarray, " entries"]:
        """The root of :attr:`variance`."""
        return np.asarray(np.sqrt(self.variance))

    @property
    def relative_increase(self) -> Float[np.ndarray, " entries"]:
        """r: by how much the holes widen the variance."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (1 + 1 / self.tables) * self.between / self.within
        return np.where(self.between == 0, 0.0, ratio)

    @property
    def rubin_degrees_of_freedom(self) -> Float[np.ndarray, " entries"]:
        """Rubin's degrees of freedom, for a very long table: infinite where all fills gave the same estimate."""
        with np.errstate(divide="ignore"):
            return (self.tables - 1) * (1 + 1 / self.relative_increase) ** 2

    @property
    def degrees_of_freedom(self) -> Float[np.ndarray, " entries"]:
        """Degrees of freedom of the t interval: Rubin's, or Barnard and Rubin's if the complete table's are known."""
        rubin = self.rubin_degrees_of_freedom
        complete = self.complete_degrees_of_freedom
        if not np.isfinite(complete):
            return rubin
        share = self.relative_increase / (1 + self.relative_increase)
        share = np.where(np.isfinite(self.relative_increase), share, 1.0)  # within = 0: all of it is missing
        observed = (complete + 1) / (complete + 3) * complete * (1 - share)
        with np.errstate(divide="ignore"):
            return 1 / (1 / rubin + 1 / observed)

    @property
    def fraction_missing_information(self) -> Float[np.ndarray, " entries"]:
        """The share of the information about the estimate that the holes took."""
        ratio = self.relative_increase
        with np.errstate(invalid="ignore"):
            share = (ratio + 2 / (self.rubin_degrees_of_freedom + 3)) / (ratio + 1)
        return np.where(np.isfinite(ratio), share, 1.0)

    @property
    def relative_efficiency(self) -> Float[np.ndarray, " entries"]:
        """Efficiency of this many filled tables relative to infinitely many."""
        return 1 / (1 + self.fraction_missing_information / self.tables)

    def interval(self, level: float = 0.95) -> Float[np.ndarray, "entries 2"]:
        """The confidence interval of every entry, by Student's t.

        Parameters
        ----------
        level
            The confidence, between 0 and 1.

        Returns
        -------
        array
            [entries, 2]: lower and upper ends.

        Examples
        --------
        >>> ao.pool([[1.0, 5.0], [1.2, 5.5]], [[0.04, 0.1], [0.05, 0.1]]).interval(0.9).shape
        (2, 2)
        """
        if not 0 < level < 1:
            raise UserError(f"the level of an interval must be between 0 and 1, got {level!r}")
        freedom = np.maximum(self.degrees_of_freedom, 0.1)  # a table of nothing but holes: wide, not infinite
        reach = stats.t.ppf((1 + level) / 2, freedom) * self.standard_error
        return np.stack([self.estimate - reach, self.estimate + reach], axis=1)

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Estimates, standard errors, intervals and what the holes have cost, one line an entry.

        Parameters
        ----------
        level
            The confidence of the intervals, between 0 and 1.

        Returns
        -------
        DataFrame

        Examples
        --------
        >>> pooled = ao.pool([[1.0], [1.2]], [[0.04], [0.05]], names=["slope"])
        >>> pooled.table().index.tolist()
        ['slope']
        """
        low, high = self.interval(level).T
        columns = {
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "low": low,
            "high": high,
            "degrees_of_freedom": self.degrees_of_freedom,
            "missing_information": self.fraction_missing_information,
            "relative_efficiency": self.relative_efficiency,
        }
        return pd.DataFrame(columns, index=pd.Index(self.names) if self.names else None)


def pool(
    estimates: ArrayLike, variances: ArrayLike, *, degrees_of_freedom: float | None = None, names: Iterable[str] = ()
) -> Pooled:
    """Combine the results of one analysis on several filled tables, by Rubin's rules.

    Parameters
    ----------
    estimates
        [tables] or [tables, entries]: what the analysis found on each filled table.
    variances
        Their *squared* standard errors, of the same shape.
    degrees_of_freedom
        What the analysis would have on a table without holes (rows minus coefficients for a regression); with it short
        tables get the wider intervals of Barnard and Rubin.
    names
        Of the entries.

    Returns
    -------
    Pooled
        Estimates, standard errors, intervals, and how much information the holes have cost.

    Examples
    --------
    >>> pooled = ao.pool([1.0, 1.2, 0.9], [0.04, 0.05, 0.04])
    >>> low, high = pooled.interval(0.9)[0]
    >>> bool(low < 1.03 < high)
    True
    """
    found, squared = (np.asarray(numbers, dtype=np.float64) for numbers in (estimates, variances))
    if found.shape != squared.shape or found.ndim not in (1, 2):
        raise UserError(
            f"estimates and variances must both be [tables] or [tables, entries], got {found.shape}, {squared.shape}"
        )
    found, squared = (numbers.reshape(len(numbers), -1) for numbers in (found, squared))
    if len(found) < 2:
        raise UserError(f"pooling needs at least two filled tables, got {len(found)}; fill with draws=20, say")
    if not (np.isfinite(found).all() and np.isfinite(squared).all() and (squared >= 0).all()):
        raise UserError("estimates must be finite, and variances finite and not negative")
    if degrees_of_freedom is not None and not inside(degrees_of_freedom, "(0, inf]"):
        raise UserError(f"degrees_of_freedom must be above 0, got {degrees_of_freedom!r}")
    freedom = np.inf if degrees_of_freedom is None else float(degrees_of_freedom)
    between = found.var(axis=0, ddof=1)
    return Pooled(found.mean(axis=0), squared.mean(axis=0), between, len(found), freedom, tuple(names))


def pool_over(
    frames: Iterable[Any], function: Callable[[Any], Any], *, degrees_of_freedom: float | None = None
) -> Pooled:
    """``function`` on every filled table, then :func:`pool`.

    ``function(frame)`` gives ``(estimate, variance)``, numbers or vectors, or a fitted model with ``params`` and
    ``bse`` or ``cov_params()``, as statsmodels has them (then ``df_resid`` is read too).
    """
    estimates: list[Any] = []
    variances: list[Any] = []
    names: tuple[str, ...] = ()
    for frame in frames:
        result = function(frame)
        if not isinstance(result, tuple):
            names = tuple(map(str, getattr(getattr(result, "params", None), "index", ())))
            if degrees_of_freedom is None and np.isfinite(getattr(result, "df_resid", np.nan)):
                degrees_of_freedom = float(result.df_resid)
            result = _read(result)
        if len(result) != 2:
            raise UserError(f"the function must give (estimate, variance), got {len(result)} values")
        estimates.append(np.atleast_1d(np.asarray(result[0], dtype=np.float64)))
        variances.append(np.atleast_1d(np.asarray(result[1], dtype=np.float64)))
    if len({len(one) for one in estimates}) > 1:
        raise UserError(f"estimates differ in length from table to table: {[len(one) for one in estimates]}")
    return pool(estimates, variances, degrees_of_freedom=degrees_of_freedom, names=names)


def _read(result: Any) -> tuple[Any, Any]:
    if hasattr(result, "params") and hasattr(result, "bse"):
        return result.params, np.asarray(result.bse, dtype=np.float64) ** 2
    if hasattr(result, "params") and hasattr(result, "cov_params"):
        return result.params, np.diag(np.asarray(result.cov_params(), dtype=np.float64))
    raise UserError(
        f"cannot pool a {type(result).__name__}: the function must give (estimate, variance), "
        "or something with params and bse"
    )
