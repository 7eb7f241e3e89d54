"""All trees of a variable as one thing that is asked: masks where these can be had, else a walk down each tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int

from anyorder.networks.parts.tree_arrays import TreeArrays
from anyorder.networks.parts.tree_masks import Masks
from anyorder.networks.parts.tree_nodes import Nodes
from anyorder.networks.parts.tree_walk import Walked


class Forest(Protocol):
    """Trees of which each adds to one of several scores."""

    def scores(self, inputs: Float[np.ndarray, "rows features"]) -> Float[np.ndarray, "rows scores"]:
        """The sums over all trees; NaN in the inputs is unknown."""

    def scores_of(
        self,
        inputs: Float[np.ndarray, "rows features"],
        groups: Sequence[Int[np.ndarray, " some"]],
        ends: Sequence[int],
    ) -> list[Float[np.ndarray, "some scores"]]:
        """The scores of each group of rows, from one of the ``ends`` to the next."""


def forest(trees: TreeArrays, score: Int[np.ndarray, " trees"], scores: int) -> Forest:
    """The quickest form of these trees, which were checked before; ``score`` says to which of the sums each adds."""
    nodes = Nodes.of(trees)
    return Masks.of(nodes, trees, score, scores) or Walked.of(nodes, trees, score, scores)
