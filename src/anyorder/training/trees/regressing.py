r"""Fitting boosted regressions of numbers: locations, then scales from residuals of rows that were not learned from.

Each known number $x_i$ is shown beside all other known cells of its row, and beside random parts of them. LightGBM's
regression $m_i$ grows as long as held-out cells gain. What it leaves on held-out rows, $r = x_i - m_i(x_e)$, teaches a
second one, $\log \sigma_i$ from $\log |r|$, fold by fold from the residuals of the other folds; what is left then,
$r / \sigma_i$, is a mixture of normals. A single split has no other folds: there one scale serves all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.heads import Head
from anyorder.networks.boosted_trees import lightgbm, with_count
from anyorder.networks.layout import Layout
from anyorder.networks.parts.lightgbm_text import read_trees
from anyorder.networks.parts.tree_arrays import TreeArrays
from anyorder.networks.regression_trees import COMPONENTS, RegressionTrees
from anyorder.training.linear import apart_from_atoms, residual_law
from anyorder.training.rows import Rows
from anyorder.training.trees.growing import one_after_another
from anyorder.training.trees.options import Clock
from anyorder.training.unbiased_edges import recorded

PARTS = 2  # random parts of its row beside which each cell is shown, after the whole of it
MOST_HIDDEN = 0.7  # share of a row that a part hides, at most
MOST_CELLS = 30_000  # of one variable that are shown
FEWEST_CELLS = 30  # from which a regression is tried
RATE, ROUNDS, STRIDE, PATIENCE = 0.1, 400, 10, 3
LEAVES, LEAST_ROWS = 15, 3
SCALE_ROUNDS, SCALE_LEAVES, SCALE_ROWS = 60, 6, 20
CLEAREST = 1e-4  # the least scale, by the deviation of the number: also what is added to a residual of zero
NOTHING = TreeArrays.none()


@dataclass(frozen=True, eq=False)
class _Shown:
    """Cells of one number beside parts of their rows."""

    inputs: Float[np.ndarray, "cells inputs"]
    values: Float[np.ndarray, " cells"]
    weights: Float[np.ndarray, " cells"]


@dataclass(eq=False)
class _Number:
    """The regression of one number in one fold."""

    location: TreeArrays
    scale: TreeArrays
    start: tuple[float, float]
    ends: tuple[float, float]
    law: tuple[Tensor, Tensor, Tensor]


def fit_regressions(
    heads: Sequence[Head],
    layout: Layout,
    nominal: Sequence[bool],
    training: Sequence[Rows],
    held_out: Sequence[Rows],
    *,
    seed: int,
    clock: Clock,
    advance: Callable[[], None],
) -> list[RegressionTrees]:
    """One network for each fold. ``heads`` are those of :func:`anyorder.training.linear.linear_head`."""
    numbers = [variable for variable, head in enumerate(heads) if not head.levels]
    columns = [index for index, flag in enumerate(nominal) if flag]
    jobs = [
        _Job(heads[variable], variable, layout.partners, columns, training, held_out, seed, clock)
        for variable in numbers
    ]
    fitted = one_after_another(lambda job: job.fitted(), jobs, advance)
    by_variable = dict(zip(numbers, fitted, strict=True))
    return [
        _network(heads, layout, rows, {v: own[fold] for v, own in by_variable.items()})
        for fold, rows in enumerate(training)
    ]


def _network(heads: Sequence[Head], layout: Layout, rows: Rows, numbers: dict[int, _Number]) -> RegressionTrees:
    laws = {name: torch.zeros(layout.variables, dtype=torch.float64) for name in ("low", "high")}
    laws |= {
        name: torch.zeros(layout.variables, COMPONENTS, dtype=torch.float64)
        for name in ("shares", "offsets", "log_scales")
    }
    laws["start"] = torch.zeros(layout.variables, 2, dtype=torch.float64)
    laws["marginal"] = torch.zeros(layout.variables, layout.width, dtype=torch.float64)
    trees = []
    for variable, head in enumerate(heads):
        logits = _marginal(head, rows.values[rows.observed[:, variable], variable])
        laws["marginal"][variable, : len(logits)] = logits
        if (own := numbers.get(variable)) is None:
            trees.append((NOTHING, NOTHING))
            continue
        trees.append((own.location, own.scale))
        laws["start"][variable] = torch.tensor(own.start, dtype=torch.float64)
        laws["low"][variable], laws["high"][variable] = own.ends
        for name, tensor in zip(("shares", "offsets", "log_scales"), own.law, strict=True):
            laws[name][variable] = tensor
    logistic = [not head.levels and head.points is not None for head in heads]
    return RegressionTrees.of(layout, trees, [head.atom_count for head in heads], logistic, laws)


def _marginal(head: Head, cells: Float[Tensor, " cells"]) -> Float[Tensor, " logits"]:
    """The logits of levels or atoms when nothing is known, as the head reads them."""
    if head.levels:
        counts = torch.bincount(cells.long(), minlength=head.levels).double() + 0.5
        logits = counts.log()
        return logits[1:] - logits[:1] if head.levels == 2 else logits - logits.mean()
    atoms = torch.tensor(getattr(head, "atoms", ()), dtype=torch.float32)
    found = (cells.float()[:, None] == atoms).sum(dim=0).double()
    return (found + 0.5).log() - (len(cells) - found.sum() + 0.5).log()


@dataclass(frozen=True, eq=False)
class _Job:
    """One number, in all folds."""

    head: Head
    index: int
    partners: tuple[int, ...]
    nominal: list[int]
    training: Sequence[Rows]
    held_out: Sequence[Rows]
    seed: int
    clock: Clock

    def fitted(self) -> list[_Number]:
        over = self.clock.begin()
        generator = np.random.default_rng([self.seed, self.index, 11])
        shown = [self._shown(rows, generator) for rows in self.training]
        judged = [self._shown(rows, generator) for rows in self.held_out]
        deviation = max(float(np.std(np.concatenate([part.values for part in judged] or [np.ones(1)]))), 1e-6)
        grown = [self._location(own, other, over) for own, other in zip(shown, judged, strict=True)]
        left = [other.values - predicted for other, (_, _, predicted) in zip(judged, grown, strict=True)]
        spread = [np.log(np.abs(own) + CLEAREST * deviation) for own in left]
        middle = float(np.mean(np.concatenate(spread))) if sum(map(len, spread)) else math.log(deviation)
        scales = [self._scale(fold, judged, spread, middle, over) for fold in range(len(judged))]
        ends = (math.log(CLEAREST * deviation), math.log(3 * deviation))
        standard = [own * np.exp(-np.clip(middle + told, *ends)) for own, (_, told) in zip(left, scales, strict=True)]
        weights = np.concatenate([own.weights for own in judged])
        pooled = np.concatenate(standard)
        # The whole of a row counts more than parts of it: so it does here, by being there more often.
        pooled = np.repeat(pooled, np.where(weights >= 1, 2, 1))
        law = residual_law(torch.from_numpy(pooled), float(np.std(pooled)) if len(pooled) > 1 else 1.0)
        return [
            _Number(trees, scale, (start, middle), ends, law)
            for (trees, start, _), (scale, _) in zip(grown, scales, strict=True)
        ]

    def _location(
        self, shown: _Shown, judged: _Shown, over: Callable[[], bool]
    ) -> tuple[TreeArrays, float, Float[np.ndarray, " judged"]]:
        """Trees, what comes before them, and what they say of the judged cells."""
        start = float(np.mean(shown.values)) if len(shown.values) else 0.0
        nothing = np.full(len(judged.values), start)
        if len(shown.values) < FEWEST_CELLS or not len(judged.values) or over():
            return NOTHING, start, nothing
        return self._boosted(
            shown,
            shown.values - start,
            judged,
            judged.values - start,
            start,
            LEAVES,
            LEAST_ROWS * (1 + PARTS),
            ROUNDS,
            over,
        )

    def _scale(
        self, fold: int, judged: Sequence[_Shown], spread: Sequence[np.ndarray], middle: float, over: Callable[[], bool]
    ) -> tuple[TreeArrays, Float[np.ndarray, " judged"]]:
        """Trees of the log scale from the residuals of the other folds, and what they say of this one's cells."""
        others = [number for number in range(len(judged)) if number != fold]
        cells = sum(len(judged[number].values) for number in others)
        if cells < 4 * FEWEST_CELLS or not len(judged[fold].values) or over():
            return NOTHING, np.zeros(len(judged[fold].values))
        shown = _Shown(
            *(np.concatenate([getattr(judged[n], name) for n in others]) for name in ("inputs", "values", "weights"))
        )
        target = np.concatenate([spread[number] for number in others]) - middle
        trees, _, told = self._boosted(
            shown,
            target,
            judged[fold],
            spread[fold] - middle,
            0.0,
            SCALE_LEAVES,
            SCALE_ROWS * (1 + PARTS),
            SCALE_ROUNDS,
            over,
        )
        return trees, told

    def _boosted(
        self,
        shown: _Shown,
        target: np.ndarray,
        judged: _Shown,
        truth: np.ndarray,
        start: float,
        leaves: int,
        least: int,
        rounds: int,
        over: Callable[[], bool],
    ) -> tuple[TreeArrays, float, Float[np.ndarray, " judged"]]:
        """Boost while the squares of the judged cells get less."""
        library = lightgbm()
        parameters = {
            "objective": "regression",
            "learning_rate": RATE,
            "num_leaves": leaves,
            "min_data_in_leaf": least,
            "lambda_l2": 1.0,
            "bagging_fraction": 0.7,
            "bagging_freq": 1,
            "feature_pre_filter": False,
            "boost_from_average": False,
            "num_threads": 1,
            "verbose": -1,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
        }
        nominal = [column for column in self.nominal if column != self.index]
        data = library.Dataset(
            shown.inputs, target, weight=shown.weights, categorical_feature=nominal, params=parameters
        )
        booster: Any = library.Booster(parameters, data)
        told, best_told = np.zeros(len(truth)), np.zeros(len(truth))
        best, best_round, stale = float(judged.weights @ truth**2), 0, 0
        for since in range(0, rounds, STRIDE):
            for _ in range(STRIDE):
                booster.update()
            told = told + booster.predict(
                judged.inputs, raw_score=True, start_iteration=since, num_iteration=STRIDE, num_threads=1
            )
            squares = float(judged.weights @ (truth - told) ** 2)
            stale += 1
            if squares < best * (1 - 1e-3):
                stale = 0
            if squares < best:
                best, best_round, best_told = squares, since + STRIDE, told
            if stale >= PATIENCE or over():
                break
        trees = read_trees(booster.model_to_string(num_iteration=best_round)) if best_round else NOTHING
        return trees, start, start + best_told

    def _shown(self, rows: Rows, generator: np.random.Generator) -> _Shown:
        """Cells that are no atoms, beside the whole of their rows and random parts of them."""
        observed = rows.observed.cpu().numpy()
        cells = rows.values[:, self.index].double()
        sources = np.flatnonzero(observed[:, self.index] & apart_from_atoms(self.head, cells).numpy())
        if len(sources) > MOST_CELLS // (1 + PARTS):
            sources = np.sort(generator.choice(sources, MOST_CELLS // (1 + PARTS), replace=False))
        whole = np.ones((len(sources), observed.shape[1]), dtype=bool)
        chosen = [whole, *(self._part(whole.shape, generator) for _ in range(PARTS))]
        again = np.tile(sources, 1 + PARTS)
        subset = np.concatenate(chosen)
        subset[:, self.index] = False
        if self.partners and self.partners[self.index] >= 0:  # a column and its own indicator never see each other
            subset[:, self.partners[self.index]] = False
        known = recorded(torch.as_tensor(subset), torch.as_tensor(observed[again]), self.partners).numpy()
        values = rows.values.cpu().numpy().astype(np.float64)[again]
        weights = np.concatenate([np.ones(len(sources)), np.full(PARTS * len(sources), 1 / PARTS)])
        return _Shown(with_count(np.where(known, values, np.nan)), values[:, self.index], weights)

    @staticmethod
    def _part(shape: tuple[int, int], generator: np.random.Generator) -> Bool[np.ndarray, "rows variables"]:
        hidden = generator.random((shape[0], 1)) * MOST_HIDDEN
        part: Bool[np.ndarray, "rows variables"] = generator.random(shape) >= hidden
        return part
