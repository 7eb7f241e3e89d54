r"""Fitting boosted regressions: numbers and levels from the whole rest of their rows, as plain boosters are.

LightGBM's regression $m_i$ of a number grows as long as held-out cells gain. What it leaves on held-out rows,
$r = x_i - m_i(x_e)$, teaches a second one, $\log \sigma_i$ from $\log |r|$, fold by fold from the residuals of the
other folds; what is left then, $r / \sigma_i$, is a mixture of normals. A single split has no other folds: there one
scale serves all. Where a number is bent to model units, its trees may speak of the units of the data, if they leave
clearly less on held-out rows then. Levels are a softmax regression by trees, from their marginal on.

That a cell is missing must not count as evidence, but trees can tell a hole from a number. So where the holes of a
column go with the target, rows with such a hole are left out, or, if these are most rows, the column is.
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
from anyorder.networks.boosted_trees import lightgbm
from anyorder.networks.layout import Layout
from anyorder.networks.parts.lightgbm_text import read_trees
from anyorder.networks.parts.tree_arrays import TreeArrays
from anyorder.networks.parts.tree_network import with_count
from anyorder.networks.regression_trees import COMPONENTS, RegressionTrees
from anyorder.training.linear import Units, apart_from_atoms, residual_law
from anyorder.training.rows import Rows
from anyorder.training.trees.growing import one_after_another
from anyorder.training.trees.options import Clock
from anyorder.training.unbiased_edges import recorded

MOST_CELLS = 20_000  # of one variable that are shown
FEWEST_CELLS = 30  # from which a regression is tried
MOST_LEVELS = 30
RATE, ROUNDS, STRIDE, PATIENCE = 0.1, 1000, 10, 5
HURRIED_RATE, HURRIED_PATIENCE, HURRIED_BINS = 0.25, 2, 63  # where there is little time; the bins are those of an input
LEAVES, LEAST_ROWS = 15, 3
SCALE_ROUNDS, SCALE_LEAVES, SCALE_ROWS = 60, 6, 20
CLASS_LEAVES, CLASS_ROWS = 8, 10
CLEAREST = 1e-4  # the least scale, by the deviation of the number: also what is added to a residual of zero
CHANCE = 4.0  # standard deviations by which the holes of a column may go with the target
NOISY = 0.5  # of a number's deviation: where more is left, units make no difference that is worth the time
CLEARLY = 2.0  # standard errors by which less must be left in the units of the data
KNOTS = 128  # of a bend from the units of the data to those of the model
NOTHING = TreeArrays.none()


@dataclass(frozen=True, eq=False)
class _Cells:
    """Cells of one variable, and the rest of their rows."""

    inputs: Float[np.ndarray, "cells inputs"]
    values: Float[np.ndarray, " cells"]

    def without_telling_holes(self, levels: int) -> _Cells:
        """Those cells by whose rows' holes nothing is told of them; ``levels`` of the variable, 0 for a number."""
        columns = self.inputs[:, :-1]  # the last one is the count of those that are known
        holes = np.isnan(columns)
        telling = np.flatnonzero(_told_by(holes, self.values, levels))
        inputs, keep = columns.copy(), np.ones(len(columns), dtype=bool)
        for column in telling[np.argsort(holes[:, telling].sum(axis=0))]:
            fewer = keep & ~holes[:, column]
            if fewer.sum() >= len(columns) / 2:
                keep = fewer
            else:
                inputs[:, column] = np.nan
        return _Cells(with_count(inputs[keep]), self.values[keep])


def _told_by(holes: Bool[np.ndarray, "cells columns"], values: np.ndarray, levels: int) -> Bool[np.ndarray, " columns"]:
    """Which columns' holes go with the values, by more than ``CHANCE`` standard deviations of chance."""
    # Ranks of numbers, so that no single value decides.
    marks = values[:, None] == np.arange(levels) if levels else np.argsort(np.argsort(values))[:, None]
    count = holes.sum(axis=0)
    centred = (marks - marks.mean(axis=0)) / np.maximum(marks.std(axis=0), 1e-12)
    spread = np.sqrt(np.maximum(count * (len(values) - count) / max(len(values), 1), 1e-12))
    strength = (np.abs(centred.T @ holes) / spread).max(axis=0, initial=0.0)
    told: Bool[np.ndarray, " columns"] = (strength > CHANCE) & (count > 0) & (count < len(values))
    return told


