"""How often every stretch of symbols occurs in a text.

A stretch of k symbols is a number of k digits in base ``symbols``, so the stretches of one length are a sorted array,
those that continue a stretch are neighbours, and its last k - 1 symbols are a remainder.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, UInt8
from numpy.typing import NDArray

from anyorder.errors import UserError

Integers = NDArray[np.int64]
AT_ONCE = 1 << 24  # symbols of a text that are counted together: bounds the memory, not the result
MOST_COUNTED = 2**31 - 1  # of one stretch, as they are kept in four bytes


def longest(symbols: int) -> int:
    """The longest stretch that is a number of 63 bits."""
    return int(63 / math.log2(max(symbols, 2)))


@dataclass(frozen=True)
class Grams:
    """``keys[k - 1]``: the stretches of k symbols that occur, sorted; ``counts[k - 1]``: how often each does."""

    symbols: int
    keys: tuple[Integers, ...]
    counts: tuple[Integers, ...]

    @property
    def order(self) -> int:
        """The length of the longest stretches."""
        return len(self.keys)

    @classmethod
    def count(cls, codes: Int[np.ndarray, " positions"], symbols: int, order: int) -> Grams:
        """Count the stretches of a text, part after part; shorter ones only where a longest one begins."""
        order = min(order, longest(symbols), len(codes))
        keys, counts = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        for start in range(0, len(codes) - order + 1, AT_ONCE):
            found = _distinct(np.sort(_keys(codes[start : start + AT_ONCE + order - 1], symbols, order)))
            keys, counts = _merged((keys, counts), found)
        levels = [(keys, counts)]
        for _ in range(order - 1):
            keys, counts = _summed(keys // symbols, counts)
            levels.append((keys, counts))
        return cls(
            symbols, tuple(keys for keys, _ in reversed(levels)), tuple(counts for _, counts in reversed(levels))
        )

    def packed(self) -> dict[str, Integers]:
        """What a model file keeps of each stretch: its last symbol, how many continue it, and how often it occurs."""
        continued = [
            np.bincount(np.searchsorted(shorter, longer // self.symbols), minlength=len(shorter))
            for shorter, longer in zip(self.keys, self.keys[1:], strict=False)
        ]
        return {
            "symbol": np.concatenate([keys % self.symbols for keys in self.keys]),
            "continued": np.concatenate([np.zeros(0, dtype=np.int64), *continued]),
            "count": np.concatenate(self.counts).clip(max=MOST_COUNTED),
        }

    @classmethod
    def unpacked(
        cls,
        symbols: int,
        sizes: Sequence[int],
        symbol: Int[np.ndarray, " all"] | UInt8[np.ndarray, " all"],
        continued: Int[np.ndarray, " inner"] | UInt8[np.ndarray, " inner"],
        count: Int[np.ndarray, " all"],
    ) -> Grams:
        """What :meth:`packed` packed; ``sizes``: how many stretches there are of each length."""
        if len(sizes) > longest(symbols) or any((part < 0).any() for part in (symbol, continued)):
            raise UserError("the counts of this model are damaged (some are impossible); fit or copy it again")
        ends = np.cumsum(sizes)
        last, counted = np.split(symbol.astype(np.int64), ends[:-1]), np.split(count.astype(np.int64), ends[:-1])
        inner = np.split(continued.astype(np.int64), ends[:-1])
        keys = [last[0]]
        for level in range(1, len(sizes)):
            if inner[level - 1].sum() != sizes[level]:
                raise UserError("the counts of this model are damaged (they do not add up); fit or copy it again")
            keys.append(np.repeat(keys[-1], inner[level - 1]) * symbols + last[level])
        for level, own in enumerate(keys):
            if (np.diff(own) <= 0).any() or (last[level] >= symbols).any() or (counted[level] < 1).any():
                raise UserError("the counts of this model are damaged (they are out of order); fit or copy it again")
        return cls(symbols, tuple(keys), tuple(counted))

    def continued_backwards(self) -> Iterator[Integers]:
        """For each length but the longest: how many different symbols occur before each stretch."""
        for length, (shorter, longer) in enumerate(zip(self.keys, self.keys[1:], strict=False), start=1):
            suffix = longer % self.symbols**length
            index = np.searchsorted(shorter, suffix).clip(max=len(shorter) - 1)
            # The last symbols of a text begin no stretch of full length, so a suffix may be missing among the shorter
            # ones; and a stretch that begins the text has nothing before it, which counts as if one symbol were there.
            yield np.bincount(index[shorter[index] == suffix], minlength=len(shorter)).clip(min=1)


def _keys(codes: Int[np.ndarray, " positions"], symbols: int, order: int) -> Integers:
    """The stretch that begins at each position."""
    count = len(codes) - order + 1
    keys = np.zeros(count, dtype=np.int64)
    for offset in range(order):
        keys *= symbols
        keys += codes[offset : offset + count]
    return keys


def _distinct(ordered: Integers) -> tuple[Integers, Integers]:
    return _summed(ordered, np.ones(len(ordered), dtype=np.int64))


def _summed(ordered: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """The different ones among sorted keys, and the sums of their counts."""
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    return ordered[first], np.add.reduceat(counts, first) if len(first) else counts


def _merged(one: tuple[Integers, Integers], other: tuple[Integers, Integers]) -> tuple[Integers, Integers]:
    if not len(one[0]):
        return other
    keys, counts = (np.concatenate(pair) for pair in zip(one, other, strict=True))
    order = np.argsort(keys, kind="stable")
    return _summed(keys[order], counts[order])
