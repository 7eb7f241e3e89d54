"""What the nodes of trees ask, one entry for each, as LightGBM understands it.

A number goes left up to the threshold, a level if it is in the set. The unknown has a side of its own where there was
something unknown to learn from, else it counts as 0; as a level it is in no set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, UInt32

from anyorder.networks.parts.tree_arrays import ANY_NUMBER, CATEGORICAL, TreeArrays

LEFT_IF_UNKNOWN, LEARNED_UNKNOWN = 2, 8  # the bits of a decision
WORD = 32  # bits
NEXT_TO_ZERO = float(np.float32(1e-35))  # what is no larger is 0 to LightGBM


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of all trees, in turn."""

    tree: Int[np.ndarray, " nodes"]
    feature: Int[np.ndarray, " nodes"]
    nominal: Bool[np.ndarray, " nodes"]  # whether it asks for a level
    threshold: Float[np.ndarray, " nodes"]
    unknown_left: Bool[np.ndarray, " nodes"]
    set_of: Int[np.ndarray, " nodes"]  # the number of the set, where it asks for one
    first_word: Int[np.ndarray, " sets"]
    words: Int[np.ndarray, " sets"]
    bits: UInt32[np.ndarray, " words"]

    @classmethod
    def of(cls, trees: TreeArrays) -> Nodes:
        """The nodes of these trees, which were checked before."""
        nominal = (trees.decisions & CATEGORICAL) > 0
        threshold = np.zeros(len(nominal))
        threshold[~nominal] = np.where(trees.thresholds == ANY_NUMBER, np.inf, trees.thresholds)
        as_zero = (trees.decisions & LEARNED_UNKNOWN) == 0
        left = np.where(as_zero, threshold >= 0, (trees.decisions & LEFT_IF_UNKNOWN) > 0)
        counts, words = trees.leaf_counts.astype(np.int64) - 1, trees.set_words.astype(np.int64)
        return cls(
            tree=np.repeat(np.arange(len(counts)), counts),
            feature=trees.split_features.astype(np.int64),
            nominal=nominal,
            threshold=threshold,
            unknown_left=left & ~nominal,
            set_of=np.cumsum(nominal) - 1,
            first_word=np.cumsum(words) - words,
            words=words,
            bits=trees.set_bits.view(np.uint32),
        )

    def __len__(self) -> int:
        return len(self.tree)

    def holds(self, which: Int[np.ndarray, "*any"], level: Int[np.ndarray, "*any"]) -> Bool[np.ndarray, "*any"]:
        """Whether these sets hold these levels, which are not negative."""
        word = level // WORD
        inside = word < self.words[which]
        bits = self.bits[np.where(inside, self.first_word[which] + word, 0)]
        found: Bool[np.ndarray, "*any"] = inside & ((bits >> (level % WORD).astype(np.uint32)) & 1).astype(bool)
        return found
