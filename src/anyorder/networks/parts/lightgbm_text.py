"""Trees out of LightGBM's text, the one form in which it gives a model.

What prediction does not need (gains, weights and counts of nodes, the options of the growth) is not kept. LightGBM
itself never reads a text here: its parser trusts it, and wrong numbers end the process or never end.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from anyorder.errors import UserError
from anyorder.networks.parts.tree_arrays import ANY_NUMBER, CATEGORICAL, DTYPES, TreeArrays

MOST_LEAVES = 131_072  # of one tree: LightGBM's own limit
LONGEST_NUMBER = 32  # characters, with the blank behind it


def read_trees(text: str) -> TreeArrays:
    """The trees of a model as LightGBM has written it; they are yet to be checked."""
    reader = _Reader()
    try:
        said: dict[str, str] | None = None
        for line in _lines(text):
            name, _, rest = line.partition("=")
            if name in ("Tree", "end of trees"):
                if said is not None:
                    reader.add(said)
                said = {}
                if name != "Tree":
                    return reader.arrays()
            elif said is not None and name in _NEEDED:
                said[name] = rest
        raise ValueError("their text does not end")
    except (ValueError, LookupError, OverflowError) as error:
        raise UserError(f"the trees of this model are damaged ({error}); fit or copy it again") from error


_NEEDED = (
    *("num_leaves", "num_cat", "split_feature", "threshold", "decision_type", "left_child", "right_child"),
    *("leaf_value", "cat_boundaries", "cat_threshold", "is_linear"),
)


def _lines(text: str) -> Iterator[str]:
    """The lines of a text, none of which is copied before its turn."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1


class _Reader:
    """Gathers trees one by one."""

    def __init__(self) -> None:
        self.columns: dict[str, array[Any]] = {name: array(np.dtype(dtype).char) for name, dtype in DTYPES.items()}
        self.columns["set_bits"] = array("I")  # LightGBM writes them without a sign
        self.left, self.right = array("i"), array("i")

    def add(self, said: Mapping[str, str]) -> None:
        """One more tree, from the lines that describe it."""
        leaves, sets = int(said["num_leaves"]), int(said["num_cat"])
        if not 1 <= leaves <= MOST_LEAVES or not 0 <= sets < leaves or int(said.get("is_linear", "0")):
            raise ValueError(f"a tree of {leaves} leaves and {sets} sets of levels, or a linear one")
        left = _numbers(said, "left_child", leaves - 1, int)
        decisions = _numbers(said, "decision_type", leaves - 1, int)
        thresholds = _numbers(said, "threshold", leaves - 1, float)
        pairs = list(zip(thresholds, decisions, strict=True))
        if [threshold for threshold, decision in pairs if decision & CATEGORICAL] != list(range(sets)):
            raise ValueError("sets of levels that are not in order")
        ends = _numbers(said, "cat_boundaries", sets + 1, int) if sets else [0]
        if ends[0] != 0:
            raise ValueError("sets of levels that do not begin at the beginning")
        add = {
            "leaf_counts": [leaves],
            "split_leaves": _split_leaves(left),
            "split_features": _numbers(said, "split_feature", leaves - 1, int),
            "decisions": decisions,
            "thresholds": [min(threshold, ANY_NUMBER) for threshold, decision in pairs if not decision & CATEGORICAL],
            "set_words": [end - start for start, end in itertools.pairwise(ends)],
            "set_bits": _numbers(said, "cat_threshold", ends[-1], int) if sets else [],
            "leaf_values": _numbers(said, "leaf_value", leaves, float),
        }
        for name, column in self.columns.items():
            column.extend(add[name])
        self.left.extend(left)
        self.right.extend(_numbers(said, "right_child", leaves - 1, int))

    def arrays(self) -> TreeArrays:
        """All that were added."""
        trees = TreeArrays(**{name: np.array(column).view(DTYPES[name]) for name, column in self.columns.items()})
        # The shape was taken from the left children alone, which say all of a tree that grew as LightGBM's do.
        left, right = trees.children()
        if not np.array_equal(left, self.left) or not np.array_equal(right, self.right):
            raise ValueError("nodes that are not those of a tree")
        return trees


def _split_leaves(left: Sequence[int]) -> list[int]:
    """The leaf that each node has split: where one comes to by going left."""
    leaves = [0] * len(left)
    for node in reversed(range(len(left))):
        child = left[node]  # younger than the node, where this is a tree
        leaves[node] = ~child if child < 0 else leaves[child]
    return leaves


def _numbers(said: Mapping[str, str], name: str, count: int, kind: Callable[[str], Any]) -> list[Any]:
    line = said[name]
    if len(line) > LONGEST_NUMBER * count:  # before it is taken apart
        raise ValueError(f"{name} is too long for {count} numbers")
    numbers = list(map(kind, line.split()))
    if len(numbers) != count:
        raise ValueError(f"{name} holds {len(numbers)} numbers instead of {count}")
    return numbers
