r"""Boosted regressions of every variable from the whole rest of its row: what a plain booster says, as an expert.

$$p(x_i \mid x_e) = \sum_k \pi_{ik}\, N\!\big(x_i;\; m_i(x_e) + \sigma_i(x_e)\, o_{ik},\; \sigma_i(x_e)\, s_{ik}\big)$$

for numbers, with $m_i$ and $\log \sigma_i$ sums of trees, and one law of residuals $(\pi_i, o_i, s_i)$; for levels, a
softmax of sums of trees. Where a number is bent to model units (:mod:`anyorder.variables.warp`), its trees may speak of
the units of the data, in which many columns depend on the others more simply; $m_i$ is what they say, bent. The atoms
of a number are answered with their marginal. Each learns from rows as they are, with the holes that they have and no
others: so it says more than trees that were shown all kinds of parts of rows (:mod:`.boosted_trees`) where rows are
nearly whole, and less elsewhere. A blend has both, and weighs them by what is
known (:mod:`anyorder.training.gates`). :mod:`anyorder.training.trees.regressing` fits it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.networks.layout import Layout
from anyorder.networks.linear import LARGEST
from anyorder.networks.parts.line_answers import TO_LOGISTIC
from anyorder.networks.parts.tree_arrays import TreeArrays
from anyorder.networks.parts.tree_network import TreeNetwork, sizes_of, tensors_of
from anyorder.support.checks import check_fields, whole

COMPONENTS = 3
MOST_KNOTS = 1000
LOCATION, SCALE = 0, 1


@dataclass(eq=False)
class RegressionTrees(TreeNetwork):
    """``trees``: how many trees the location and the log scale of each number have, or the logits of levels, and 0.

    ``leaves``, ``sets`` and ``words``: as in :class:`~anyorder.networks.boosted_trees.BoostedTrees`.
    ``atoms``: how many atoms each variable's head has; ``logistic``: whether its components are logistic, not normal.
    ``knots``: how many points say how locations are bent, 0 where no variable's are.
    """

    name: ClassVar[str] = "regression_trees"
    trainable: ClassVar[bool] = False

    trees: tuple[tuple[int, int], ...] = ()
    leaves: int = 0
    sets: int = 0
    words: int = 0
    atoms: tuple[int, ...] = ()
    logistic: tuple[bool, ...] = ()
    knots: int = field(default=0, metadata={"later": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        variables = self.layout.variables
        self.trees = tuple((int(one[0]), int(one[1])) for one in map(tuple, self.trees)) or ((0, 0),) * variables
        self.atoms = tuple(self.atoms) or (0,) * variables
        self.logistic = tuple(self.logistic) or (False,) * variables
        self._check_options()
        self._keep_trees()
        self.marginal: Tensor
        self.start: Tensor
        self.low: Tensor
        self.high: Tensor
        self.shares: Tensor
        self.offsets: Tensor
        self.log_scales: Tensor
        # The logits of levels and atoms; location and log scale before any tree; the ends of the latter.
        self._keep("marginal", torch.zeros(variables, self.layout.width))
        self._keep("start", torch.zeros(variables, 2))
        self._keep("low", torch.zeros(variables))
        self._keep("high", torch.zeros(variables))
        for name in ("shares", "offsets", "log_scales"):  # of the components of each number's residual
            self._keep(name, torch.zeros(variables, COMPONENTS))
        if self.knots:  # units of the data and model units; all zero for a variable whose trees speak of the latter
            self.bend: Tensor
            self._keep("bend", torch.zeros(variables, 2, self.knots))

    def _keep(self, name: str, tensor: Tensor) -> None:
        self.register_buffer(name, tensor.double())

    def _check_options(self) -> None:
        check_fields(
            self, whole={"leaves": 0, "sets": 0, "words": 0, "knots": 0}, most={"knots": MOST_KNOTS}, section=self.name
        )
        layout = self.layout
        if {len(self.trees), len(self.atoms), len(self.logistic)} != {layout.variables}:
            raise UserError(f"regression trees must have trees, atoms and families for {layout.variables} variables")
        entries = zip(self.trees, self.atoms, self.logistic, layout.levels, layout.sizes, strict=True)
        for trees, atoms, logistic, levels, size in entries:
            for count in trees:
                whole("regression trees: trees", count, 0)
            whole("regression trees: atoms", atoms, 0)
            if not isinstance(logistic, bool):
                raise UserError(f"regression trees: logistic must be yes or no for each variable, got {logistic!r:.80}")
            if not size:  # context is asked by trees, never for them
                if atoms or any(trees):
                    raise UserError(f"regression trees: {trees} trees and {atoms} atoms for a variable of the context")
                continue
            if levels and (atoms or trees[SCALE] or trees[LOCATION] % size or size != (1 if levels == 2 else levels)):
                raise UserError(f"regression trees: {trees} trees for {levels} levels, {size} features, {atoms} atoms")
            if not levels and size - atoms != 3 * COMPONENTS:
                raise UserError(f"regression trees: a number has {3 * COMPONENTS} features, got {size - atoms}")

    @classmethod
    def of(
        cls,
        layout: Layout,
        trees: Sequence[tuple[TreeArrays, TreeArrays]],
        atoms: Sequence[int],
        logistic: Sequence[bool],
        laws: dict[str, Tensor],
    ) -> RegressionTrees:
        """The network with these trees; ``laws`` are its other buffers."""
        joined = TreeArrays.joined([part for own in trees for part in own])
        network = cls(
            layout,
            tuple((len(location.leaf_counts), len(scale.leaf_counts)) for location, scale in trees),
            **sizes_of(joined),
            atoms=tuple(atoms),
            logistic=tuple(logistic),
            knots=laws["bend"].shape[2] if "bend" in laws else 0,
        )
        network.load_state_dict({**tensors_of(joined), **laws})
        return network

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        if self.start.is_meta:
            return
        bend = ("bend",) if self.knots else ()
        for name in ("marginal", "start", "low", "high", "shares", "offsets", "log_scales", *bend):
            if not bool((self.get_buffer(name).abs() <= LARGEST).all()):
                raise UserError(f"regression trees: {name} must hold finite numbers")
        if not bool((self.low <= self.high).all()):
            raise UserError("regression trees: the ends of log scales must increase")
        if self.knots and not bool((self.bend.diff(dim=2) >= 0).all()):
            raise UserError("regression trees: the points by which locations are bent must increase")

    def scored(self, variable: int) -> tuple[TreeArrays, Int[np.ndarray, " trees"], int]:
        size = self.layout.sizes[variable] if self.layout.levels[variable] else 0
        count = sum(self.trees[variable])
        score = np.arange(count) % size if size else np.repeat([LOCATION, SCALE], self.trees[variable])
        return TreeArrays.joined(self.grown(variable)), score, size or 2

    def answer(self, scores: Float[np.ndarray, "rows scores"], variable: int) -> Float[np.ndarray, "rows width"]:
        law = self._law(variable)
        features = law.marginal.repeat(len(scores), axis=0)
        if self.layout.levels[variable]:
            features[:, : scores.shape[1]] += scores
            return features
        normal = law.start + scores
        location, log_scale = normal[:, :1], np.minimum(np.maximum(normal[:, 1:], law.low), law.high)
        if law.bend is not None:
            location = np.interp(location, *law.bend)
        mixture = features[:, self.atoms[variable] : self.atoms[variable] + 3 * COMPONENTS]
        mixture[:, :COMPONENTS] = law.shares
        mixture[:, COMPONENTS : 2 * COMPONENTS] = location + np.exp(log_scale) * law.offsets
        mixture[:, 2 * COMPONENTS :] = log_scale + law.log_scales
        return features

    def _law(self, variable: int) -> _Law:
        """What the answers about a variable need beside its trees, made ready when it is first asked for."""
        found: _Law | None = self._ready.get(variable)
        if found is None:
            names = ("marginal", "start", "low", "high", "shares", "offsets", "log_scales")
            kept = {name: self.get_buffer(name)[variable].cpu().numpy().reshape(1, -1) for name in names}
            if self.logistic[variable]:
                kept["log_scales"] = kept["log_scales"] + TO_LOGISTIC
            bend = self.bend[variable].cpu().numpy() if self.knots else np.zeros((2, 0))
            found = _Law(**kept, bend=bend if bend[0].any() else None)
            self._ready[variable] = found
        return found


@dataclass(frozen=True, eq=False)
class _Law:
    """The buffers of one variable, each a row; ``bend``: units of the data and model units, where they differ."""

    marginal: Float[np.ndarray, "one width"]
    start: Float[np.ndarray, "one 2"]
    low: Float[np.ndarray, "one 1"]
    high: Float[np.ndarray, "one 1"]
    shares: Float[np.ndarray, "one components"]
    offsets: Float[np.ndarray, "one components"]
    log_scales: Float[np.ndarray, "one components"]
    bend: Float[np.ndarray, "two knots"] | None
