r"""Many trees evaluated at once: by bit masks that are looked up and joined with "and" (after QuickScorer).

Give every leaf of a tree one bit. A node of which an input goes left rules out the leaves on its right, and the other
way round, so that the leaf that an input comes to is the one bit left over by all nodes of the tree:

$$\text{leaf}(x) = \bigwedge_{\text{nodes}} m_{\text{node}}(x) = \bigwedge_{\text{features } f} M_f(x_f), \qquad
M_f(x_f) = \bigwedge_{\text{nodes that ask for } f} m_{\text{node}}(x_f).$$

M_f changes only where x_f passes a threshold, so all its values are tabulated, for a block of trees side by side. A row
is then answered by one look-up for each feature and block, without a walk down any tree: a handful of array operations
for hundreds of trees, as quick for one row as for a row among a thousand. Inputs between the same thresholds get the
same scores, so equal ones are answered once.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from anyorder.networks.parts.tree_arrays import TreeArrays
from anyorder.networks.parts.tree_nodes import NEXT_TO_ZERO, WORD, Nodes

BLOCK_BYTES = 64  # of the masks of a block: a line of the cache
CHUNK_BYTES = 1 << 17  # of masks held at once: they and the values behind them should stay near the processor
MOST_LEAVES = 64  # of a tree: the bits of a word
MOST_LEVELS = 4096  # of a set
FREE_BYTES, MOST_TIMES = (
    1 << 22,
    32,
)  # what tables may take: so much in any case, and so many times the trees themselves
MANTISSA_BITS, EXPONENT_OF_ONE = 52, 1023  # of a float64
FEW = 64  # rows below which equal ones are not looked for


@dataclass(frozen=True, eq=False)
class Columns:
    """The places of inputs between thresholds: every column has some, and each place of each column a number."""

    features: Int[np.ndarray, " numerical"]
    thresholds: Any  # complex: the number of the column and the threshold, ascending
    first_threshold: Int[np.ndarray, " numerical"]
    first_place: Int[np.ndarray, " numerical"]
    unknown_place: Int[np.ndarray, " numerical"]
    level_features: Int[np.ndarray, " nominal"]
    level_place: Int[np.ndarray, " nominal"]
    levels: int

    def places(self, inputs: Float[np.ndarray, "rows features"]) -> Int[np.ndarray, "rows columns"]:
        """Where the inputs lie: first the columns of numbers, then those of levels."""
        cells = inputs[:, self.features]
        unknown = np.isnan(cells)
        # Complex numbers are ordered by their real parts first: one search serves all columns.
        wanted = np.empty(cells.shape, np.complex128)
        wanted.real = np.arange(cells.shape[1])
        wanted.imag = np.where(unknown | (np.abs(cells) <= NEXT_TO_ZERO), 0.0, cells)
        place = np.searchsorted(self.thresholds, wanted) - (self.first_threshold - self.first_place)
        place = np.where(unknown, self.unknown_place, place)
        if not len(self.level_features):
            return place
        codes = inputs[:, self.level_features]
        # Cut, not rounded; what is no level of any set is as good as unknown.
        level = np.where((codes > -1) & (codes < self.levels), codes, self.levels).astype(np.int64)
        return np.concatenate([place, self.level_place + level], axis=1)


@dataclass(frozen=True, eq=False)
class Masks:
    """Trees as tables of masks. ``rows``: for every place and block, which row of the table holds."""

    columns: Columns
    rows: Int[np.ndarray, "places blocks"]
    table: Any  # [rows, trees of a block], unsigned
    all_leaves: Any  # [trees], unsigned
    values: Float[np.ndarray, " trees_and_leaves"]
    base: Int[np.ndarray, " trees"]  # where the values of each tree begin, less what a float adds to an exponent
    starts: Int[np.ndarray, " some"]  # of the trees of every score that has any
    filled: Int[np.ndarray, " some"]  # which scores those are
    count: int

    @classmethod
    def of(cls, nodes: Nodes, trees: TreeArrays, score: Int[np.ndarray, " trees"], scores: int) -> Masks | None:
        """The tables of these trees; None where they cannot be had."""
        most = int(trees.leaf_counts.max(initial=1))
        if most > MOST_LEAVES or nodes.words.max(initial=0) * WORD > MOST_LEVELS or not len(nodes):
            return None
        kind: Any = np.uint16 if most <= 16 else np.uint32 if most <= 32 else np.uint64
        width = BLOCK_BYTES // np.dtype(kind).itemsize
        blocks = -(-len(score) // width)
        order = np.argsort(score, kind="stable")
        slot = np.empty(len(order), np.int64)
        slot[order] = np.arange(len(order))
        where = slot[nodes.tree]
        plan = _Plan.of(nodes, where // width, blocks)
        own = sum(getattr(trees, name).nbytes for name in ("split_leaves", "thresholds", "leaf_values"))
        if plan.row_count * BLOCK_BYTES + 4 * plan.place_count * blocks > max(FREE_BYTES, MOST_TIMES * own):
            return None
        left, right = _sides(trees, kind)
        table = plan.table(nodes, ~right, ~left, where % width, width)
        counts = trees.leaf_counts[order].astype(np.int64)
        leaves = np.ones(blocks * width, kind)  # of a tree that is not there, one leaf that adds nothing
        leaves[: len(order)] = np.array(np.iinfo(kind).max, kind) >> (kind(0).itemsize * 8 - counts).astype(kind)
        values = np.zeros((blocks * width, most))
        values[np.repeat(slot, trees.leaf_counts), _within(trees.leaf_counts)] = trees.leaf_values
        filled, starts = np.unique(score[order], return_index=True)
        base = np.arange(blocks * width) * most - EXPONENT_OF_ONE
        return cls(plan.columns, plan.rows, table, leaves, values.reshape(-1), base, starts, filled, scores)

    def scores(self, inputs: Float[np.ndarray, "rows features"]) -> Float[np.ndarray, "rows scores"]:
        places = self.columns.places(inputs)
        kept, back = _distinct(places)
        found = np.zeros((len(kept), self.count))
        if len(kept):
            found[:, self.filled] = self._sums(*self._shared(places[kept]), 0, len(self.filled))
        return found if back is None else found[back]

    def scores_of(
        self,
        inputs: Float[np.ndarray, "rows features"],
        groups: Sequence[Int[np.ndarray, " some"]],
        ends: Sequence[int],
    ) -> list[Float[np.ndarray, "some scores"]]:
        """Only the scores of each group of rows from one of the ``ends`` to the next: other trees are not asked."""
        places = self.columns.places(inputs)
        left, differ = self._shared(places) if len(places) else (self.all_leaves, places)
        if 0 < len(places) * left.nbytes <= CHUNK_BYTES:
            # So little that the steps cost more than what is looked up in them: all trees at once, and each row's own.
            every = np.zeros((len(places), self.count))
            every[:, self.filled] = self._sums(left, differ, 0, len(self.filled))
            return [every[rows, start:end] for rows, start, end in zip(groups, ends[:-1], ends[1:], strict=True)]
        found = []
        for rows, start, end in zip(groups, ends[:-1], ends[1:], strict=True):
            first, last = np.searchsorted(self.filled, [start, end]).tolist()
            own = np.zeros((len(rows), end - start))
            if len(rows) and first < last:
                own[:, self.filled[first:last] - start] = self._sums(left, differ[rows], first, last)
            found.append(own)
        return found

    def _shared(self, places: Int[np.ndarray, "rows columns"]) -> tuple[Any, Int[np.ndarray, "rows differing"]]:
        """What the columns leave in which all rows are alike, and the places in the others.

        What is unknown is unknown in all rows of most questions: such columns are looked up once for all.
        """
        same = (places == places[0]).all(axis=0)
        left = np.bitwise_and.reduce(self.table[self.rows[places[0, same]]], axis=0).reshape(-1) & self.all_leaves
        return left, places[:, ~same]

    def _sums(
        self, left: Any, places: Int[np.ndarray, "rows columns"], first: int, last: int
    ) -> Float[np.ndarray, "rows some"]:
        """Some of the scores that have trees, given what the columns leave in which the rows do not differ."""
        width = self.table.shape[1]
        begin = int(self.starts[first])
        stop = int(self.starts[last]) if last < len(self.starts) else len(self.base)
        blocks = slice(begin // width, -(-stop // width))
        trees = slice(blocks.start * width, blocks.stop * width)
        left, base, starts = left[trees], self.base[trees], self.starts[first:last] - trees.start
        rows, size = self.rows[:, blocks], max(1, CHUNK_BYTES // left.nbytes)
        parts = []
        for start in range(0, len(places), size):
            here = places[start : start + size]
            masks = np.repeat(left[None], len(here), axis=0).reshape(len(here), -1, width)
            looked_up = np.empty_like(masks) if here.shape[1] else masks
            for column in here.T:
                self.table.take(rows[column], axis=0, out=looked_up, mode="clip")  # by far the quickest mode
                np.bitwise_and(masks, looked_up, out=masks)
            # Which bit is set, where it is one alone: the exponent of the number.
            leaf = masks.reshape(len(here), -1).astype(np.float64).view(np.int64)
            leaf >>= MANTISSA_BITS
            leaf += base
            reached = self.values.take(leaf, mode="clip")[:, : stop - trees.start]
            parts.append(np.add.reduceat(reached, starts, axis=1))
        return np.concatenate(parts) if len(parts) > 1 else parts[0]


@dataclass(frozen=True, eq=False)
class _Plan:
    """How many rows the table has for which block and column, and where each begins."""

    columns: Columns
    rows: Int[np.ndarray, "places blocks"]
    first_row: Int[np.ndarray, " nodes"]  # of the block and column of every node
    after: Int[np.ndarray, " nodes"]  # how many rows further an input is beyond its threshold
    unknown_row: Int[np.ndarray, " nodes"]
    sets: Bool[np.ndarray, "sets levels"]
    pair_of_row: Int[np.ndarray, " rows"]
    row_count: int
    place_count: int

    @classmethod
    def of(cls, nodes: Nodes, block: Int[np.ndarray, " nodes"], blocks: int) -> _Plan:
        # A column is a feature as a number, or, after those, one as a level.
        most = int(nodes.feature.max()) + 1
        columns, number = np.unique(nodes.feature + most * nodes.nominal, return_inverse=True)
        numerical = int((columns < most).sum())
        sets = nodes.holds(np.arange(len(nodes.words))[:, None], np.arange(int(nodes.words.max(initial=0)) * WORD))
        levels = int(np.flatnonzero(sets.any(axis=0)).max(initial=-1)) + 1
        asked = np.flatnonzero(number < numerical)
        # The thresholds of every column, and the rank of every node's among all of them.
        keys = np.empty(len(asked), np.complex128)
        keys.real, keys.imag = number[asked], nodes.threshold[asked] + 0.0
        thresholds, rank = np.unique(keys, return_inverse=True)
        counts = np.bincount(thresholds.real.astype(np.int64), minlength=numerical)
        first = np.cumsum(counts) - counts
        sizes = np.concatenate([counts + 2, np.full(len(columns) - numerical, levels + 1)])
        places = np.cumsum(sizes) - sizes
        found = Columns(
            features=columns[:numerical],
            thresholds=thresholds,
            first_threshold=first,
            first_place=places[:numerical],
            unknown_place=places[:numerical] + counts + 1,
            level_features=columns[numerical:] - most,
            level_place=places[numerical:],
            levels=levels,
        )
        # A pair is a block and one of the columns that its trees ask for; it has a row for every threshold of its own.
        pairs, pair = np.unique(number * blocks + block, return_inverse=True)
        pair = pair.reshape(-1)
        own, local = np.unique(pair[asked] * (len(thresholds) + 1) + rank.reshape(-1), return_inverse=True)
        pair_of, rank_of = np.divmod(own, len(thresholds) + 1)
        held = np.bincount(pair_of, minlength=len(pairs))
        column_of = pairs // blocks
        row_counts = np.where(column_of < numerical, held + 2, levels + 1)
        first_row = np.cumsum(row_counts) - row_counts
        total = int(row_counts.sum())
        after = np.zeros(len(number), np.int64)
        after[asked] = local.reshape(-1) - (np.cumsum(held) - held)[pair[asked]] + 1
        rows = np.full((int(sizes.sum()), blocks), total, np.int32)  # a row that rules nothing out
        for column, (start, size) in enumerate(zip(places.tolist(), sizes.tolist(), strict=True)):
            here = np.flatnonzero(column_of == column)
            within = pairs[here] % blocks
            if column >= numerical:
                rows[start : start + size, within] = first_row[here] + np.arange(size)[:, None]
                continue
            steps = np.zeros((size - 1, blocks), np.int32)
            entries = np.flatnonzero(np.isin(pair_of, here, kind="sort"))
            steps[rank_of[entries] - first[column] + 1, pairs[pair_of[entries]] % blocks] = 1
            rows[start : start + size - 1, within] = first_row[here] + np.cumsum(steps, axis=0)[:, within]
            rows[start + size - 1, within] = first_row[here] + held[here] + 1
        return cls(
            columns=found,
            rows=rows,
            first_row=first_row[pair],
            after=after,
            unknown_row=(first_row + row_counts - 1)[pair],
            sets=sets[:, :levels],
            pair_of_row=np.repeat(np.arange(len(pairs)), row_counts),
            row_count=total + 1,
            place_count=int(sizes.sum()),
        )

    def table(self, nodes: Nodes, go_left: Any, go_right: Any, slot: Int[np.ndarray, " nodes"], width: int) -> Any:
        """The masks of every row: what the nodes leave that send such an input left, and those that send it right."""
        number = np.flatnonzero(~nodes.nominal)
        below, above = (np.full((self.row_count, width), np.iinfo(go_left.dtype).max, go_left.dtype) for _ in range(2))
        first, after, where = self.first_row[number], self.after[number], slot[number]
        np.bitwise_and.at(above, (first + after, where), go_right[number])
        np.bitwise_and.at(below, (first + after - 1, where), go_left[number])
        # From row to row of a pair the nodes add up: those passed from below, those still ahead from above.
        pair = np.append(self.pair_of_row, -1)
        unknown = np.zeros(self.row_count, bool)
        unknown[self.unknown_row] = True
        step, longest = 1, int(np.bincount(self.pair_of_row).max(initial=1))
        while step < longest:
            same = np.flatnonzero((pair[step:] == pair[:-step]) & ~unknown[step:])
            above[same + step] &= above[same]
            below[same] &= below[same + step]
            step *= 2
        table = above & below
        np.bitwise_and.at(
            table,
            (self.unknown_row, slot),
            np.where(nodes.unknown_left, go_left, go_right),
        )
        sets = np.flatnonzero(nodes.nominal)
        if len(sets):
            held = self.sets[nodes.set_of[sets]]
            rows = self.first_row[sets][:, None] + np.arange(held.shape[1])
            masks = np.where(held, go_left[sets][:, None], go_right[sets][:, None])
            np.bitwise_and.at(table, (rows, np.broadcast_to(slot[sets][:, None], rows.shape)), masks)
        return table


def _sides(trees: TreeArrays, kind: Any) -> tuple[Any, Any]:
    """The leaves on the left and on the right of every node, as bits."""
    counts = trees.leaf_counts.astype(np.int64) - 1
    first = np.cumsum(counts) - counts
    most = int(counts.max(initial=0))
    held = np.repeat((kind(1) << np.arange(most + 1, dtype=kind))[None], len(counts), axis=0)
    left, right = (np.zeros(len(trees.split_leaves), kind) for _ in range(2))
    for step in reversed(range(most)):  # the youngest nodes first: what they split is whole again before them
        tree = np.flatnonzero(counts > step)
        node = first[tree] + step
        leaf = trees.split_leaves[node]
        left[node], right[node] = held[tree, leaf], held[tree, step + 1]
        held[tree, leaf] |= held[tree, step + 1]
    return left, right


def _within(counts: Int[np.ndarray, " parts"]) -> Int[np.ndarray, " all"]:
    """0, 1, 2, ... in every part."""
    sizes = counts.astype(np.int64)
    found: Int[np.ndarray, " all"] = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return found


def _distinct(
    places: Int[np.ndarray, "rows columns"],
) -> tuple[Int[np.ndarray, " kept"], Int[np.ndarray, " rows"] | None]:
    """Rows that stand for all, and which of them stands for each; None for the latter where all differ."""
    every = np.arange(len(places))
    if len(places) < FEW:
        return every, None
    # Rows that differ seldom have the same sum of products; where they do, none is taken for another.
    _, kept, back = np.unique((places * _factors(places.shape[1])).sum(axis=1), return_index=True, return_inverse=True)
    back = back.reshape(-1)
    if 2 * len(kept) > len(places) or not np.array_equal(places[kept[back]], places):
        return every, None
    return kept, back


@functools.cache
def _factors(count: int) -> Int[np.ndarray, " count"]:
    """As many odd numbers, always the same."""
    found: Int[np.ndarray, " count"] = np.random.default_rng(0).integers(1, 1 << 62, count, dtype=np.int64) | 1
    return found
