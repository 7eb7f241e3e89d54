"""The engines of a table and their blend: networks, boosted trees, linear experts, or all of them as one mixture.

Networks are strong where columns bend smoothly together, trees where they step and jump, lines where rows are few, and
held-out rows tell which of them to believe for which variable: p(x_i | x_e) = sum_m w_im p_m(x_i | x_e). What is quick
comes first: a trial of the encodings (all members must share one), lines, trees, and then the networks, for as long as
there is time and held-out rows gain by it. So whenever a fit is interrupted there is a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from anyorder.errors import UserError, nearest
from anyorder.modalities.fit import training_facts
from anyorder.modalities.tables.forest import seconds_to_see_all, tree_member
from anyorder.modalities.tables.lines import linear_member
from anyorder.modalities.tables.race import Encoded, Job, Race
from anyorder.modalities.tables.regressions import regression_member
from anyorder.model import AnyOrderModel
from anyorder.networks import networks
from anyorder.networks.boosted_trees import lightgbm
from anyorder.protocols import protocols
from anyorder.support.interrupt import deferred_interrupt
from anyorder.support.threads import torch_threads
from anyorder.training.blending import Member, blend
from anyorder.training.loop import Trainer
from anyorder.training.progress import training_bar
from anyorder.training.trees.options import tree_seconds

Engine: TypeAlias = Literal["auto", "neural", "trees"]

SECONDS_A_COLUMN = 0.02  # of bins, marginals and weights of a blend, before a single tree has grown
MOST_FOR_TREES = 0.4  # of the budget of "auto",
MOST_IN_A_HURRY = 0.8  # and of what is left of it, where trees would not see each row often enough
LEAST_FOR_TREES = 0.1
MOST_FOR_REGRESSIONS = 0.3  # of what is left when they begin
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
    with torch_threads(job.options.training.threads):
        engine, trees = _engine(job)
        race = _race(job, engine, trees=trees)
        # From here on, whatever Ctrl-C meets, it must not cost what was trained: between the parts too.
        with deferred_interrupt() as interrupt:
            return _fitted(job, engine, race, lambda: interrupt.requested, trees=trees)


def help_engine(job: Job) -> None:
    """What a process does beside the first one, which makes the model: it trains the networks with it."""
    with torch_threads(job.options.training.threads):
        engine, trees = _engine(job)
        race = _race(job, engine, trees=trees)
        if race is not None:
            with deferred_interrupt():
                race.decide(None)
                race.train(None)


def _race(job: Job, engine: str, *, trees: bool) -> Race | None:
    """The race of the networks, if the engine has any."""
    return None if engine == "trees" else Race(job, _seconds_for_trees(job) if trees else 0.0)


def _engine(job: Job) -> tuple[str, bool]:
    """The engine, and whether trees are part of it."""
    engine = job.options.engine
    if engine not in get_args(Engine):
        raise UserError(f"unknown engine {engine!r}; {nearest(engine, get_args(Engine))}")
    # Members of a blend answer beside each other, which a network that reads an order cannot.
    if engine == "auto" and networks.of(job.options.network).reads_order:
        engine = "neural"
    if engine == "trees" and len(job.schema) > MOST_COLUMNS:
        raise UserError(
            f"trees can handle at most {MOST_COLUMNS} columns, but the table has {len(job.schema)}; "
            "leave some out, or fit with engine='neural'"
        )
    return engine, engine == "trees" or (engine == "auto" and _trees_help(job))


def _fitted(job: Job, engine: str, race: Race | None, stop: Callable[[], bool], *, trees: bool) -> Fitted:
    """The members that the engine names, quick ones first, and their blend; those there are once it is to ``stop``."""
    with training_bar(job.run.progress, _left(job), "trying encodings") as watch:
        table = _table(job) if race is None else race.decide(watch)
    members: list[Member] = []
    if engine == "auto" and not stop() and (lines := linear_member(job, table, stop)) is not None:
        members.append(lines)
    if trees and engine == "auto" and not stop():
        members.append(regression_member(job, table, job.budget.left * MOST_FOR_REGRESSIONS, stop))
    if trees and not (race and stop()):
        # They end by themselves; networks have most of what is left, unless trees would hardly see the rows.
        members.append(tree_member(job, table, job.budget.left * (_share_for_trees(job) if race else 1.0), stop))
    trainers: list[Trainer] = []
    if race is not None:
        with training_bar(job.run.progress, _left(job), "training networks") as watch:
            trainers = race.train(watch)
        parts = [one.finish().cpu() for one in trainers]
        members.insert(0, Member("neural", parts, parts))
    core, weighed = _blended(job, table, members)
    scores: dict[str, Any] = {"unit": "nats per cell, held-out rows, random queries"}
    if race is not None:
        scores["encodings"] = race.scores
    training = {
        **training_facts(core, trainers, job.run.seconds, weighed.get("weights", {}).get("neural", 1.0)),
        "engine": engine if len(members) > 1 else members[0].label,
        "folds": len(job.folds),
        "interrupted": stop(),
    }
    return Fitted(core, table.warp, training, scores | weighed)


def _blended(job: Job, table: Encoded, members: list[Member]) -> tuple[AnyOrderModel, dict[str, Any]]:
    """One model of all members, weighed on the folds for which each of them has a part."""
    judged = min(len(member.trials) for member in members)
    members = [Member(member.label, member.trials[:judged], member.final) for member in members]
    held_out = [table.held_out(fold) for fold in range(judged)]
    protocol = protocols.build(job.options.protocol)
    if len(members) == len(members[0].final) == 1:
        return members[0].final[0], {}
    return blend(table.encoding, protocol, members, held_out, job.run.seed, job.folds.recorded, table.rows)


def _table(job: Job) -> Encoded:
    """The table as trees alone see it."""
    return Encoded.of(job, "normal_scores" if job.options.encoding == "auto" else job.options.encoding)


def _left(job: Job) -> Callable[[], float] | None:
    return None if job.budget.whole is None else lambda: job.budget.left


def _trees_help(job: Job) -> bool:
    """Whether "auto" should grow trees.

    The table must be neither too long for them nor, in the time there is, too wide.
    """
    if len(job.table) > job.options.trees.most_rows or len(job.schema) > MOST_COLUMNS:
        return False
    whole = job.budget.whole
    if whole is not None and SECONDS_A_COLUMN * len(job.schema.answered) > whole * MOST_FOR_TREES / 2:
        return False
    try:
        lightgbm()
    except UserError:
        return False
    return True


def _share_for_trees(job: Job) -> float:
    """The part of what is left that trees may take before the networks."""
    left = job.budget.left
    if not 0 < left < math.inf:
        return MOST_FOR_TREES
    return min(max(seconds_to_see_all(job) / left, MOST_FOR_TREES), MOST_IN_A_HURRY)


def _seconds_for_trees(job: Job) -> float:
    """The part of the budget that "auto" keeps for the trees: what they need, within limits."""
    whole = job.budget.whole
    if whole is None:
        return 0.0
    needed = tree_seconds(len(job.table), len(job.schema.answered), job.options.trees)
    return min(max(needed, LEAST_FOR_TREES * whole), MOST_FOR_TREES * whole)
