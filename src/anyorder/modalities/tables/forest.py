"""The trees of a table: a set for every fold, or several sets of all rows, their bins shifted against each other.

Sets that cut their bins elsewhere are better together than each alone. With folds, each set is grown on the rows
outside its fold, as long as those inside gain by it. Without, one trial on held-out rows decides how to grow the rest.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from anyorder.heads import Head
from anyorder.modalities.tables.race import Encoded, Job
from anyorder.model import AnyOrderModel, layout_of
from anyorder.networks.boosted_trees import BoostedTrees
from anyorder.protocols import protocols
from anyorder.training.blending import Member
from anyorder.training.linear import apart_from_atoms
from anyorder.training.progress import columns_bar
from anyorder.training.rows import Rows
from anyorder.training.trees.classes import tree_head
from anyorder.training.trees.growing import TrialTrees, all_rows, grow_trees, grow_trial_trees
from anyorder.training.trees.options import TRIAL_COST, Clock, TreeOptions, least_seconds, shown_within
from anyorder.training.trees.softening import chosen_blurs, softened
from anyorder.variables.codecs import Space
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind
from anyorder.variables.warp import Warp

PLANNED = 0.7  # of their time is what trees are planned to take: nobody knows in advance how many rounds pay
CELLS_FOR_BINS = 200_000  # of the whole table, from which the bins of its columns are spaced
FEWEST_FOR_BINS = 200  # cells of one column


def tree_member(job: Job, table: Encoded, seconds: float, stop: Callable[[], bool]) -> Member:
    """The trees of a table, within so many seconds; ``stop`` tells of Ctrl-C."""
    deadline = None if math.isinf(seconds) else time.monotonic() + seconds
    growing, folds = job.options.trees, len(job.folds)
    if job.options.training.steps is not None:
        growing = replace(growing, rounds=min(growing.rounds, job.options.training.steps))
    heads, warps = table.heads(), _warps(table)
    sets, jobs = _sets(job), _jobs(job)
    asked = len(job.schema.answered)
    if deadline is not None:
        growing = shown_within(PLANNED * seconds, len(job.folds.training[0]), jobs, growing)
    protocol = protocols.build(job.options.protocol)

    def model(own: list[Head], network: BoostedTrees) -> AnyOrderModel:
        return AnyOrderModel(table.encoding, network, own, protocol).eval()

    with columns_bar(job.run.progress, "growing trees", asked, sets if folds > 1 else 1 + sets) as advance:
        if folds > 1:
            clock = Clock(jobs, deadline, stop)
            grown: list[TrialTrees] = []
            for fold in range(folds):
                forest = _Forest(
                    table.encoding, heads, warps, table.training(fold), growing, job.run.seed + fold, folds
                )
                grown.append(forest.trial(fold, table.held_out(fold), clock, advance, grown[0] if grown else None))
            parts = [model(one.heads, one.network) for one in grown]
            blurs = chosen_blurs(parts, [table.held_out(fold) for fold in range(folds)], job.run.seed)
            parts = [model(_soft(one.heads, blurs), one.network) for one in grown]
            return Member("trees", parts, parts)
        rows, held_out = table.training(0), table.held_out(0)
        forest = _Forest(table.encoding, heads, warps, rows, growing, job.run.seed, sets)
        final = all_rows(rows, held_out) if len(job.table) <= growing.refit_below else rows
        clock = Clock(jobs, deadline, stop)
        trial = forest.trial(0, held_out, clock, advance)
        others = [forest.grown(number, final, trial, clock, advance) for number in range(sets)]
        blurs = chosen_blurs([model(trial.heads, trial.network)], [held_out], job.run.seed)
        final_sets = [model(_soft(own, blurs), network) for own, network in others]
        return Member("trees", [model(_soft(trial.heads, blurs), trial.network)], final_sets)


def seconds_to_see_all(job: Job) -> float:
    """How long the trees of a table need if they are to see each row often enough, and no longer."""
    return least_seconds(len(job.folds.training[0]), _jobs(job), job.options.trees) / PLANNED


def _sets(job: Job) -> int:
    return len(job.folds) if len(job.folds) > 1 else job.options.trees.members


def _jobs(job: Job) -> int:
    """How many sets of trees of one variable there are to grow; a trial counts for several."""
    return (TRIAL_COST + (_sets(job) - 1 if len(job.folds) > 1 else _sets(job))) * len(job.schema.answered)


@dataclass(frozen=True)
class _Forest:
    """Sets of trees that learn from the same rows: the same variables, shifted bins, other subsets shown."""

    encoding: Encoding
    heads: Sequence[Head]
    warps: Sequence[Warp | None]
    rows: Rows
    options: TreeOptions
    seed: int
    sets: int

    @cached_property
    def _cells(self) -> list[Float[np.ndarray, " cells"]]:
        """The known cells of every variable, in model units."""
        values, observed = self.rows.values.numpy(), self.rows.observed.numpy()
        return [values[observed[:, index], index] for index in range(values.shape[1])]

    @cached_property
    def nominal(self) -> list[bool]:
        return without_order(self.encoding)

    def trial(
        self,
        number: int,
        held_out: Rows,
        clock: Clock,
        advance: Callable[[], None],
        like: TrialTrees | None = None,
    ) -> TrialTrees:
        """The set of this number, grown as long as held-out rows gain; its leaves those of ``like``, if it is there."""
        heads = self._bins(number)
        layout = layout_of(self.encoding.schema, heads)
        return grow_trial_trees(
            heads,
            layout,
            self.nominal,
            self.rows,
            held_out,
            self.options,
            seed=self.seed,
            clock=clock,
            advance=advance,
            like=like,
        )

    def grown(
        self, number: int, rows: Rows, trial: TrialTrees, clock: Clock, advance: Callable[[], None]
    ) -> tuple[list[Head], BoostedTrees]:
        """The set of this number, grown by the plans of the trial."""
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
        shift = (number + 0.5) / self.sets
        columns = zip(self.heads, self._cells, self.warps, strict=True)
        return [tree_head(head, cells, self.options.bins, shift, warp) for head, cells, warp in columns]


def without_order(encoding: Encoding) -> list[bool]:
    """Which variables have more than two levels, and no order among them."""
    return [
        codec.space is Space.LEVELS and codec.variable.kind is Kind.CATEGORICAL and len(codec.variable.levels) > 2
        for codec in encoding.codecs
    ]


def _soft(heads: Sequence[Head], blurs: Sequence[float]) -> list[Head]:
    return [softened(head, blur) for head, blur in zip(heads, blurs, strict=True)]


def _warps(table: Encoded) -> list[Warp | None]:
    """From model units to normal scores, by which numbers are spaced within their bins; None for what is no number.

    They are found once, from the rows that the encoding was fitted to, since that takes longer than to cut the bins.
    """
    encoding, rows = table.encoding, table.rows if len(table.job.folds) > 1 else table.training(0)
    # Bins need no more than a sketch of each column; where there are many columns, some of its cells tell enough.
    most = max(FEWEST_FOR_BINS, CELLS_FOR_BINS // len(encoding.codecs))
    found: list[Warp | None] = []
    for index, (codec, head) in enumerate(zip(encoding.codecs, table.heads(), strict=True)):
        values = rows.values[rows.observed[:, index], index]
        if codec.variable.context or head.levels or head.size == 0:
            found.append(None)
        elif codec.bend is not None and codec.bend.bends:  # the encoding has done it already
            found.append(Warp.affine(0.0, 1.0))
        else:
            cells = values[apart_from_atoms(head, values)].double().numpy()
            found.append(Warp.normal_scores(cells[:: -(-len(cells) // most)]) if len(cells) else None)
    return found
