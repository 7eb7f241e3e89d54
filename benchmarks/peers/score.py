"""Scores of draws for hidden cells: how good is the whole predictive distribution, not only its middle.

With draws x_1..x_m for a cell whose truth is y:

- **CRPS**, the fair estimator: mean |x_k - y| - sum_{k<l} |x_k - x_l| / (m (m - 1)). It is unbiased for the CRPS of the
  distribution that the draws come from, so a method is not punished for answering with few draws (the plain empirical
  CRPS divides by m^2 and is kept beside it). In training standard deviations of the column.
- **Coverage** of the central 90 % interval between the quantiles of the draws at the plotting positions k / (m + 1)
  (Weibull), for which the truth of a perfect sampler lies inside with probability 0.9, however small m is; NumPy's
  default positions would give it 81 % at m = 20. A column that repeats its values puts the truth *on* the
  ends of the interval, so even a perfect sampler covers more than 90 %: ``coverage_ties`` breaks ties between truth and
  draws at random (in expectation) and is exactly 0.9 for a perfect sampler of any distribution.
- **RMSE** of the mean of the draws, in training standard deviations.
- **Log-loss** and accuracy for levels: frequencies of draws, with 1/K added for each of K levels: (n + 1/K) / (m + 1).
  The same for every method: one that could state its probabilities exactly is not asked for them here.

- **Beyond**: the share of draws, and of true cells, outside the range of the training cells, and how far the furthest
  draw lies outside, in widths of that range.

Every mean is over the hidden test cells of all columns of that kind. Two methods are compared on the same cells, and
the error of the difference is that of a bootstrap of test rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

NOMINAL = 0.9

Array = NDArray[np.float64]


def crps(draws: Array, truth: Array, fair: bool = True) -> Array:
    """CRPS of each cell from ``draws`` [draws, cells]: unbiased (fair), or of the draws' own step function."""
    count = len(draws)
    away = np.abs(draws - truth).mean(axis=0)
    # sum_{k<l} |x_k - x_l| of sorted draws: the k-th smallest has the sign + (k-1) times and - (m-k) times.
    signs = 2 * np.arange(1, count + 1) - count - 1
    spread = (signs[:, None] * np.sort(draws, axis=0)).sum(axis=0)
    return np.asarray(away - spread / (count * (count - 1) if fair else count**2))


def covered(draws: Array, truth: Array, nominal: float = NOMINAL) -> NDArray[np.bool_]:
    """Whether the truth lies in the closed central interval between Weibull quantiles of the draws."""
    tail = (1 - nominal) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0, method="weibull")
    return np.asarray((low <= truth) & (truth <= high))


def covered_ties(draws: Array, truth: Array, nominal: float = NOMINAL) -> Array:
    """The same by rank: the chance of being inside when ties between truth and draws are broken at random.

    Under a perfect sampler the truth's rank among the draws is uniform on 0..m. The interval ends at rank (m + 1) tail,
    so rank r has the share of [r, r + 1] that lies inside; with ties the ranks that breaking could give are averaged.
    """
    count = len(draws)
    tail = (1 - nominal) / 2 * (count + 1)
    ranks = np.arange(count + 1)
    inside = np.minimum(ranks + 1, count + 1 - tail) - np.maximum(ranks, tail)
    summed = np.concatenate([[0.0], np.cumsum(np.clip(inside, 0, 1))])
    below = (draws < truth).sum(axis=0)
    equal = (draws == truth).sum(axis=0)
    return np.asarray((summed[below + equal + 1] - summed[below]) / (equal + 1))


def log_loss(draws: Array, truth: Array, levels: int) -> Array:
    """Minus the log of the smoothed frequency of the true level, cell by cell."""
    hits = (draws == truth).sum(axis=0)
    return np.asarray(-np.log((hits + 1 / levels) / (len(draws) + 1)))


def is_mode(draws: Array, truth: Array, levels: int) -> NDArray[np.bool_]:
    """Whether the most frequent level (the first of equals) is the true one."""
    counts = np.stack([(draws == level).sum(axis=0) for level in range(levels)])
    return np.asarray(counts.argmax(axis=0) == truth)


