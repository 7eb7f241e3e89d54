"""Networks that answer with trees: how they keep them, and how rows are put to the trees of each variable.

The trees are kept as plain arrays (:mod:`.tree_arrays`), one buffer for each, and checked when they are loaded. A cell
that is not known is NaN to them, and beside the cells they see how many are known.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.networks.base import MaskNetwork, Network
from anyorder.networks.parts.forest import Forest, forest
from anyorder.networks.parts.stack import Apart, Stack
from anyorder.networks.parts.tree_arrays import DTYPES, TreeArrays


class TreeNetwork(MaskNetwork):
    """A mask network of trees. A final subclass is a dataclass with the fields below, and answers for one variable.

    ``trees``: how many trees each answer of each variable has. ``leaves``, ``sets`` and ``words``: how many leaves all
    of them have, how many of their nodes ask for a set of levels, and how many words of 32 bits these sets take.
    """

    trees: tuple[tuple[int, ...], ...]
    leaves: int
    sets: int
    words: int

    def _keep_trees(self) -> None:
        """Make the buffers of all trees, once the fields are set and checked one by one."""
        count = sum(map(sum, self.trees))
        if count + self.sets > self.leaves:  # every tree has one node less than leaves
            raise UserError(f"{self.name}: {self.leaves} leaves are too few for {count} trees and {self.sets} sets")
        nodes = self.leaves - count
        sizes = {
            "leaf_counts": count,
            "thresholds": nodes - self.sets,
            "set_words": self.sets,
            "set_bits": self.words,
            "leaf_values": self.leaves,
        }
        for name, dtype in DTYPES.items():
            kind = torch.from_numpy(np.zeros(0, dtype)).dtype
            self.register_buffer(name, torch.zeros(sizes.get(name, nodes), dtype=kind))
        self._forget()

    def _forget(self) -> None:
        """Drop what was made of the trees before."""
        self._ready: dict[int, Any] = {}  # what a variable needs for its answers, made when it is first asked for
        self._forests: dict[int, Forest] = {}  # likewise
        self._by_variable: list[TreeArrays] | None = None

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        self._forget()
        if not self.get_buffer("leaf_values").is_meta:
            self._arrays().check(self.layout.variables + 1)

    def _arrays(self) -> TreeArrays:
        return TreeArrays(**{name: self.get_buffer(name).cpu().numpy() for name in DTYPES})

    @property
    def learned(self) -> tuple[bool, ...]:
        return tuple(any(own) for own in self.trees)

    def grown(self, variable: int) -> list[TreeArrays]:
        """The trees of each answer about a variable."""
        by_variable = self._by_variable
        if by_variable is None:
            by_variable = self._by_variable = self._arrays().parts([sum(own) for own in self.trees])
        return by_variable[variable].parts(self.trees[variable])

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        features = np.zeros((*values.shape, self.layout.width))
        inputs, unknown = with_count(_inputs(values, known)), ~known.cpu().numpy()
        for variable in self.layout.answered:
            rows = np.flatnonzero(unknown[:, variable])
            if len(rows):
                features[rows, variable] = self.answered(inputs[rows], variable)
        return torch.from_numpy(features).to(values)

    def at(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        target: Int[Tensor, " batch"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch width"]:
        inputs, targets = _inputs(values, known), target.cpu().numpy()
        inputs[np.arange(len(targets)), targets] = np.nan
        inputs = with_count(inputs)
        if len(targets) and (targets == targets[0]).all():  # as in most questions
            return torch.from_numpy(self.answered(inputs, int(targets[0]))).to(values)
        features = np.zeros((len(values), self.layout.width))
        for variable in np.unique(targets):
            rows = np.flatnonzero(targets == variable)
            features[rows] = self.answered(inputs[rows], int(variable))
        return torch.from_numpy(features).to(values)

    def answered(self, inputs: Float[np.ndarray, "rows inputs"], variable: int) -> Float[np.ndarray, "rows width"]:
        """Features of one variable, in float64, the width filled up with zeros."""
        # Threads that come at the same time may each make it ready: the results are equal, and kept when complete.
        if variable not in self._forests:
            self._forests[variable] = forest(*self.scored(variable))
        return self.answer(self._forests[variable].scores(inputs), variable)

    @abstractmethod
    def scored(self, variable: int) -> tuple[TreeArrays, Int[np.ndarray, " trees"], int]:
        """All trees of a variable, to which score each of them adds, and how many scores there are."""

    @abstractmethod
    def answer(self, scores: Float[np.ndarray, "rows scores"], variable: int) -> Float[np.ndarray, "rows width"]:
        """Features of one variable from its scores, in float64, the width filled up with zeros."""

    @classmethod
    def stack(cls, networks: Sequence[Network]) -> Stack:
        own = [network for network in networks if isinstance(network, TreeNetwork)]
        return TreeStack(own) if len(own) == len(networks) > 1 else Apart(networks)


class TreeStack(Stack):
    """Networks of trees: those of a variable are one forest."""

    def __init__(self, networks: Sequence[TreeNetwork]) -> None:
        self.networks = networks
        self._ready: dict[int, tuple[Forest, list[int]]] = {}

    def beside(self, values: Tensor, known: Tensor) -> list[Tensor]:
        inputs = with_count(_inputs(values, known))
        blocks = [np.zeros((*values.shape, one.layout.width)) for one in self.networks]
        unknown = set(np.flatnonzero(~known.cpu().numpy()).tolist())
        for variable in sorted(unknown.intersection(self.networks[0].layout.answered)):
            for block, found in zip(blocks, self._answers(inputs, variable), strict=True):
                block[:, variable] = found
        return [torch.from_numpy(block).to(values) for block in blocks]

    def at(self, values: Tensor, known: Tensor, target: int) -> list[Tensor]:
        inputs = _inputs(values, known)
        inputs[:, target] = np.nan
        return [torch.from_numpy(found).to(values) for found in self._answers(with_count(inputs), target)]

    def at_own(self, values: Tensor, known: Tensor, target: int, own: Tensor) -> Tensor:
        # Each row needs one network's trees: to ask all of them for it would be dearer.
        inputs = _inputs(values, known)
        inputs[:, target] = np.nan
        numbers = own.cpu().numpy()
        groups = [np.flatnonzero(numbers == number) for number in range(len(self.networks))]
        together, ends = self._forest(target)
        features = np.zeros((len(inputs), max(one.layout.width for one in self.networks)))
        found = together.scores_of(with_count(inputs), groups, ends)
        for network, rows, scores in zip(self.networks, groups, found, strict=True):
            if len(rows):
                features[rows, : network.layout.width] = network.answer(scores, target)
        return torch.from_numpy(features).to(values)

    def _answers(
        self, inputs: Float[np.ndarray, "rows inputs"], variable: int
    ) -> list[Float[np.ndarray, "rows width"]]:
        together, ends = self._forest(variable)
        scores = together.scores(inputs)
        parts = (scores[:, start:end] for start, end in pairwise(ends))
        return [one.answer(part, variable) for one, part in zip(self.networks, parts, strict=True)]

    def _forest(self, variable: int) -> tuple[Forest, list[int]]:
        """The trees of all networks about a variable, and where the scores of each network begin and end."""
        # Threads that come at the same time may each make it ready: the results are equal, and kept when complete.
        if variable not in self._ready:
            trees, score, counts = zip(*(one.scored(variable) for one in self.networks), strict=True)
            ends = np.cumsum([0, *counts]).tolist()
            joined = np.concatenate([own + start for own, start in zip(score, ends, strict=False)])
            self._ready[variable] = forest(TreeArrays.joined(trees), joined, ends[-1]), ends
        return self._ready[variable]


def sizes_of(trees: TreeArrays) -> dict[str, int]:
    """The fields that say how large the buffers of these trees are."""
    return {"leaves": len(trees.leaf_values), "sets": len(trees.set_words), "words": len(trees.set_bits)}


def tensors_of(trees: TreeArrays) -> dict[str, Tensor]:
    """The buffers of these trees."""
    return {name: torch.from_numpy(getattr(trees, name)) for name in DTYPES}


def _inputs(values: Tensor, known: Tensor) -> Float[np.ndarray, "batch variables"]:
    """What the trees see: NaN where nothing is known."""
    return np.where(known.cpu().numpy(), values.detach().double().cpu().numpy(), np.nan)


def with_count(inputs: Float[np.ndarray, "rows variables"]) -> Float[np.ndarray, "rows more"]:
    """Beside the cells, how many of them are known.

    What one cell tells depends on what the others tell. A tree that had to find out by asking for each of them in turn
    would never come to say much about a single known cell.
    """
    count = np.count_nonzero(~np.isnan(inputs), axis=1)
    return np.concatenate([inputs, count[:, None]], axis=1)
