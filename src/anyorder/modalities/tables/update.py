r"""New rows for a fitted model: what it said before, and what the new rows say by themselves, as one mixture.

A model does not keep the rows that it was fitted to, so it cannot be fitted again with more of them. But it is a member
like any other: beside it stand linear experts and trees of the new rows alone and its own networks, trained further on
them, and new rows that no member has seen say whom to believe for which column and with how much evidence,

    p(x_i | x_e) = (1 - w_i(e)) p_before(x_i | x_e) + w_i(e) p_new(x_i | x_e).

Where the world has changed, the new rows take the weight. A share of them takes no part in this but judges: a change
that gains no more than its own error there is not made.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import torch

from anyorder.data.files import frame_or_file
from anyorder.data.frames import as_pandas
from anyorder.errors import UserError
from anyorder.masking import Cardinality, Univariate
from anyorder.modalities.fit import Run
from anyorder.modalities.tables.engines import MOST_FOR_TREES
from anyorder.modalities.tables.folds import Folds
from anyorder.modalities.tables.forest import tree_member
from anyorder.modalities.tables.lines import linear_member
from anyorder.modalities.tables.model import TableModel
from anyorder.modalities.tables.options import TableOptions
from anyorder.modalities.tables.race import Encoded, Job
from anyorder.model import AnyOrderModel
from anyorder.model.parts import trainable_parts
from anyorder.networks.boosted_trees import lightgbm
from anyorder.support.interrupt import deferred_interrupt
from anyorder.support.threads import torch_threads
from anyorder.tasks.hidden_cells import random_known, score_hidden_cells
from anyorder.training.blending import Member, blend
from anyorder.training.loop import Trainer
from anyorder.training.objectives import objective_for
from anyorder.training.rows import Rows
from anyorder.variables.encoding import Unseen

FEWEST_ROWS = 24  # from which something is left to judge by
JUDGES = 0.25  # of the new rows
MOST_JUDGES = 2_000
SLOWER = 0.3  # the learning rate of a network that has learned already, over that of a new one
QUESTIONS = 2_000  # about the judging rows, each row several times if they are few


@dataclass(frozen=True)
class _Update(Job):
    """New rows as a table to be fitted, dealt out to folds by chance: no model file speaks of them."""

    @cached_property
    def folds(self) -> Folds:
        count = self.options.folds if len(self.table) < self.options.folds_below else 1
        dealt = np.random.default_rng(self.run.seed).permutation(len(self.table)) % max(count, 4)
        rows = np.arange(len(self.table))
        parts = range(count)
        return Folds([rows[dealt != k] for k in parts], [rows[dealt == k] for k in parts], by_content=False)


def update(
    model: TableModel,
    frame: Any,
    *,
    minutes: float | None = 0.5,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
    unseen: Unseen = "refuse",
    progress: bool | None = None,
) -> TableModel:
    """Another model, which has learned from new rows as well; the given one stays as it is.

    See :meth:`TableModel.update <anyorder.modalities.tables.model.TableModel.update>`.
    """
    run = Run.start(seed, "cpu", None, resume=False, log=None, tensorboard=None, progress=progress, together=False)
    options = TableOptions.read(config, minutes=minutes)
    core, table = model.core, as_pandas(frame_or_file(frame, model.schema.missing))
    if core.network.reads_order:
        raise UserError(
            "a model whose network depends on the order cannot be updated: fit a new model to all rows instead"
        )
    if len(table) < FEWEST_ROWS:
        raise UserError(f"an update needs at least {FEWEST_ROWS} new rows, got {len(table)}: collect more first")
    values, observed = core.encoding.encode(table, unseen)
    log_det = torch.as_tensor(core.encoding.log_det(values)).float()
    everything = Rows(torch.as_tensor(values).float(), torch.as_tensor(observed), log_det)
    order = np.random.default_rng(seed + 1).permutation(len(table))
    count = min(round(JUDGES * len(table)), MOST_JUDGES)
    judges, learned = order[:count], order[count:]
    job = _Update(run, options, core.schema, table.iloc[learned])
    rows = Encoded(job, "", core.encoding, everything.take(torch.as_tensor(learned)))
    with torch_threads(options.training.threads), deferred_interrupt() as interrupt:
        made, weights = _blended(core, job, rows, lambda: interrupt.requested)
        nats = [_judged(one, values[judges], observed[judges], seed) for one in (core, made)]
    gain = nats[1] - nats[0]
    error = float(gain.std(ddof=1) / np.sqrt(len(gain)))
    taken = float(gain.mean()) > error
    said = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": len(table),
        "judging_rows": len(judges),
        "taken": taken,
        "before": round(float(nats[0].mean()), 6),
        "after": round(float(nats[1].mean()), 6),
        "standard_error": round(error, 6),
        "unit": "nats per cell, new rows that were not learned from, random queries",
        "weights": weights,
        "seconds": round(run.seconds, 2),
    }
    card = {**model.card, "updates": [*model.card.get("updates", []), said]}
    return TableModel(made if taken else core, card)


def _blended(core: AnyOrderModel, job: Job, rows: Encoded, stop: Any) -> tuple[AnyOrderModel, dict[str, float]]:
    """The model and the members that the new rows make, weighed on folds of the new rows; the mean weight of each."""
    folds = len(job.folds)
    members = [Member("before", [core] * folds, [core])]
    if (lines := linear_member(job, rows, stop)) is not None:
        members.append(lines)
    if _can_grow() and not stop():
        members.append(tree_member(job, rows, MOST_FOR_TREES * job.budget.left, stop))
    if not stop() and (tuned := _tuned(core, job, rows)) is not None:
        members.append(tuned)
    judged = min(len(member.trials) for member in members)
    members = [Member(one.label, one.trials[:judged], one.final) for one in members]
    if len(members) == 1:
        return core, {"before": 1.0}
    held_out = [rows.held_out(fold) for fold in range(judged)]
    made, scores = blend(core.encoding, core.protocol, members, held_out, job.run.seed)
    return made, {label: round(float(weight), 4) for label, weight in scores.get("weights", {}).items()}


def _tuned(core: AnyOrderModel, job: Job, rows: Encoded) -> Member | None:
    """The model's own networks, trained further on the new rows outside each fold for as long as those inside gain."""
    parts = trainable_parts(core)
    if not parts:
        return None
    folds, options = len(job.folds), job.options.training
    trained: list[AnyOrderModel] = []
    for fold in range(folds):
        part = copy.deepcopy(parts[fold % len(parts)])
        whole = None if job.budget.whole is None else job.budget.left / (folds - fold)
        if whole is not None and whole <= 0:
            break
        own = replace(
            options,
            minutes=None if whole is None else whole / 60,
            learning_rate=SLOWER * options.learning_rate,
            batch=min(options.batch, max(16, len(job.folds.training[fold]) // 2)),
            validate_every=20,
            validation_queries=min(options.validation_queries, 1000),
            early_stopping=True,
            patience=3,
            falls=1,
        )
        objective = objective_for(part, Univariate(Cardinality(least=0, spare=1)), **job.options.objective)
        one = Trainer(part, objective, rows.training(fold), rows.held_out(fold), own, seed=job.run.seed + fold)
        if one.run().interrupted:
            break
        trained.append(one.finish().eval())
    return Member("network", trained, trained) if trained else None


def _can_grow() -> bool:
    try:
        lightgbm()
    except UserError:
        return False
    return True


def _judged(core: AnyOrderModel, values: np.ndarray, observed: np.ndarray, seed: int) -> np.ndarray:
    """The mean log-probability of the hidden cells of each judging row, some of its cells known; the same for all."""
    rng = np.random.default_rng(seed + 2)
    repeats = max(1, QUESTIONS // len(values))
    values, observed = np.repeat(values, repeats, axis=0), np.repeat(observed, repeats, axis=0)
    known = random_known(observed, rng, core.schema.context)
    scores = score_hidden_cells(core, values, known, observed & ~known)
    row = scores.row // repeats
    total = np.bincount(row, weights=scores.log_prob, minlength=len(values) // repeats)
    return total[(count := np.bincount(row, minlength=len(total))) > 0] / count[count > 0]
