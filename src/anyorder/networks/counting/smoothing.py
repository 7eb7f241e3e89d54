r"""Probabilities of the next symbol from counts: interpolated Kneser-Ney with three discounts.

$$p_k(a \mid c) = \frac{n(ca) - D(n(ca))}{n(c)} + \gamma(c)\, p'_{k-1}(a \mid c'), \qquad
p'_k \text{ the same of } n'(ca) = |\{b : bca \text{ occurs}\}|,$$

c' being c without its first symbol, D one of three discounts for stretches that occurred once, twice or more (Chen and
Goodman 1999, from the counts of counts) and $\gamma(c)$ what they leave. Shorter contexts count in how many different
places a stretch occurs (p'), since they are asked where the longer one was not seen; but where no more than k - 1
symbols are known at all, the plain counts of k symbols come first (p), so there is such a law for every length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from anyorder.networks.counting.grams import Grams, Integers

Numbers = NDArray[np.float64]
DENSE = 1 << 20  # numbers of a table of all contexts of one length and all symbols


@dataclass(frozen=True)
class Discounted:
    """What stretches have left of their counts, over those of their contexts, and what each context gives away."""

    shares: Numbers
    given: Numbers

    @classmethod
    def of(cls, counts: Integers, first: Integers) -> Discounted:
        """``first``: where the stretches of each context begin."""
        total = np.add.reduceat(counts, first)
        off = _discounts(counts)[counts.clip(max=3)]
        sizes = np.diff(np.append(first, len(counts)))
        return cls((counts - off) / np.repeat(total, sizes), np.add.reduceat(off, first) / total)


def _discounts(counts: Integers) -> Numbers:
    """What is taken off a count of 0, 1, 2, and 3 or more: 0.5 if too few counts occur to tell."""
    often = np.bincount(counts.clip(max=5), minlength=6)[1:5].astype(np.float64)
    if not often.all():
        return np.array([0.0, 0.5, 0.5, 0.5])
    share = often[0] / (often[0] + 2 * often[1])
    found = [rank - (rank + 1) * share * often[rank] / often[rank - 1] for rank in (1, 2, 3)]
    return np.array([0.0, *np.clip(found, 0.01, [0.99, 1.99, 2.99])])


@dataclass(frozen=True)
class Level:
    """Stretches of one length behind their contexts: those of ``contexts[i]`` begin at ``first[i]``.

    ``plain``: by how often they occur; ``spread``: by how many symbols occur before them, None of the longest.
    """

    contexts: Integers
    first: Integers
    symbol: Integers
    plain: Discounted
    spread: Discounted | None

    @classmethod
    def of(cls, symbols: int, keys: Integers, counts: Integers, before: Integers | None) -> Level:
        contexts = keys // symbols
        first = np.flatnonzero(np.diff(contexts, prepend=-1))
        spread = None if before is None else Discounted.of(before, first)
        return cls(contexts[first], np.append(first, len(keys)), keys % symbols, Discounted.of(counts, first), spread)

    def law(self, *, top: bool) -> Discounted:
        """The plain one on ``top``, and the spread one below a longer one."""
        return self.plain if top or self.spread is None else self.spread

    def find(self, contexts: Integers) -> tuple[Integers, Bool[np.ndarray, " contexts"]]:
        """Where each context is, and whether it is there at all."""
        index = np.searchsorted(self.contexts, contexts).clip(max=len(self.contexts) - 1)
        return index, self.contexts[index] == contexts

    def add(self, probs: Numbers, rows: Integers, index: Integers, *, top: bool) -> None:
        """Turn probabilities after the shorter contexts of some rows into those after these ones, in place."""
        law = self.law(top=top)
        probs[rows] *= law.given[index, None]
        sizes = self.first[index + 1] - self.first[index]
        ends = np.cumsum(sizes)
        stretch = np.arange(ends[-1] if len(ends) else 0) + np.repeat(self.first[index] - (ends - sizes), sizes)
        probs[np.repeat(rows, sizes), self.symbol[stretch]] += law.shares[stretch]


class KneserNey:
    """The smoothed counts of a text, ready to be asked: tables for short contexts, a search for long ones."""

    def __init__(self, grams: Grams) -> None:
        self.symbols, self.order = grams.symbols, grams.order
        self.dense = 1  # the longest stretches of which there are tables
        while self.dense < self.order and self.symbols ** (self.dense + 1) <= DENSE:
            self.dense += 1
        before: list[Integers | None] = [*grams.continued_backwards(), None]
        self.levels = [
            Level.of(self.symbols, keys, counts, own)
            for keys, counts, own in zip(grams.keys, grams.counts, before, strict=True)
        ]
        even = np.full((1, self.symbols), 1 / self.symbols)
        self.plain, self.spread = [even], [even]  # by the length of the context and one: [contexts, symbols]
        for length in range(1, self.dense + 1):
            shorter = np.tile(self.spread[-1], (self.symbols if length > 1 else 1, 1))
            for tables, top in ((self.plain, True), (self.spread, False)):
                probs, level = shorter.copy(), self.levels[length - 1]
                level.add(probs, level.contexts, np.arange(len(level.contexts)), top=top)
                tables.append(probs)

    def after(self, contexts: Integers, length: int) -> Float[np.ndarray, "contexts symbols"]:
        """Probabilities of the next symbol after each of these contexts of ``length`` symbols."""
        if length < self.dense:
            return self.plain[length + 1][contexts]
        probs, rows = self.start(contexts), np.arange(len(contexts))
        for known in range(self.dense, length + 1):
            rows = self.lengthen(probs, rows, contexts[rows] % self.symbols**known, known, top=known == length)
        return probs

    def start(self, contexts: Integers) -> Float[np.ndarray, "contexts symbols"]:
        """Probabilities below those of contexts of ``dense`` symbols and more."""
        probs: Numbers = self.spread[self.dense][contexts % self.symbols ** (self.dense - 1)]
        return probs

    def lengthen(self, probs: Numbers, rows: Integers, contexts: Integers, length: int, *, top: bool) -> Integers:
        """Take the contexts of these rows into account, now of ``length`` symbols; return the rows that were seen."""
        level = self.levels[length]
        index, there = level.find(contexts)
        seen: Integers = rows[there]
        level.add(probs, seen, index[there], top=top)
        return seen
