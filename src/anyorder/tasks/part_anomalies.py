"""The least probable cells of a table larger than memory: those that were least probable in any block.

What can still be among them is kept, with its row; everything else of a block is forgotten. Where tails are set against
those of all other cells (:mod:`anyorder.tasks.unseen_rows`), :data:`COMPARED` rows stand for all of them, drawn by
their numbers: the same ones however the table is divided.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from anyorder.data.parts import PartedTable
from anyorder.model import AnyOrderModel
from anyorder.support.advance import tracked
from anyorder.support.checks import whole
from anyorder.support.notes import notes_heard
from anyorder.support.randomness import row_keys
from anyorder.tasks.anomalies import SPARE, Anomalies, least_probable, raw_scores
from anyorder.tasks.parts import block_rows, checked_columns, naming
from anyorder.variables.encoding import Unseen

COMPARED = 20_000  # rows whose tails stand for those of all


@dataclass
class _Found:
    """Rows by their numbers, with the surprise and the tail of each of their cells."""

    numbers: Int[np.ndarray, " rows"]
    nats: Float[np.ndarray, "rows variables"]
    tails: Float[np.ndarray, "rows variables"]
    frame: pd.DataFrame

    def take(self, rows: np.ndarray) -> _Found:
        return _Found(self.numbers[rows], self.nats[rows], self.tails[rows], self.frame.iloc[rows])

    def and_(self, other: _Found) -> _Found:
        return _Found(
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.nats, other.nats]),
            np.concatenate([self.tails, other.tails]),
            pd.concat([self.frame, other.frame]),
        )

    def least(self, count: int) -> _Found:
        """The rows that have one of the ``count`` least probable cells, by tails alone or by densities after them."""
        rank = np.where(np.isnan(self.tails), np.inf, self.tails).ravel()
        first = np.argsort(rank, kind="stable")[:count]
        beside = np.lexsort([-np.nan_to_num(self.nats).ravel(), rank])[:count]
        rows = np.unique(np.concatenate([first, beside]) // self.tails.shape[1])
        return self.take(rows)


@dataclass
class _Compared:
    """The tails of rows that stand for all."""

    numbers: Int[np.ndarray, " rows"] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    tails: list[Float[np.ndarray, "rows variables"]] = field(default_factory=list)

    def add(self, numbers: np.ndarray, tails: np.ndarray) -> None:
        every = np.concatenate([self.numbers, numbers])
        cells = np.concatenate([*self.tails, tails])
        kept = np.sort(np.argsort(row_keys(0, every), kind="stable")[:COMPARED])
        self.numbers, self.tails = every[kept], [cells[kept]]


def part_anomalies(model: AnyOrderModel, table: PartedTable, *, top: int = 10, unseen: Unseen = "refuse") -> Anomalies:
    """The ``top`` cells least probable given the rest of their rows; rows are called ``PART:NUMBER``."""
    top = whole("top", top)
    names = checked_columns(model, table, unseen)
    size = block_rows(model)
    cuts = [slice(start, min(start + size, table.rows)) for start in range(0, table.rows, size)]
    found: _Found | None = None
    compared = _Compared()

    def scored(number: int, first: int, rows: object) -> _Found:
        frame = table.frame(rows, names, first)
        nats, tails = raw_scores(model, frame, unseen)
        return _Found(np.arange(first, first + len(frame)), nats, tails, frame)

    ask = naming(model, table, unseen, scored)
    read = table.blocks([(cut.start, cut.stop) for cut in cuts])
    for cut, rows in zip(tracked(cuts, table.rows), read, strict=False):
        with notes_heard():
            block: _Found = ask(0, cut.start, rows)
        compared.add(block.numbers, block.tails)
        least = block.least(SPARE * top)
        found = (least if found is None else found.and_(least)).least(SPARE * top)
    assert found is not None
    labels = []
    for number in found.numbers.tolist():
        ((part, _, _),) = table.within(number, number + 1)
        labels.append(f"{part.name}:{number - part.first}")
    others = ~np.isin(compared.numbers, found.numbers)
    cells = compared.tails[0][others]
    frame = found.frame.set_axis(pd.Index(labels, dtype=object))
    return least_probable(model, frame, found.nats, found.tails, top, unseen, beside=cells[~np.isnan(cells)])
