"""Six tables with holes made on purpose: the same ones for every method.

Real tables, split once into training and test rows. Some known cells are then hidden in both parts; a method sees what
is left, and is scored on the hidden cells of the test rows. Cells that are really missing stay missing and are never
scored. Two mechanisms hide cells:

- ``mcar``, completely at random: every cell is hidden with probability 0.3, whatever its row holds.
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

SETS = ("concrete", "energy", "yacht", "penguins", "adult", "kidney")
GENERATED = "generated"
"""A table of a smoke run."""
NUMERIC_SETS = ("concrete", "energy", "yacht")
MECHANISMS = ("mcar", "mar")
HIDDEN = 0.3
"""The share of cells that a mechanism hides."""
SLOPE = 2.0
"""How strongly hiding depends on the kept columns: two standard units move the odds by e to the fourth."""
ADULT_ROWS = 3000
FILES = {
    "concrete": "uci_concrete.csv.gz",
    "energy": "uci_energy.csv.gz",
    "yacht": "uci_yacht.csv.gz",
    "penguins": "palmer_penguins.csv.gz",
    "adult": "adult_train.csv.gz",
    "kidney": "chronic_kidney_disease.csv.gz",
}
# Everything else is a number, also grades such as specific gravity, albumin and sugar, which have an order.
CATEGORICAL = {
    "penguins": ("species", "island", "sex"),
    "adult": (
        *("workclass", "education", "marital_status", "occupation"),
        *("relationship", "race", "sex", "native_country", "income"),
    ),
    "kidney": ("rbc", "pc", "pcc", "ba", "htn", "dm", "cad", "appet", "pe", "ane", "class"),
}


@dataclass(frozen=True)
class Table:
    """A complete table (as far as it is complete) and its split."""

    name: str
    frame: pd.DataFrame
    train: NDArray[np.int64]
    test: NDArray[np.int64]

    @property
    def kinds(self) -> dict[str, str]:
        """What every column is, for all methods alike: ``numeric`` or ``categorical``."""
        levels = CATEGORICAL.get(self.name, ())
        return {name: "categorical" if name in levels else "numeric" for name in self.frame.columns}

    @property
    def levels(self) -> dict[str, list[str]]:
        """The levels of each categorical column, in all rows, sorted."""
        return {
            name: sorted(self.frame[name].dropna().unique())
            for name, kind in self.kinds.items()
            if kind == "categorical"
        }


def load(name: str, seed: int = 0) -> Table:
    """The named table from the folder ANYORDER_DATA: split 0 of the standard ones, else a seeded 80/20 split."""
    folder = os.environ.get("ANYORDER_DATA")
    if folder is None or not (Path(folder) / FILES[name]).exists():
        raise FileNotFoundError(f"{FILES[name]} is not at hand; set ANYORDER_DATA to the folder that has it")
    frame = pd.read_csv(Path(folder) / FILES[name], na_values=["?", ""], keep_default_na=True)
    rng = np.random.default_rng(seed)
    if name == "adult":
        frame = frame.iloc[np.sort(rng.choice(len(frame), ADULT_ROWS, replace=False))].reset_index(drop=True)
    levels = CATEGORICAL.get(name, ())
    for column in frame.columns:
        frame[column] = frame[column].astype("object" if column in levels else "float64")
    if name in NUMERIC_SETS:
        with np.load(Path(folder) / f"uci_{name}_splits.npz") as splits:
            return Table(name, frame, splits["train_0"].astype(int), splits["test_0"].astype(int))
    order = rng.permutation(len(frame))
    cut = round(0.8 * len(frame))
    return Table(name, frame, np.sort(order[:cut]), np.sort(order[cut:]))


def hide(frame: pd.DataFrame, mechanism: str, seed: int = 1) -> NDArray[np.bool_]:
    """Which known cells to hide, as booleans in the shape of the frame."""
    rng = np.random.default_rng(seed)
    known = frame.notna().to_numpy()
    chance = {"mcar": completely_at_random, "mar": at_random}[mechanism](frame, rng)
    return np.asarray((rng.random(frame.shape) < chance) & known)


def completely_at_random(frame: pd.DataFrame, rng: np.random.Generator) -> NDArray[np.float64]:
    """The same chance for every cell."""
    return np.full(frame.shape, HIDDEN)


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
