"""Grown trees as plain arrays: what a model file holds of them, and what is checked before any of it is used.

A tree with n leaves has grown in n - 1 steps, each of which is a node. Step k took one of the k + 1 leaves that were
there and split it: the left part kept the leaf's number, the right part became leaf k + 1. So the leaves that were
split, in turn, are the shape of the tree, and every list of them with 0 <= leaf <= k is a tree: no cycle, no node with
two parents and no node without one can be written down. LightGBM numbers nodes and leaves in the same way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt8

from anyorder.errors import UserError

# What a node does with a cell, in LightGBM's bits: 1 asks for a set of levels, where the unknown goes right; without it
# 2 sends the unknown left; 8 says that there was something unknown to learn from, else it counts as 0.
CATEGORICAL = 1
DECISIONS = (0, 2, 8, 10, CATEGORICAL, CATEGORICAL + 8)
# The threshold of a node that only asks whether there is a number. It stands for infinity, since all that a model file
# holds is finite.
ANY_NUMBER = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """Trees one after the other; the nodes of each in the order in which it grew, then so the leaves."""

    leaf_counts: Int[np.ndarray, " trees"]
    split_leaves: Int[np.ndarray, " nodes"]  # the leaf that each node has split
    split_features: Int[np.ndarray, " nodes"]
    decisions: UInt8[np.ndarray, " nodes"]
    thresholds: Float[np.ndarray, " numerical"]  # of the nodes that ask for a number: up to here it goes left
    set_words: Int[np.ndarray, " sets"]  # of those that ask for a set of levels: how many words its bits take
    set_bits: Int[np.ndarray, " words"]  # these words, 32 bits each, the lowest bit first: which levels go left
    leaf_values: Float[np.ndarray, " leaves"]

    @classmethod
    def joined(cls, parts: Sequence[TreeArrays]) -> TreeArrays:
        """The trees of all parts, in turn."""
        return cls(**{name: np.concatenate([getattr(part, name) for part in (cls.none(), *parts)]) for name in DTYPES})

    @classmethod
    def none(cls) -> TreeArrays:
        """No tree at all."""
        return cls(**{name: np.zeros(0, dtype) for name, dtype in DTYPES.items()})

    def parts(self, counts: Sequence[int]) -> list[TreeArrays]:
        """Runs of so many trees each; together they must be all of them."""
        trees = np.cumsum(np.asarray(counts, dtype=np.int64))[:-1]
        leaves = _starts(self.leaf_counts)[trees]
        nodes = leaves - trees
        sets = _starts(self.decisions & CATEGORICAL)[nodes]
        cuts = {
            "leaf_counts": trees,
            "leaf_values": leaves,
            "thresholds": nodes - sets,
            "set_words": sets,
            "set_bits": _starts(self.set_words)[sets],
        }
        columns = {name: np.split(getattr(self, name), cuts.get(name, nodes)) for name in DTYPES}
        return [type(self)(**{name: columns[name][part] for name in DTYPES}) for part in range(len(counts))]

    @property
    def steps(self) -> Int[np.ndarray, " nodes"]:
        """The number of every node in its own tree."""
        counts = self.leaf_counts.astype(np.int64) - 1
        steps: Int[np.ndarray, " nodes"] = np.arange(counts.sum()) - np.repeat(_starts(counts)[:-1], counts)
        return steps

    def children(self) -> tuple[Int[np.ndarray, " nodes"], Int[np.ndarray, " nodes"]]:
        """The left and the right child of every node: a node of the same tree, or ~leaf."""
        steps, split = self.steps, self.split_leaves.astype(np.int64)
        left, right = ~split, ~(steps + 1)
        counts = self.leaf_counts.astype(np.int64)
        leaf = np.repeat(_starts(counts)[:-1], counts - 1) + split
        order = np.argsort(leaf, kind="stable")  # who split the same leaf, one after the other
        again = leaf[order][1:] == leaf[order][:-1]
        left[order[:-1][again]] = steps[order[1:][again]]
        # Who split a leaf first is the right child of the node that the leaf came from; the root came from none.
        first = order[np.concatenate([[True], ~again])] if len(order) else order
        first = first[split[first] > 0]
        right[first - steps[first] + split[first] - 1] = steps[first]
        return left, right

    def check(self, features: int) -> None:
        """Raise a ``UserError`` unless these are whole trees about so many features."""
        for name, dtype in DTYPES.items():
            found = getattr(self, name)
            _hold(found.dtype == dtype and found.ndim == 1, f"{name} must be one row of {np.dtype(dtype).name}")
        counts = self.leaf_counts.astype(np.int64)
        _hold((counts >= 1).all(), "a tree without a leaf")
        _hold(counts.sum() == len(self.leaf_values), "leaf_counts do not add up to the leaves")
        nodes = len(self.leaf_values) - len(counts)
        for name in ("split_leaves", "split_features", "decisions"):
            _hold(len(getattr(self, name)) == nodes, f"{name} is not as long as there are nodes")
        _hold(_within(self.split_leaves, self.steps), "split_leaves: a node that splits a leaf which is not there yet")
        _hold(_within(self.split_features, features - 1), "split_features: a feature that is not there")
        _hold(np.isin(self.decisions, DECISIONS).all(), "decisions: an unknown one")
        sets = int(np.count_nonzero(self.decisions & CATEGORICAL))
        _hold(len(self.set_words) == sets, "set_words is not as long as there are sets of levels")
        _hold(len(self.thresholds) == nodes - sets, "thresholds is not as long as there are questions about numbers")
        _hold((self.set_words >= 1).all(), "set_words: a set of levels without a word")
        _hold(self.set_words.sum(dtype=np.int64) == len(self.set_bits), "set_words do not add up to the words")
        _hold(np.isfinite(self.thresholds).all(), "thresholds must be finite")
        with np.errstate(over="ignore"):  # what the trees say is added up, and that must be finite too
            _hold(np.isfinite(np.abs(self.leaf_values).sum()), "leaf_values and their sum must be finite")


DTYPES: dict[str, Any] = {
    **{field.name: np.int32 for field in dataclasses.fields(TreeArrays)},
    "decisions": np.uint8,
    "thresholds": np.float64,
    "leaf_values": np.float64,
}


def _starts(counts: Int[np.ndarray, " parts"]) -> Int[np.ndarray, " parts_and_end"]:
    """Where each part begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def _within(found: Int[np.ndarray, " nodes"], most: Int[np.ndarray, " nodes"] | int) -> bool:
    return bool(((found >= 0) & (found <= most)).all())


def _hold(rule: object, otherwise: str) -> None:
    if not rule:
        raise UserError(f"the trees of this model are damaged ({otherwise}); fit or copy it again")
