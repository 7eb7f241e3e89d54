"""Classes found by halving: a tree of yes/no questions, each about the classes still in play.

For ordered classes (bins of a number, levels with an order) every question splits a run of neighbours in two of about
equal counts, so that log2(K) boosters see each cell and the first, coarse ones learn from all of them; atoms are
split from the continuum first. Levels without an order have no neighbours: one question names them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from anyorder.errors import UserError
from anyorder.support.checks import whole


class Split(NamedTuple):
    """A question about the classes low .. high - 1: is it one of ``middle`` .. high - 1? With middle = low: which?"""

    low: int
    middle: int
    high: int

    @property
    def answers(self) -> int:
        return 2 if self.middle > self.low else self.high - self.low

    def concerns(self, classes: Int[np.ndarray, " cells"]) -> Bool[np.ndarray, " cells"]:
        """Which cells are still in play when this is asked."""
        in_play: Bool[np.ndarray, " cells"] = (classes >= self.low) & (classes < self.high)
        return in_play

    def answer(self, classes: Int[np.ndarray, " cells"]) -> Int[np.ndarray, " cells"]:
        """The true answers for cells in play."""
        return (classes >= self.middle).astype(np.int64) if self.middle > self.low else classes - self.low


def all_at_once(count: int) -> list[list[Split]]:
    """One question for classes without an order."""
    return [[Split(0, 0, count)]]


def halves(counts: Float[np.ndarray, " classes"], atoms: int = 0) -> list[list[Split]]:
    """Questions that end in a single class, by depth; the first ``atoms`` classes are parted from the rest first."""
    depths: list[list[Split]] = []
    in_play = [(0, len(counts))]
    while in_play:
        splits = [Split(low, _middle(counts, low, high, atoms), high) for low, high in in_play if high - low > 1]
        if splits:
            depths.append(splits)
        in_play = [part for low, middle, high in splits for part in ((low, middle), (middle, high))]
    return depths


def check_questions(splits: Iterable[Split], classes: int) -> None:
    """Raise a ``UserError`` unless these questions, in this order, lead from all classes to every single one."""
    in_play = {(0, classes)}
    for split in splits:
        low, middle, high = (whole("splits", end, 0) for end in split)
        if (low, high) not in in_play or not low <= middle < high or high - low < 2:
            raise UserError(f"splits: {tuple(split)} does not follow from the questions before it")
        in_play.remove((low, high))
        if middle > low:
            in_play |= {(low, middle), (middle, high)}
    if any(high - low > 1 for low, high in in_play):
        raise UserError(f"splits: the questions do not tell all {classes} classes apart")


def ways(splits: Iterable[Split], classes: int) -> Int[np.ndarray, "classes depth"]:
    """The answers that lead to each class, all answers to all questions numbered in turn; padded with one more number.

    The questions must have been checked.
    """
    found: list[list[int]] = [[] for _ in range(classes)]
    total = 0
    for split in splits:
        for index in range(split.low, split.high):
            found[index].append(total + int(split.answer(np.array([index]))[0]))
        total += split.answers
    depth = max(map(len, found))
    return np.array([way + [total] * (depth - len(way)) for way in found], np.int64).reshape(classes, depth)


def _middle(counts: Float[np.ndarray, " classes"], low: int, high: int, atoms: int) -> int:
    if low < atoms < high:
        return atoms
    below = np.cumsum(counts[low:high])
    return low + 1 + int(np.argmin(np.abs(below[:-1] - below[-1] / 2)))
