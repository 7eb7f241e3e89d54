"""Tables with holes made on purpose: the same ones for every method.

The tables of ``table_sets.py``, thinned to 20 columns, each split into training and test rows by a seed. Some
known cells are then hidden in both parts; a method sees what is left, and is scored on the hidden cells of the test
rows. Cells that are really missing stay missing and are never scored. Three mechanisms hide cells:

- ``mcar``, completely at random: every cell is hidden with probability 0.3, whatever its row holds.
- ``varied``: completely at random too, but every row has a chance of its own, uniform between 0 and 0.8: some rows are
  nearly whole, others nearly empty.
- ``mar``, at random: a third of the columns, drawn once, are always kept. The chance that the cell of another column j
  is hidden in row i is

      logistic(a_j + 2 * sum_k w_jk z_ik),

  where z_ik is the kept cell k of the row in standard units (levels get a standard normal number each; a cell that
  is really missing counts as 0), w_j is a random direction of length one, and a_j is such that the chance is 0.3 on the
  average over all rows. So whether a cell is hidden depends on what is always seen, and on nothing else.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import table_sets

SETS = table_sets.NAMES
GENERATED = "generated"
"""A table of a smoke run."""
STANDARD_SPLITS = ("concrete", "energy", "yacht")
MECHANISMS = ("mcar", "mar", "varied")
SEEDS = (0, 1)
HIDDEN = 0.3
"""The share of cells that a mechanism hides."""
MOST_OF_A_ROW = 0.8
WIDEST = 20
SLOPE = 2.0
"""How strongly hiding depends on the kept columns: two standard units move the odds by e to the fourth."""


@dataclass(frozen=True)
class Table:
    """A complete table (as far as it is complete), what its columns are for all methods alike, and its split."""

    name: str
    frame: pd.DataFrame
    kinds: dict[str, str]
    levels: dict[str, list[str]]
    train: NDArray[np.int64]
    test: NDArray[np.int64]


def load(name: str, seed: int = 0) -> Table:
    """The named table with the split of that number where there are standard ones, else a seeded 80/20 split."""
    table = table_sets.load(name, widest=WIDEST)
    if name in STANDARD_SPLITS:
        with np.load(Path(os.environ["ANYORDER_DATA"]) / f"uci_{name}_splits.npz") as splits:
            train, test = splits[f"train_{seed}"].astype(int), splits[f"test_{seed}"].astype(int)
    else:
        order = np.random.default_rng(seed).permutation(len(table.frame))
        cut = round(0.8 * len(order))
        train, test = np.sort(order[:cut]), np.sort(order[cut:])
    return Table(name, table.frame, table.kinds, table.levels, train, test)


def hide(frame: pd.DataFrame, mechanism: str, seed: int = 1) -> NDArray[np.bool_]:
    """Which known cells to hide, as booleans in the shape of the frame."""
    rng = np.random.default_rng(seed)
    known = frame.notna().to_numpy()
    chance = {"mcar": completely_at_random, "varied": row_by_row, "mar": at_random}[mechanism](frame, rng)
    return np.asarray((rng.random(frame.shape) < chance) & known)


def completely_at_random(frame: pd.DataFrame, rng: np.random.Generator) -> NDArray[np.float64]:
    """The same chance for every cell."""
    return np.full(frame.shape, HIDDEN)


def row_by_row(frame: pd.DataFrame, rng: np.random.Generator) -> NDArray[np.float64]:
    """The same chance for every cell of a row, another one for every row."""
    return np.repeat(rng.uniform(0, MOST_OF_A_ROW, (len(frame), 1)), frame.shape[1], axis=1)


def at_random(frame: pd.DataFrame, rng: np.random.Generator) -> NDArray[np.float64]:
    """The chance of every cell under the law above; 0 in the kept columns."""
    columns = frame.shape[1]
    kept = np.sort(rng.choice(columns, round(columns / 3), replace=False))
    seen = np.column_stack([standard_units(frame.iloc[:, column], rng) for column in kept])
    chance = np.zeros(frame.shape)
    for column in np.setdiff1d(np.arange(columns), kept):
        direction = rng.standard_normal(len(kept))
        slope = SLOPE * seen @ (direction / np.linalg.norm(direction))
        chance[:, column] = logistic(slope + intercept(slope))
    return chance


def standard_units(column: pd.Series, rng: np.random.Generator) -> NDArray[np.float64]:
    """Mean 0 and deviation 1 over the known cells; levels are given a number each first; unknown cells are 0."""
    if not pd.api.types.is_numeric_dtype(column):
        levels = sorted(column.dropna().unique())
        column = column.map(dict(zip(levels, rng.standard_normal(len(levels)), strict=True))).astype(float)
    deviation = column.std(ddof=0)
    return ((column - column.mean()) / (deviation if deviation > 0 else 1.0)).fillna(0.0).to_numpy()


def intercept(slope: NDArray[np.float64]) -> float:
    """The a for which the mean of logistic(a + slope) is the wanted share, by bisection: the mean grows with a."""
    low, high = -50.0, 50.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if logistic(slope + middle).mean() < HIDDEN else (low, middle)
    return (low + high) / 2


def logistic(value: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-value))
