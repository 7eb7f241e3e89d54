"""Boosted trees as a mask network: for every variable a tree of questions about its bins or levels, each boosted.

LightGBM takes unknown inputs natively, so one set of trees answers p(x_i | x_e) for every e it was shown
(:mod:`anyorder.training.trees.growing` shows it random ones). The probabilities of the answers along the way to a class
multiply (:mod:`anyorder.networks.parts.halving`); a little of the marginal is mixed in, so that no value is ever ruled
out by a leaf that happens not to hold it. The trees are kept as plain arrays, exact to the last digit, which are
checked when they are loaded (:mod:`anyorder.networks.parts.tree_arrays`) and evaluated here
(:mod:`anyorder.networks.parts.tree_masks`): LightGBM is needed to grow them, not to ask them.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.networks.layout import Layout
from anyorder.networks.parts.class_trees import ClassTrees, scores_of
from anyorder.networks.parts.halving import Split, check_questions
from anyorder.networks.parts.lightgbm_text import read_trees
from anyorder.networks.parts.tree_arrays import TreeArrays
from anyorder.networks.parts.tree_network import TreeNetwork, sizes_of, tensors_of
from anyorder.support.checks import check_fields, whole


@dataclass(eq=False)
class BoostedTrees(TreeNetwork):
    """``splits``: each variable's questions; ``trees``: how many trees answer each, 0 where the marginal does.

    ``leaves``, ``sets`` and ``words``: how many leaves all of them have, how many of their nodes ask for a set of
    levels, and how many words of 32 bits these sets take. ``atoms``: for a head of atoms and a continuum, how many of
    its classes are atoms; its features are then the logits of the atoms relative to the continuum, and those of the
    continuum's bins. ``doubt``: the marginal's share.
    """

    name: ClassVar[str] = "boosted_trees"
    trainable: ClassVar[bool] = False

    splits: tuple[tuple[Split, ...], ...] = ()
    trees: tuple[tuple[int, ...], ...] = ()
    leaves: int = 0
    sets: int = 0
    words: int = 0
    atoms: tuple[int, ...] = ()
    doubt: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        self.splits = tuple(tuple(Split(*split) for split in own) for own in self.splits)
        self.splits = self.splits or ((),) * self.layout.variables
        self.trees = tuple(map(tuple, self.trees)) or tuple((0,) * len(own) for own in self.splits)
        self.atoms = tuple(self.atoms) or (0,) * self.layout.variables
        self._check_options()
        self._keep_trees()
        self.marginal: Tensor
        # The log-frequencies of each variable's classes.
        width = max(self.layout.width, 2)  # a yes/no head reads one feature but has two classes
        self.register_buffer("marginal", torch.zeros(self.layout.variables, width, dtype=torch.float64))

    def _check_options(self) -> None:
        check_fields(self, whole={"leaves": 0, "sets": 0, "words": 0}, within={"doubt": "(0, 1)"}, section=self.name)
        variables = self.layout.variables
        if {len(self.splits), len(self.trees), len(self.atoms)} != {variables}:
            raise UserError(f"boosted trees must have splits, trees and atoms for each of {variables} variables")
        for own, counts, atoms, size in zip(self.splits, self.trees, self.atoms, self.layout.sizes, strict=True):
            classes = max(size, 2)
            if whole("atoms", atoms, 0) >= classes or len(counts) != len(own):
                raise UserError(
                    f"boosted trees: {atoms} atoms of {classes} classes, {len(counts)} counts of trees for "
                    f"{len(own)} questions"
                )
            if own:
                check_questions(own, classes)
            for split, count in zip(own, counts, strict=True):
                if whole("trees", count, 0) % scores_of(split):
                    raise UserError(f"{count} boosted trees cannot give {scores_of(split)} scores a round")

    @classmethod
    def of(
        cls,
        layout: Layout,
        splits: Sequence[Sequence[Split]],
        trees: Sequence[Sequence[TreeArrays]],
        atoms: Sequence[int],
        marginal: Float[Tensor, "variables width"],
    ) -> BoostedTrees:
        """The network that answers each variable's questions with these trees."""
        joined = TreeArrays.joined([part for own in trees for part in own])
        counts = tuple(tuple(len(part.leaf_counts) for part in own) for own in trees)
        network = cls(layout, tuple(map(tuple, splits)), counts, **sizes_of(joined), atoms=tuple(atoms))
        network.load_state_dict({**tensors_of(joined), "marginal": marginal})
        return network

    @classmethod
    def from_version_1(
        cls, described: dict[str, Any], tensors: dict[str, Tensor]
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Version 1 had LightGBM's own text for every question, compressed; ``lengths`` said how many bytes it took."""
        described, tensors = dict(described), dict(tensors)
        lengths = [[whole("lengths", length, 0) for length in own] for own in described.pop("lengths")]
        data = tensors.pop("text").numpy().tobytes()
        if sum(map(sum, lengths)) != len(data):
            raise UserError("the trees of this model are damaged (their lengths do not add up); fit or copy it again")
        found: list[TreeArrays] = []
        start, room = 0, FREE_TEXT + TEXT_RATIO * len(data)
        for length in (length for own in lengths for length in own):
            text = _inflated(data[start : start + length], room) if length else ""
            found.append(read_trees(text) if text else TreeArrays.none())
            start, room = start + length, room - len(text)
        counts = iter([len(part.leaf_counts) for part in found])
        joined = TreeArrays.joined(found)
        described |= {"trees": [[next(counts) for _ in own] for own in lengths], **sizes_of(joined)}
        return described, {**tensors, **tensors_of(joined)}

    def _questions(self, variable: int) -> ClassTrees:
        """The questions about one variable, made ready when it is first asked for."""
        found: ClassTrees | None = self._ready.get(variable)
        if found is None:
            marginal = self.marginal[variable, : max(self.layout.sizes[variable], 2)].cpu().log_softmax(0).numpy()
            found = ClassTrees.of(self.splits[variable], self.grown(variable), marginal, self.doubt)
            self._ready[variable] = found
        return found

    def scored(self, variable: int) -> tuple[TreeArrays, Int[np.ndarray, " trees"], int]:
        own = self._questions(variable)
        return own.trees, own.score, own.scores

    def answer(self, scores: Float[np.ndarray, "rows scores"], variable: int) -> Float[np.ndarray, "rows width"]:
        size, atoms = self.layout.sizes[variable], self.atoms[variable]
        log_probs = self._questions(variable).log_probs(scores)
        features = np.zeros((len(scores), self.layout.width))
        if size == 1:  # a yes/no head reads the log-odds
            features[:, 0] = log_probs[:, 1] - log_probs[:, 0]
            return features
        features[:, :size] = log_probs
        if atoms:
            features[:, :atoms] -= np.logaddexp.reduce(log_probs[:, atoms:], axis=1, keepdims=True)
        return features


def lightgbm() -> Any:
    """The library, or what to do without it."""
    try:
        import lightgbm as library
    except (ImportError, OSError) as error:  # OSError: its OpenMP runtime is not there
        raise UserError(
            f"boosted trees need LightGBM, which cannot be loaded here ({error}); "
            "install it with: pip install lightgbm, or fit with engine='neural'"
        ) from error
    return library


# The bytes of text that a version 1 file may have: so many in any case, and so many for each compressed byte. That of
# LightGBM has about three for one, more only where its trees are next to empty.
FREE_TEXT, TEXT_RATIO = 16_000_000, 8


def _inflated(packed: bytes, room: int) -> str:
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(packed, max(room, 1))  # 0 would be without bound
        if not unpacking.eof or unpacking.unused_data:
            raise ValueError("a compressed text that does not end where it should")
        return text.decode("ascii")
    except (zlib.error, ValueError) as error:
        raise UserError(f"the trees of this model are damaged ({error}); fit or copy it again") from error
