"""Six small tables and the fixed protocol under which they are compared.

Features and target together are the columns. Split 0 of the standard splits where there is one, a seeded 90/10 split
elsewhere. Standardised by the training part, then 0.05 standard deviations of Gaussian noise added once, so
that repeated values do not make densities infinite.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

EMBEDDED = {"breast cancer": load_breast_cancer, "diabetes": load_diabetes, "wine": load_wine}
SHARED = ("concrete", "yacht", "energy")
NOISE = 0.05


@dataclass(frozen=True)
class SmallSet:
    name: str
    train: pd.DataFrame
    test: pd.DataFrame


def load(name: str, seed: int = 0) -> SmallSet | None:
    """The named set, or None where its file is not at hand (set ANYORDER_DATA to the folder that has it)."""
    if name in EMBEDDED:
        bunch = EMBEDDED[name]()
        table = np.column_stack([bunch.data, bunch.target]).astype(float)
        order = np.random.default_rng(seed).permutation(len(table))
        cut = round(0.9 * len(table))
        train, test = order[:cut], order[cut:]
    else:
        folder = os.environ.get("ANYORDER_DATA")
        if folder is None or not (Path(folder) / f"uci_{name}.csv.gz").exists():
            return None
        table = pd.read_csv(Path(folder) / f"uci_{name}.csv.gz").to_numpy(dtype=float)
        with np.load(Path(folder) / f"uci_{name}_splits.npz") as splits:
            train, test = splits["train_0"], splits["test_0"]
    mean, deviation = table[train].mean(axis=0), table[train].std(axis=0)
    table = (table - mean) / np.where(deviation > 0, deviation, 1.0)
    table = table + NOISE * np.random.default_rng(seed + 1).standard_normal(table.shape)
    columns = [f"x{i}" for i in range(table.shape[1])]
    return SmallSet(name, pd.DataFrame(table[train], columns=columns), pd.DataFrame(table[test], columns=columns))


def conditional_queries(rows: int, variables: int, repeats: int, seed: int = 7) -> NDArray[np.bool_]:
    """Evidence masks, cardinality uniform on 0..variables-1, ``repeats`` for every row; the rest is asked."""
    rng = np.random.default_rng(seed)
    size = rng.integers(0, variables, (rows * repeats, 1))
    rank = rng.random((rows * repeats, variables)).argsort(axis=1).argsort(axis=1)
    return rank < size


def marginal_queries(rows: int, variables: int, repeats: int, seed: int = 8) -> NDArray[np.bool_]:
    """Asked masks, cardinality uniform on 1..variables (M_card); nothing is known, the rest is marginalised out."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, variables + 1, (rows * repeats, 1))
    rank = rng.random((rows * repeats, variables)).argsort(axis=1).argsort(axis=1)
    return rank < size