@dataclass(frozen=True)
class Cells:
    """One score of every hidden cell, with the row that the cell stands in."""

    rows: NDArray[np.int64]
    values: Array


def cell_scores(
    draws: Array, truth: Array, hidden: NDArray[np.bool_], train: Array, levels: dict[int, int]
) -> dict[str, Cells]:
    """All scores of ``draws`` [draws, rows, columns]; ``levels`` maps categorical columns to how many levels they have.

    ``train`` are the training rows as seen (NaN where unknown); their deviation is the unit of each numeric column, and
    their least and greatest cell the range beyond which a draw, or the truth, is counted.
    """
    if not np.isfinite(draws[:, hidden]).all():
        raise ValueError(f"{(~np.isfinite(draws[:, hidden])).sum()} draws of hidden cells are missing or infinite")
    found: dict[str, list[tuple[NDArray[np.int64], Array]]] = {}
    for column in range(truth.shape[1]):
        rows = np.flatnonzero(hidden[:, column])
        drawn, true = draws[:, rows, column], truth[rows, column]
        if column in levels:
            mine: dict[str, NDArray[Any]] = {
                "log_loss": log_loss(drawn, true, levels[column]),
                "accuracy": is_mode(drawn, true, levels[column]),
            }
        else:
            unit = float(np.nanstd(train[:, column])) or 1.0
            low, high = np.nanmin(train[:, column]), np.nanmax(train[:, column])
            out = np.maximum(drawn - high, low - drawn)
            mine = {
                "crps": crps(drawn, true) / unit,
                "crps_plain": crps(drawn, true, fair=False) / unit,
                "coverage": covered(drawn, true),
                "coverage_ties": covered_ties(drawn, true),
                "squares": ((drawn.mean(axis=0) - true) / unit) ** 2,
                "draws_beyond": (out > 0).mean(axis=0),
                "truth_beyond": (true < low) | (true > high),
                "furthest": np.maximum(out, 0).max(axis=0, initial=0) / (high - low if high > low else 1.0),
            }
        for name, values in mine.items():
            found.setdefault(name, []).append((rows, np.asarray(values, dtype=float)))
    return {name: Cells(*map(np.concatenate, zip(*columns, strict=True))) for name, columns in found.items()}


def means(cells: dict[str, Cells]) -> dict[str, Any]:
    """The mean of every score, the root of the mean square, the furthest draw of all, and how many cells there are."""
    out: dict[str, Any] = {name: float(one.values.mean()) for name, one in cells.items() if len(one.values)}
    if "squares" in out:
        out["rmse"] = float(np.sqrt(out.pop("squares")))
        out["furthest"] = float(cells["furthest"].values.max())
    for label, name in {"numeric_cells": "crps", "categorical_cells": "log_loss"}.items():
        out[label] = len(cells[name].values) if name in cells else 0
    return out


def paired_error(
    mine: Sequence[Cells], best: Sequence[Cells], repeats: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """The difference of two methods' mean scores over the same cells, and its standard error, by the bootstrap of rows.

    One entry for each hiding of the same table; a row that is tested in several of them is drawn with all its cells, so
    that its cells are never taken for independent ones. The mean is over hidings, each with its own mean over cells.
    """
    together = np.unique(np.concatenate([one.rows for one in mine]))
    rng = np.random.default_rng(seed)
    times = rng.multinomial(len(together), np.full(len(together), 1 / len(together)), repeats).astype(float)
    whole, drawn = 0.0, np.zeros(repeats)
    for one, other in zip(mine, best, strict=True):
        assert np.array_equal(one.rows, other.rows)
        place = np.searchsorted(together, one.rows)
        sums = np.bincount(place, one.values - other.values, len(together))
        counts = np.bincount(place, minlength=len(together)).astype(float)
        whole += sums.sum() / counts.sum() / len(mine)
        drawn += (times @ sums) / np.maximum(times @ counts, 1) / len(mine)
    return float(whole), float(drawn.std(ddof=1))


def mean_rank(values: pd.DataFrame) -> pd.Series:
    """Mean over rows (tables) of each method's rank, 1 = smallest; a method that failed there comes last."""
    return values.rank(axis=1, method="average", na_option="bottom").mean(axis=0)
