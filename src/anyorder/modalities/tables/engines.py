"""Two engines for a table and their blend: a network, boosted trees, or both as one mixture.

Networks are strong where columns bend smoothly together, trees where they step and jump, and held-out rows tell which
of them to believe for which variable: p(x_i | x_e) = sum_m w_im p_m(x_i | x_e), the weights w_i by EM. ``auto`` trains
the network first, since the trees grow in its encoding.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from jaxtyping import Float

from anyorder.errors import UserError, nearest
from anyorder.heads import Head
from anyorder.modalities.fit import training_facts
from anyorder.modalities.tables.heads import head_for
from anyorder.modalities.tables.race import Job, candidates, race, split_rows
from anyorder.model import AnyOrderModel, layout_of
from anyorder.networks import networks
from anyorder.networks.boosted_trees import BoostedTrees, lightgbm
from anyorder.protocols import protocols
from anyorder.support.interrupt import deferred_interrupt
from anyorder.support.threads import torch_threads
from anyorder.training.blending import Member, blend
from anyorder.training.loop import Trainer
from anyorder.training.progress import trees_bar
from anyorder.training.rows import Rows, encoded_rows
from anyorder.training.trees.classes import tree_head
from anyorder.training.trees.growing import TrialTrees, all_rows, grow_trees, grow_trial_trees
from anyorder.training.trees.options import TRIAL_COST, Clock, TreeOptions, tree_seconds
from anyorder.variables.codecs import Codec, Space, WarpName
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind
from anyorder.variables.warp import Warp

Engine: TypeAlias = Literal["auto", "neural", "trees"]

CELLS_FOR_BINS = 200_000  # of the whole table, from which the bins of its columns are spaced
FEWEST_FOR_BINS = 200  # cells of one column
SECONDS_A_COLUMN = 0.02  # of bins, marginals and weights of a blend, before a single tree has grown
MOST_FOR_TREES = 0.5  # of the budget of "auto"
# The bins of a column take some 17 kB in a model file, whose description may have 64 MB: twice as many still fit.
MOST_COLUMNS = 1_500


@dataclass(frozen=True)
class Fitted:
    """A trained model and what its card says about the training."""

    core: AnyOrderModel
    chosen: str
    training: dict[str, Any]
    scores: dict[str, Any]


def fit_engine(job: Job) -> Fitted:
    """The engine that the options name, fitted."""
    engine = job.options.engine
    if engine not in get_args(Engine):
        raise UserError(f"unknown engine {engine!r}; {nearest(engine, get_args(Engine))}")
    if engine == "auto" and not _trees_help(job):
        engine = "neural"
    if engine == "trees" and len(job.schema) > MOST_COLUMNS:
        raise UserError(
            f"trees can answer for {MOST_COLUMNS} columns at most, and the table has {len(job.schema)}; "
            "leave some out, or fit with engine='neural'"
        )
    trainers: list[Trainer] = []
    if engine != "trees":
        trainers = _trainers(job, 1 - _trees_share(job) if engine == "auto" else 1.0)
    with deferred_interrupt():  # between its parts too, an interruption must not cost what was trained
        return _fitted(job, engine, trainers)


def _fitted(job: Job, engine: str, trainers: list[Trainer]) -> Fitted:
    """The winner of a race, joined by trees if the engine says so; trees alone without a trainer."""
    winner = race(trainers, job) if trainers else None
    interrupted = any(one.progress.interrupted for one in trainers)
    scores: dict[str, Any] = {"unit": "nats per cell, held-out rows, random queries"}
    if winner is not None:
        scores["encodings"] = {one.label: _finite(one.progress.best) for one in trainers}
        scores["held_out"] = winner.progress.best
    chosen = winner.label if winner else job.options.encoding
    if winner is not None and (engine == "neural" or interrupted):
        core = winner.finish().cpu()
    else:
        core, weighed, stopped = _with_trees(job, winner)
        scores |= weighed
        interrupted = interrupted or stopped
    training = {**training_facts(core, winner, job.run.seconds), "engine": engine, "interrupted": interrupted}
    return Fitted(core, chosen, training, scores)


def _finite(score: float) -> float | None:
    """The score, or None for an encoding that only diverged: JSON has no infinity."""
    return score if math.isfinite(score) else None


def _trees_help(job: Job) -> bool:
    """Whether "auto" should grow trees.

    The table must be neither too long for them nor, in the time there is, too wide, and the network one they can join.
    """
    if len(job.table) > job.options.trees.most_rows or networks.of(job.options.network).reads_order:
        return False
    if len(job.schema) > MOST_COLUMNS:
        return False
    minutes = job.options.training.minutes
    if minutes is not None and SECONDS_A_COLUMN * len(job.schema) > 60 * minutes * MOST_FOR_TREES / 2:
        return False
    try:
        lightgbm()
    except UserError:
        return False
    return True


def _trees_share(job: Job) -> float:
    """The part of the budget that "auto" keeps for the trees: what they need, within limits."""
    minutes = job.options.training.minutes
    if minutes is None:
        return MOST_FOR_TREES
    needed = tree_seconds(len(job.table), len(job.schema.names), job.options.trees)
    return min(max(needed / (60 * minutes), 0.1), MOST_FOR_TREES)


def _trainers(job: Job, share: float) -> list[Trainer]:
    """The candidates, with this share of the minutes."""
    training = job.options.training
    if training.minutes is not None:
        training = replace(training, minutes=training.minutes * share)
    with torch_threads(training.threads):
        return candidates(replace(job, options=replace(job.options, training=training)))


def _with_trees(job: Job, winner: Trainer | None) -> tuple[AnyOrderModel, dict[str, Any], bool]:
    """Trees, blended with the network if there is one; how the members scored; whether Ctrl-C cut growth short."""
    # Also while rows are encoded and members weighed: whatever Ctrl-C meets here, a trained network must not be lost.
    with deferred_interrupt() as interrupt:
        model, scores = _grown_and_blended(job, winner, lambda: interrupt.requested)
        return model, scores, interrupt.requested


def _grown_and_blended(
    job: Job, winner: Trainer | None, stop: Callable[[], bool]
) -> tuple[AnyOrderModel, dict[str, Any]]:
    options, seed = job.options, job.run.seed
    training, validation = split_rows(options, job.table, seed)
    if winner is None:
        warp = cast(WarpName, "normal_scores" if options.encoding == "auto" else options.encoding)
        encoding = Encoding.fit(training, job.schema, warp)
        heads = [head_for(codec, options.components, options.heads) for codec in encoding.codecs]
    else:
        core = winner.finish().cpu()
        encoding = core.encoding
        heads = [core.heads.of(variable) for variable in range(core.variables)]
    rows, held_out = encoded_rows(encoding, training), encoded_rows(encoding, validation)
    growing = options.trees
    deadline = None
    if options.training.minutes is not None:
        # What the network left of the budget, and its own share at least; a little is needed to weigh the members.
        whole = 60 * options.training.minutes
        least = (_trees_share(job) - 0.05) * whole if winner else 0.0
        deadline = max(job.run.began + 0.95 * whole, time.monotonic() + least)
    if options.training.steps is not None:
        growing = replace(growing, rounds=min(growing.rounds, options.training.steps))
    forest = _Forest(encoding, heads, rows, growing, seed)
    final = all_rows(rows, held_out) if len(job.table) <= growing.refit_below else rows
    with trees_bar(job.run.progress, (1 + growing.members) * len(heads)) as advance:
        clock = Clock((TRIAL_COST + growing.members) * len(heads), deadline, stop)
        trial = forest.trial(held_out, clock, advance)
        grown = [forest.grown(number, final, trial, clock, advance) for number in range(growing.members)]
    protocol = protocols.build(options.protocol)
    members = [] if winner is None else [Member("neural", [core], [core])]
    models = [AnyOrderModel(encoding, network, own, protocol).eval() for own, network in grown]
    members.append(Member("trees", [AnyOrderModel(encoding, trial.network, trial.heads, protocol).eval()], models))
    with torch_threads(options.training.threads):
        return blend(encoding, protocol, members, [held_out], seed)


@dataclass(frozen=True)
class _Forest:
    """All sets of trees of one table: the same variables, shifted bins, other subsets shown."""

    encoding: Encoding
    heads: Sequence[Head]
    rows: Rows
    options: TreeOptions
    seed: int

    @cached_property
    def warps(self) -> list[Warp | None]:
        """From model units to normal scores: nothing to do where the encoding has bent the column already."""
        # Bins need no more than a sketch of each column; where there are many columns, some of its cells tell enough.
        most = max(FEWEST_FOR_BINS, CELLS_FOR_BINS // len(self._cells))
        some = (cells[:: -(-len(cells) // most)] if len(cells) else cells for cells in self._cells)
        return [_normal_scores(codec, cells) for codec, cells in zip(self.encoding.codecs, some, strict=True)]

    @cached_property
    def _cells(self) -> list[Float[np.ndarray, " cells"]]:
        """The known cells of every variable, in model units."""
        values, observed = self.rows.values.numpy(), self.rows.observed.numpy()
        return [values[observed[:, index], index] for index in range(values.shape[1])]

    @cached_property
    def nominal(self) -> list[bool]:
        """Which variables have levels without an order."""
        return [
            codec.space is Space.LEVELS and codec.variable.kind is Kind.CATEGORICAL and len(codec.variable.levels) > 2
            for codec in self.encoding.codecs
        ]

    def trial(self, held_out: Rows, clock: Clock, advance: Callable[[], None]) -> TrialTrees:
        heads = self._bins(0)
        layout = layout_of(self.encoding.schema, heads)
        return grow_trial_trees(
            heads, layout, self.nominal, self.rows, held_out, self.options, seed=self.seed, clock=clock, advance=advance
        )

    def grown(
        self, number: int, rows: Rows, trial: TrialTrees, clock: Clock, advance: Callable[[], None]
    ) -> tuple[list[Head], BoostedTrees]:
        heads = self._bins(number)
        layout = layout_of(self.encoding.schema, heads)
        return heads, grow_trees(
            heads,
            layout,
            self.nominal,
            rows,
            trial.plans,
            self.options,
            seed=self.seed + number,
            clock=clock,
            advance=advance,
            instead=trial if number == 0 else None,  # the first have the bins of the trial
        )

    def _bins(self, number: int) -> list[Head]:
        shift = (number + 0.5) / self.options.members
        columns = zip(self.heads, self._cells, self.warps, strict=True)
        return [tree_head(head, cells, self.options.bins, shift, warp) for head, cells, warp in columns]


def _normal_scores(codec: Codec, cells: Float[np.ndarray, " cells"]) -> Warp | None:
    if codec.bend is None:
        return None
    return Warp.affine(0.0, 1.0) if codec.bend.bends else Warp.normal_scores(cells.astype(np.float64))