@dataclass(frozen=True, eq=False)
class _Regression:
    """That of one variable in one fold; a law and a place to start from for numbers only."""

    trees: tuple[TreeArrays, TreeArrays] = (NOTHING, NOTHING)
    start: tuple[float, float] = (0.0, 0.0)
    bend: Float[np.ndarray, "2 knots"] | None = None
    ends: tuple[float, float] = (0.0, 0.0)
    law: tuple[Tensor, Tensor, Tensor] | None = None


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
    units: Sequence[Units | None] = (),
    hurried: bool = False,
) -> list[RegressionTrees]:
    """One network for each fold. ``heads`` are those of :func:`anyorder.training.linear.linear_head`.

    ``units``: from model units to those of the data, for numbers that are bent. ``hurried``: in fewer rounds, of which
    each learns more.
    """
    columns = [index for index, flag in enumerate(nominal) if flag]
    jobs = [
        _Job(head, index, layout.partners, columns, training, held_out, seed, clock, own, hurried)
        for index, (head, own) in enumerate(zip(heads, units or [None] * len(heads), strict=True))
    ]
    done = iter(one_after_another(lambda job: job.fitted(), [jobs[index] for index in layout.answered], advance))
    fitted = [next(done) if head.size else [_Regression()] * len(training) for head in heads]
    return [_network(heads, layout, rows, [own[fold] for own in fitted]) for fold, rows in enumerate(training)]


def _network(heads: Sequence[Head], layout: Layout, rows: Rows, regressions: Sequence[_Regression]) -> RegressionTrees:
    widths = {"low": (), "high": (), "start": (2,), "marginal": (layout.width,)}
    widths |= dict.fromkeys(("shares", "offsets", "log_scales"), (COMPONENTS,))
    if any(own.bend is not None for own in regressions):
        widths["bend"] = (2, KNOTS)
    laws = {name: torch.zeros(layout.variables, *width, dtype=torch.float64) for name, width in widths.items()}
    for variable in layout.answered:
        head, own = heads[variable], regressions[variable]
        logits = marginal_logits(head, rows.values[rows.observed[:, variable], variable])
        laws["marginal"][variable, : len(logits)] = logits
        laws["start"][variable] = torch.tensor(own.start, dtype=torch.float64)
        laws["low"][variable], laws["high"][variable] = own.ends
        if own.bend is not None:
            laws["bend"][variable] = torch.from_numpy(own.bend)
        if own.law is not None:
            for name, tensor in zip(("shares", "offsets", "log_scales"), own.law, strict=True):
                laws[name][variable] = tensor
    logistic = [not head.levels and head.points is not None for head in heads]
    trees = [own.trees for own in regressions]
    return RegressionTrees.of(layout, trees, [head.atom_count for head in heads], logistic, laws)


def marginal_logits(head: Head, cells: Float[Tensor, " cells"]) -> Float[Tensor, " logits"]:
    """The logits of levels or atoms when nothing is known, as the head reads them; half a cell is added to each."""
    if head.levels:
        logits = (torch.bincount(cells.long(), minlength=head.levels).double() + 0.5).log()
        return logits[1:] - logits[:1] if head.levels == 2 else logits - logits.mean()
    atoms = torch.tensor(getattr(head, "atoms", ()), dtype=torch.float32)
    found = (cells.float()[:, None] == atoms).sum(dim=0).double()
    return (found + 0.5).log() - (len(cells) - found.sum() + 0.5).log()


def _knots(units: Units, cells: Sequence[_Cells]) -> Float[np.ndarray, "2 knots"]:
    """Points of the bend from the units of the data to those of the model, over the cells."""
    model = np.quantile(np.concatenate([own.values for own in cells]), np.linspace(0, 1, KNOTS))
    return np.maximum.accumulate(np.stack([units(model), model]), axis=1)


@dataclass(frozen=True, eq=False)
class _Locations:
    """Trees of one number's location, fold by fold, and what they say of the judged cells, in model units."""

    trees: list[TreeArrays]
    starts: list[float]
    told: list[Float[np.ndarray, " judged"]]
    bend: Float[np.ndarray, "2 knots"] | None

    def left(self, judged: Sequence[_Cells]) -> Float[np.ndarray, " judged"]:
        """What they leave of each judged cell."""
        return np.concatenate([other.values - told for other, told in zip(judged, self.told, strict=True)])

    def left_share(self, judged: Sequence[_Cells]) -> float:
        """The deviation of what they leave, by that of the cells; 1 without any."""
        deviation = float(np.std(np.concatenate([other.values for other in judged]))) if len(self.left(judged)) else 0.0
        return float(np.sqrt(np.mean(self.left(judged) ** 2))) / deviation if deviation else 1.0

    def left_over(self, judged: Sequence[_Cells]) -> Float[np.ndarray, " judged"]:
        """The logarithm of what they leave of each cell: the sizes of units cancel out between two of them."""
        least = CLEAREST * float(np.std(np.concatenate([other.values for other in judged])))
        logs: Float[np.ndarray, " judged"] = np.log(np.abs(self.left(judged)) + least)
        return logs


