"""Trees out of LightGBM's text, the one form in which it gives a model.

What prediction does not need (gains, weights and counts of nodes, the options of the growth) is not kept. LightGBM
itself never reads a text here: its parser trusts it, and wrong numbers end the process or never end. The numbers of all
trees are read together, kind by kind: a short fit grows thousands of small trees, and one after the other they would
take as long to read as to grow.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from anyorder.errors import UserError
from anyorder.networks.parts.tree_arrays import ANY_NUMBER, CATEGORICAL, DTYPES, TreeArrays

MOST_LEAVES = 131_072  # of one tree: LightGBM's own limit
LONGEST_NUMBER = 32  # characters, with the blank behind it


def read_trees(text: str) -> TreeArrays:
    """The trees of a model as LightGBM has written it; they are yet to be checked."""
    try:
        return _arrays(list(_trees(text)))
    except (ValueError, LookupError, OverflowError) as error:
        raise UserError(f"the trees of this model are damaged ({error}); fit or copy it again") from error


_NEEDED = frozenset(
    (
        *("num_leaves", "num_cat", "split_feature", "threshold", "decision_type", "left_child", "right_child"),
        *("leaf_value", "cat_boundaries", "cat_threshold", "is_linear"),
    )
)


def _trees(text: str) -> Iterator[dict[str, str]]:
    """What is said of every tree: the lines that are needed, by their names."""
    said: dict[str, str] | None = None
    for line in _lines(text):
        name, _, rest = line.partition("=")
        if name in _NEEDED:
            if said is not None:
                said[name] = rest
        elif name in ("Tree", "end of trees"):
            if said is not None:
                yield said
            said = {}
            if name != "Tree":
                return
    raise ValueError("their text does not end")


def _lines(text: str) -> Iterator[str]:
    """The lines of a text, none of which is copied before its turn."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1


def _arrays(said: Sequence[Mapping[str, str]]) -> TreeArrays:
    """All trees of which this is said."""
    leaves, sets = [], []
    for one in said:
        leaves.append(int(one["num_leaves"]))
        sets.append(int(one["num_cat"]))
        if not 1 <= leaves[-1] <= MOST_LEAVES or not 0 <= sets[-1] < leaves[-1] or int(one.get("is_linear", "0")):
            raise ValueError(f"a tree of {leaves[-1]} leaves and {sets[-1]} sets of levels, or a linear one")
    nodes = [count - 1 for count in leaves]
    left = _integers(said, "left_child", nodes)
    decisions = _integers(said, "decision_type", nodes)
    thresholds = np.array(_numbers(said, "threshold", nodes, float), np.float64)
    levels = decisions & CATEGORICAL > 0
    if not np.array_equal(thresholds[levels], [index for count in sets for index in range(count)]):
        raise ValueError("sets of levels that are not in order")
    words, bits = _sets([one for one, count in zip(said, sets, strict=True) if count])
    found = {
        "leaf_counts": np.array(leaves, np.int64),
        "split_leaves": _split_leaves(left, np.array(nodes, np.int64)),
        "split_features": _integers(said, "split_feature", nodes),
        "decisions": decisions,
        "thresholds": np.minimum(thresholds[~levels], ANY_NUMBER),
        "set_words": words,
        "set_bits": bits,
        "leaf_values": np.array(_numbers(said, "leaf_value", leaves, float), np.float64),
    }
    trees = TreeArrays(**{name: _narrow(name, column) for name, column in found.items()})
    # The shape was taken from the left children alone, which say all of a tree that grew as LightGBM's do.
    right = _integers(said, "right_child", nodes)
    if not all(map(np.array_equal, trees.children(), (left, right))):
        raise ValueError("nodes that are not those of a tree")
    return trees


def _split_leaves(left: Int[np.ndarray, " nodes"], nodes: Int[np.ndarray, " trees"]) -> Int[np.ndarray, " nodes"]:
    """The leaf that each node has split: where one comes to by going left."""
    first = np.repeat(np.cumsum(nodes) - nodes, nodes)  # of the nodes of the same tree
    below = left >= 0
    after = np.where(below, first + left, np.arange(len(left)))
    if (after < np.arange(len(left)))[below].any() or (left >= np.repeat(nodes, nodes)).any():
        raise ValueError("nodes that are not those of a tree")
    if (after == np.arange(len(left)))[below].any():
        raise ValueError("a node below itself")
    while (further := left[after] >= 0).any():  # twice as far each time
        after = np.where(further, after[after], after)
    return ~left[after]


def _sets(said: Sequence[Mapping[str, str]]) -> tuple[Int[np.ndarray, " sets"], Int[np.ndarray, " words"]]:
    """How many words the sets of levels of these trees take, and the words."""
    words: list[int] = []
    bits: list[int] = []
    for one in said:
        ends = _numbers([one], "cat_boundaries", [int(one["num_cat"]) + 1], int)
        if ends[0] != 0:
            raise ValueError("sets of levels that do not begin at the beginning")
        words += (end - start for start, end in itertools.pairwise(ends))
        bits += _numbers([one], "cat_threshold", ends[-1:], int)
    # LightGBM writes the words without a sign.
    if not all(0 <= word < 2**32 for word in bits):
        raise ValueError("words of sets that are not 32 bits")
    return np.array(words, np.int64), np.array(bits, np.int64).astype(np.uint32).view(np.int32)


def _integers(said: Sequence[Mapping[str, str]], name: str, counts: Sequence[int]) -> Int[np.ndarray, " numbers"]:
    return np.array(_numbers(said, name, counts, int), np.int64)


def _numbers(
    said: Sequence[Mapping[str, str]], name: str, counts: Sequence[int], kind: Callable[[str], Any]
) -> list[Any]:
    """The numbers of this name, so many of each tree."""
    lines = [one[name] for one in said]
    for line, count in zip(lines, counts, strict=True):
        if len(line) > LONGEST_NUMBER * count:  # before it is taken apart
            raise ValueError(f"{name} is too long for {count} numbers")
        if line.count(" ") != max(count - 1, 0):
            raise ValueError(f"{name} does not hold {count} numbers")
    numbers = list(map(kind, " ".join(lines).split()))
    if len(numbers) != sum(counts):
        raise ValueError(f"{name} holds {len(numbers)} numbers instead of {sum(counts)}")
    return numbers


def _narrow(name: str, column: np.ndarray) -> np.ndarray:
    """The column as it is kept, if its numbers are still the same there."""
    kept = column.astype(DTYPES[name])
    if kept.dtype.kind != "f" and not np.array_equal(kept, column):
        raise OverflowError(f"{name} holds numbers that are too large")
    return kept
