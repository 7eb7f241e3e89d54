"""Trees walked down level by level, all rows and all trees at once: for those that are too large for masks.

Some ten times slower than :mod:`.tree_masks`, and without any limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int

from anyorder.networks.parts.tree_arrays import TreeArrays
from anyorder.networks.parts.tree_nodes import NEXT_TO_ZERO, Nodes

AT_ONCE = 1 << 20  # trees times rows: bounds the memory, not the result


@dataclass(frozen=True, eq=False)
class Walked:
    """A place is a node, or the number of nodes and a leaf."""

    nodes: Nodes
    roots: Int[np.ndarray, " trees"]
    left: Int[np.ndarray, " nodes"]
    right: Int[np.ndarray, " nodes"]
    values: Float[np.ndarray, " leaves"]
    starts: Int[np.ndarray, " some"]  # of the trees of every score that has any
    filled: Int[np.ndarray, " some"]  # which scores those are
    count: int

    @classmethod
    def of(cls, nodes: Nodes, trees: TreeArrays, score: Int[np.ndarray, " trees"], scores: int) -> Walked:
        """These trees, of which each adds to one of the scores."""
        leaves = trees.leaf_counts.astype(np.int64)
        first_leaf = len(nodes) + np.cumsum(leaves) - leaves
        first_node = np.cumsum(leaves - 1) - (leaves - 1)
        left, right = (
            np.where(child < 0, first_leaf[nodes.tree] + ~child, first_node[nodes.tree] + child)
            for child in trees.children()
        )
        order = np.argsort(score, kind="stable")
        filled, starts = np.unique(score[order], return_index=True)
        roots = np.where(leaves > 1, first_node, first_leaf)[order]
        return cls(nodes, roots, left, right, trees.leaf_values, starts, filled, scores)

    def scores(self, inputs: Float[np.ndarray, "rows features"]) -> Float[np.ndarray, "rows scores"]:
        """The sums over all trees; NaN in the inputs is unknown."""
        found = np.zeros((len(inputs), self.count))
        size = max(1, AT_ONCE // max(len(self.roots), 1))
        for start in range(0, len(inputs), size):
            here = slice(start, start + size)
            if len(self.filled):
                found[here, self.filled] = self._sums(inputs[here])
        return found

    def scores_of(
        self,
        inputs: Float[np.ndarray, "rows features"],
        groups: Sequence[Int[np.ndarray, " some"]],
        ends: Sequence[int],
    ) -> list[Float[np.ndarray, "some scores"]]:
        """The scores of each group of rows, from one of the ``ends`` to the next."""
        # Those few trees for which there are no masks are all asked.
        own = zip(groups, pairwise(ends), strict=True)
        return [self.scores(inputs[rows])[:, start:end] for rows, (start, end) in own]

    def _sums(self, inputs: Float[np.ndarray, "rows features"]) -> Float[np.ndarray, "rows some"]:
        place = np.tile(self.roots, len(inputs))
        while len(inside := np.flatnonzero(place < len(self.nodes))):
            node = place[inside]
            cell = inputs[inside // len(self.roots), self.nodes.feature[node]]
            cell = np.where(np.abs(cell) <= NEXT_TO_ZERO, 0.0, cell)
            place[inside] = np.where(self._goes_left(node, cell), self.left[node], self.right[node])
        reached = self.values[place - len(self.nodes)].reshape(len(inputs), -1)
        sums: Float[np.ndarray, "rows some"] = np.add.reduceat(reached, self.starts, axis=1)
        return sums

    def _goes_left(self, node: Int[np.ndarray, " cells"], cell: Float[np.ndarray, " cells"]) -> Bool[np.ndarray, "..."]:
        nodes = self.nodes
        left: Bool[np.ndarray, "..."] = np.where(
            np.isnan(cell), nodes.unknown_left[node], cell <= nodes.threshold[node]
        )
        level = np.flatnonzero(nodes.nominal[node])
        if len(level):
            code = cell[level]
            valid = (code > -1) & (code < 2**31)  # cut, not rounded
            held = nodes.holds(nodes.set_of[node[level]], np.where(valid, code, 0).astype(np.int64))
            left[level] = valid & held
        return left