@dataclass(frozen=True, eq=False)
class _Job:
    """One variable, in all folds."""

    head: Head
    index: int
    partners: tuple[int, ...]
    nominal: list[int]
    training: Sequence[Rows]
    held_out: Sequence[Rows]
    seed: int
    clock: Clock
    units: Units | None = None
    hurried: bool = False

    def fitted(self) -> list[_Regression]:
        over = self.clock.begin()
        cells, judged = ([self._cells(rows) for rows in part] for part in (self.training, self.held_out))
        cells = [own.without_telling_holes(self.head.levels) for own in cells]
        return (self._levels if self.head.levels else self._numbers)(cells, judged, over)

    def _levels(self, cells: Sequence[_Cells], judged: Sequence[_Cells], over: Callable[[], bool]) -> list[_Regression]:
        levels = self.head.levels
        found = []
        for own, others in zip(cells, judged, strict=True):
            if not self._enough(own, others, over) or levels > MOST_LEVELS:
                found.append(_Regression())
                continue
            logits = marginal_logits(self.head, torch.from_numpy(own.values)).numpy()
            settings: dict[str, Any] = (
                {"objective": "binary"} if levels == 2 else {"objective": "multiclass", "num_class": levels}
            )
            settings |= {"num_leaves": CLASS_LEAVES, "min_data_in_leaf": CLASS_ROWS, "lambda_l2": 1.0}
            start = np.repeat(logits[None], len(own.values), axis=0)
            first = np.repeat(logits[None], len(others.values), axis=0)
            trees, _ = self._boosted(own, start, others, first, _log_loss, settings, ROUNDS, over)
            found.append(_Regression((trees, NOTHING)))
        return found

    def _numbers(
        self, cells: Sequence[_Cells], judged: Sequence[_Cells], over: Callable[[], bool]
    ) -> list[_Regression]:
        values = np.concatenate([part.values for part in judged])
        deviation = max(float(np.std(values)), 1e-6) if len(values) else 1.0
        found = self._locations(cells, judged, over)
        left = [other.values - told for other, told in zip(judged, found.told, strict=True)]
        spread = [np.log(np.abs(own) + CLEAREST * deviation) for own in left]
        middle = float(np.mean(np.concatenate(spread))) if len(values) else math.log(deviation)
        scales = [self._scale(fold, judged, spread, middle, over) for fold in range(len(judged))]
        ends = (math.log(CLEAREST * deviation), math.log(3 * deviation))
        standard = [own * np.exp(-np.clip(told, *ends)) for own, (_, told) in zip(left, scales, strict=True)]
        pooled = np.concatenate(standard)
        law = residual_law(torch.from_numpy(pooled), float(np.std(pooled)) if len(pooled) > 1 else 1.0)
        return [
            _Regression((location, scale), (start, middle), found.bend, ends, law)
            for location, (scale, _), start in zip(found.trees, scales, found.starts, strict=True)
        ]

    def _locations(self, cells: Sequence[_Cells], judged: Sequence[_Cells], over: Callable[[], bool]) -> _Locations:
        """The locations of all folds, in the units of the data if the trees leave clearly less there."""
        found = self._locations_in(None, cells, judged, over)
        if self.units is None or found.left_share(judged) > NOISY:
            return found
        bent = self._locations_in(_knots(self.units, cells), cells, judged, over)
        more = found.left_over(judged) - bent.left_over(judged)
        error = float(np.std(more)) / math.sqrt(len(more))
        return bent if float(np.mean(more)) > CLEARLY * error else found

    def _locations_in(
        self,
        bend: Float[np.ndarray, "2 knots"] | None,
        cells: Sequence[_Cells],
        judged: Sequence[_Cells],
        over: Callable[[], bool],
    ) -> _Locations:
        """The locations of some folds; by trees in the units of the data, if there is a ``bend`` from there."""
        if bend is not None and self.units is not None:
            cells, judged = ([_Cells(own.inputs, self.units(own.values)) for own in part] for part in (cells, judged))
        starts = [float(np.mean(own.values)) if len(own.values) else 0.0 for own in cells]
        grown = [self._location(*pair, over) for pair in zip(cells, judged, starts, strict=True)]
        told = [said if bend is None else np.interp(said, *bend) for _, said in grown]
        return _Locations([trees for trees, _ in grown], starts, told, bend)

    def _location(
        self, cells: _Cells, judged: _Cells, start: float, over: Callable[[], bool]
    ) -> tuple[TreeArrays, Float[np.ndarray, " judged"]]:
        """Trees, and what they say of the judged cells."""
        first = np.full(len(judged.values), start)
        if not self._enough(cells, judged, over):
            return NOTHING, first
        settings = {"objective": "regression", "num_leaves": LEAVES, "min_data_in_leaf": LEAST_ROWS}
        begun = np.full(len(cells.values), start)
        return self._boosted(cells, begun, judged, first, _squares, settings, ROUNDS, over)

    def _scale(
        self, fold: int, judged: Sequence[_Cells], spread: Sequence[np.ndarray], middle: float, over: Callable[[], bool]
    ) -> tuple[TreeArrays, Float[np.ndarray, " judged"]]:
        """Trees of the log scale from the residuals of the other folds, and what they say of this one's cells."""
        others = [number for number in range(len(judged)) if number != fold]
        here = _Cells(judged[fold].inputs, spread[fold])
        first = np.full(len(here.values), middle)
        if sum(len(spread[number]) for number in others) < 4 * FEWEST_CELLS or not len(first) or over():
            return NOTHING, first
        inputs, values = ([np.asarray(part[n]) for n in others] for part in ([own.inputs for own in judged], spread))
        cells = _Cells(np.concatenate(inputs), np.concatenate(values))
        settings = {
            "objective": "regression",
            "num_leaves": SCALE_LEAVES,
            "min_data_in_leaf": SCALE_ROWS,
            "lambda_l2": 1.0,
        }
        begun = np.full(len(cells.values), middle)
        return self._boosted(cells, begun, here, first, _squares, settings, SCALE_ROUNDS, over)

    def _boosted(
        self,
        cells: _Cells,
        start: np.ndarray,
        judged: _Cells,
        first: np.ndarray,
        loss: Callable[[np.ndarray, np.ndarray], float],
        settings: dict[str, Any],
        rounds: int,
        over: Callable[[], bool],
    ) -> tuple[TreeArrays, np.ndarray]:
        """Boost from ``start`` on while the judged cells get better; the trees, and what then is said of those."""
        library = lightgbm()
        parameters = {
            **settings,
            "learning_rate": HURRIED_RATE if self.hurried else RATE,
            **({"max_bin": HURRIED_BINS} if self.hurried else {}),
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
        # Scores are one class after the other, as LightGBM has them.
        data = library.Dataset(
            cells.inputs,
            cells.values,
            init_score=start.reshape(len(start), -1).ravel(order="F"),
            categorical_feature=nominal,
            params=parameters,
        )
        booster: Any = library.Booster(parameters, data)
        told, best_told = first, first
        best, best_round, stale = loss(first, judged.values), 0, 0
        for since in range(0, rounds, STRIDE):
            for _ in range(STRIDE):
                booster.update()
            more = booster.predict(
                judged.inputs, raw_score=True, start_iteration=since, num_iteration=STRIDE, num_threads=1
            )
            told = told + more.reshape(told.shape)
            now = loss(told, judged.values)
            stale = 0 if now < best * (1 - 1e-3) else stale + 1
            if now < best:
                best, best_round, best_told = now, since + STRIDE, told
            if stale >= (HURRIED_PATIENCE if self.hurried else PATIENCE) or over():
                break
        return read_trees(booster.model_to_string(num_iteration=best_round)) if best_round else NOTHING, best_told

    @staticmethod
    def _enough(cells: _Cells, judged: _Cells, over: Callable[[], bool]) -> bool:
        several = len(cells.values) >= FEWEST_CELLS and len(np.unique(cells.values)) > 1
        return several and len(judged.values) > 0 and not over()

    def _cells(self, rows: Rows) -> _Cells:
        """The cells that are known and no atoms, beside the rest of their rows."""
        observed = rows.observed.cpu()
        there = observed[:, self.index]
        if not self.head.levels:
            there = there & apart_from_atoms(self.head, rows.values[:, self.index].cpu())
        sources = there.nonzero()[:, 0]
        sources = sources[:: -(-len(sources) // MOST_CELLS) or 1]
        known = torch.ones(len(sources), observed.shape[1], dtype=torch.bool)
        known[:, self.index] = False
        for column, partner in enumerate(self.partners):
            # Rows know a cell or that it is missing; asked are rows that know both, of which trees know nothing.
            known[:, max(column, partner)] &= partner < 0
        known = recorded(known, observed[sources], self.partners)
        values = rows.values.cpu()[sources].double()
        inputs = values.where(known, torch.nan).numpy()
        return _Cells(with_count(inputs), values[:, self.index].numpy())


def _squares(told: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean((truth - told) ** 2))


def _log_loss(told: np.ndarray, truth: np.ndarray) -> float:
    scores = torch.from_numpy(told)
    if told.shape[1] == 1:
        scores = torch.cat([torch.zeros_like(scores), scores], dim=1)
    return -float(scores.log_softmax(dim=1)[torch.arange(len(truth)), torch.from_numpy(truth).long()].mean())
