"""Which rows a part of the model learns from, and by which others it is judged: one split, or folds that use them all.

A long table has rows to spare: one part learns from most of them and is judged by the rest. A short one is divided into
K folds, and for each of them a part learns from the rows outside it and is judged by those inside. So every row teaches
K - 1 parts and judges the one that has never seen it. A row's fold is that of its content
(:mod:`anyorder.variables.folds`), and can be told again when the model is asked. In a table that repeats itself that
would hide whole cases from a part, of which others have all there is: there rows are dealt out instead. Where a wide
table is to be fitted in little time, one part must do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Int

from anyorder.modalities.tables.options import TableOptions
from anyorder.networks import networks
from anyorder.variables.encoding import Encoding
from anyorder.variables.folds import row_hash
from anyorder.variables.schema import Schema

FEWEST_ROWS = 40  # of a table with folds: fewer would leave too little to judge by
MOST_REPEATED = 0.1  # share of rows that are copies of others, up to which content decides on the fold
SECONDS_A_COLUMN = 0.3  # of the budget, below which it cannot hold a network for every fold
EVEN = 0.5  # of an equal share that every fold has at least

RowNumbers = Int[np.ndarray, " some"]


@dataclass(frozen=True)
class Folds:
    """The rows of each part: ``training[k]`` to learn from, ``held_out[k]`` to judge by.

    ``by_content``: a row's fold can be told from its cells.
    """

    training: list[RowNumbers]
    held_out: list[RowNumbers]
    by_content: bool

    def __len__(self) -> int:
        return len(self.training)

    @property
    def recorded(self) -> int:
        """How many folds a model file speaks of: only those that can be told from a row."""
        return len(self) if self.by_content else 1


def divide(options: TableOptions, schema: Schema, table: pd.DataFrame, seed: int) -> Folds:
    """Folds for a short table, one split for another; the same ones for the same seed."""
    # Members of a blend answer beside each other, which a network that reads an order cannot.
    alone = networks.of(options.network).reads_order
    minutes = options.training.minutes
    hurried = minutes is not None and 60 * minutes < SECONDS_A_COLUMN * len(schema.answered)
    if options.folds > 1 and FEWEST_ROWS <= len(table) < options.folds_below and not alone and not hurried:
        return _folds(options.folds, schema, table, seed)
    order = np.random.default_rng(seed).permutation(len(table))
    most = min(options.most_validation_rows, len(table) - 2)
    held_out = int(np.clip(round(options.validation_share * len(table)), 2, most))
    return Folds([order[held_out:]], [order[:held_out]], by_content=False)


def _folds(count: int, schema: Schema, table: pd.DataFrame, seed: int) -> Folds:
    hashed = row_hash(*Encoding.fit(table, schema, "standard").cells(table))
    fold = (hashed % np.uint64(count)).astype(np.int64)
    repeated = 1 - len(np.unique(hashed)) / len(table)
    even = np.bincount(fold, minlength=count).min() >= EVEN * len(table) / count
    by_content = bool(repeated <= MOST_REPEATED and even)
    if not by_content:
        fold = np.random.default_rng(seed).permutation(len(table)) % count
    rows = np.arange(len(table))
    return Folds([rows[fold != k] for k in range(count)], [rows[fold == k] for k in range(count)], by_content)
