"""The networks of a table: the encodings of its numbers race on the first fold, and the winner trains for all folds.

Every network has a trainer, and a fold's network takes up where an earlier run of the same fold and encoding stopped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import pandas as pd
import torch

from anyorder.errors import UserError
from anyorder.heads import Head
from anyorder.masking import Cardinality, Masking, Observed, Targets, Univariate, maskings
from anyorder.masking import Conditional as EvidenceThenRest
from anyorder.modalities.fit import Run, trainer
from anyorder.modalities.tables.budget import TimeBudget
from anyorder.modalities.tables.folds import Folds, divide
from anyorder.modalities.tables.heads import head_for
from anyorder.modalities.tables.options import TableOptions
from anyorder.modalities.tables.sampled import SampledTable
from anyorder.model import AnyOrderModel
from anyorder.networks import networks
from anyorder.protocols import protocols
from anyorder.support.atomic import atomic_path
from anyorder.support.boundary import reading
from anyorder.support.registry import describe
from anyorder.support.strict_json import read_json
from anyorder.training.blending import asked_of
from anyorder.training.loop import Trainer, Watch
from anyorder.training.options import Options
from anyorder.training.rows import Rows, RowSource, encoded_rows
from anyorder.variables.codecs import WarpName
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Schema

CHOICE = "encodings.json"
"""In the folder of a run: which encodings it tries."""

SHORTEST_TRIAL = 3.0  # seconds: a race between encodings that are given less says nothing of where they end
ENOUGH = 0.6  # of the budget: with less left after the first encoding there is no second one
SECONDS_TO_BEND = 0.02  # a column to normal scores
BENDING = 0.2  # of the budget at most: then columns are only scaled
OPERATIONS = 2e10  # of one core in a second, multiplying matrices,
EXPERT_OPERATIONS = 4e9  # and factoring one for each row
SECONDS_A_QUESTION = 5e-4  # by which members are weighed: trees and lines answer it too
FEWEST_STEPS = 150  # that a network should come to
FEWEST_ROWS = 16  # of a batch
VALIDATION = 0.02  # of a network's time, for one validation
FEWEST_QUERIES = 100
ROUNDS = 3  # turns of each fold's network: whenever training ends, all of them have learned about as long


@dataclass(frozen=True)
class Job:
    """A table to be fitted: under which rules, by which options, and what its columns are."""

    run: Run
    options: TableOptions
    schema: Schema
    table: pd.DataFrame
    sampled: SampledTable | None = None  # where the table is a sample of one that is larger than memory

    @cached_property
    def folds(self) -> Folds:
        """Which rows each part learns from."""
        return divide(self.options, self.schema, self.table, self.run.seed)

    @cached_property
    def budget(self) -> TimeBudget:
        """The time that is left."""
        minutes = self.options.training.minutes
        weighing = SECONDS_A_QUESTION * asked_of(len(self.schema.answered))
        return TimeBudget(self.run.began, None if minutes is None else 60 * minutes, weighing=weighing)


@dataclass(frozen=True)
class Encoded:
    """A table in one encoding, fitted to all rows where folds take turns with them, else to the training rows."""

    job: Job
    warp: str
    encoding: Encoding
    rows: Rows

    @classmethod
    def of(cls, job: Job, warp: str, late: Callable[[], bool] = lambda: False) -> Encoded:
        """The table in this encoding; a ``TimeoutError`` once it is ``late``."""
        learned = job.table if len(job.folds) > 1 else job.table.iloc[job.folds.training[0]]
        encoding = Encoding.fit(learned, job.schema, cast(WarpName, warp), late)
        return cls(job, warp, encoding, encoded_rows(encoding, job.table))

    def heads(self) -> list[Head]:
        """A new head for every variable."""
        options = self.job.options
        return [head_for(codec, options.components, options.heads) for codec in self.encoding.codecs]

    def training(self, fold: int) -> Rows:
        """The rows that a fold's part learns from."""
        return self.rows.take(torch.as_tensor(self.job.folds.training[fold]))

    @cached_property
    def source(self) -> RowSource | None:
        """The rows that networks learn from, where there are more than the table has."""
        sampled, folds = self.job.sampled, self.job.folds
        if sampled is None or sampled.file is None:
            return None
        return sampled.stored(self.encoding, folds.held_out[0], self.job.run.folder)

    def held_out(self, fold: int) -> Rows:
        """The rows that judge it."""
        return self.rows.take(torch.as_tensor(self.job.folds.held_out[fold]))


class Race:
    """The trainers of a table's networks. ``kept``: seconds of the budget that are for other members."""

    def __init__(self, job: Job, kept: float) -> None:
        kind = networks.of(job.options.network)
        if not kind.trainable:
            raise UserError(
                f"the network {kind.name!r} is not trained in steps (it is closed-form, grown, or made of others); "
                "choose one that is, such as 'residual_mlp'"
            )
        if job.schema.pairs and kind.reads_order:
            raise UserError(
                f"missingness='joint' needs a network that can hide a column's own indicator at each step, "
                f"such as 'residual_mlp' or 'bidirectional_transformer'; {kind.name!r} cannot"
            )
        self.job = job
        self.kept = kept
        tables = self._tables(list(reversed(kind.encodings)))
        self._forget([table.warp for table in tables])
        # Each encoding has its trial, and the winner goes on for all folds.
        self.parts = len(job.folds) + job.options.trial * (len(tables) - 1)
        self.runners = [(table, self._trainer(table, 0)) for table in tables]

    def decide(self, watch: Watch | None) -> Encoded:
        """Give every encoding its trial on the first fold, where there are several; the best one."""
        if len(self.runners) > 1:
            each = (self.job.budget.left - self.kept) / self.parts
            for _, one in self.runners:
                _allow(one, one.progress.seconds + max(each, 0.0))
                if one.run(share=self.job.options.trial, watch=watch, judge=True).interrupted:
                    break
        return self._winner()[0]

    def train(self, watch: Watch | None) -> list[Trainer]:
        """The networks of all folds in the best encoding; of the first ones, where Ctrl-C came before the others."""
        table, winner = self._winner()
        trainers, folds = [winner], len(self.job.folds)
        if any(one.progress.interrupted for _, one in self.runners):
            return trainers
        whole = (self.job.budget.left + winner.progress.seconds) / folds  # for each fold
        rounds = ROUNDS if folds > 1 else 1
        for number in range(1, rounds + 1):
            for fold in range(folds):
                if fold == len(trainers):
                    trainers.append(self._trainer(table, fold))
                # What is still planned must fit into what is left.
                used = [one.progress.seconds for one in trainers if not one.progress.done]
                planned = sum(max(whole - some, 0.0) for some in used) + whole * (folds - len(trainers))
                hurry = min(self.job.budget.left / planned, 1.0) if 0 < planned < math.inf else 1.0
                one = trainers[fold]
                if not one.progress.done:
                    _allow(one, one.progress.seconds + max(whole - one.progress.seconds, 0.0) * hurry)
                if one.run(share=number / rounds, watch=watch, judge=True).interrupted:
                    return trainers
        return trainers

    @property
    def scores(self) -> dict[str, float | None]:
        """The best held-out score of each encoding on the first fold; None for one that only diverged."""
        bests = {table.warp: one.progress.best for table, one in self.runners}
        return {warp: best if math.isfinite(best) else None for warp, best in bests.items()}

    def _winner(self) -> tuple[Encoded, Trainer]:
        return max(self.runners, key=lambda runner: runner[1].progress.best)

    def _tables(self, encodings: Sequence[str]) -> list[Encoded]:
        """The table in every encoding that is to be tried, as the clock of the first process has it."""
        processes = self.job.run.processes
        if not processes.leads:
            return [Encoded.of(self.job, warp) for warp in json.loads(processes.told())]
        tables = self._in_time(encodings)
        processes.told(json.dumps([table.warp for table in tables]).encode())
        return tables

    def _in_time(self, encodings: Sequence[str]) -> list[Encoded]:
        """The table in every encoding for which there is time."""
        job, options = self.job, self.job.options
        if options.encoding != "auto":
            encodings = [options.encoding]
        elif all(variable.kind.has_levels for variable in job.schema.variables):
            encodings = encodings[:1]  # without numbers all encodings are one
        before = self._chosen_before(encodings)
        if before is not None:
            return [Encoded.of(job, name) for name in before]
        tables = [self._first(encodings)]
        for name in encodings[1:]:
            # Where a table has so many columns that another encoding would eat up the time to train, this one is it.
            with suppress(TimeoutError):
                if name != tables[0].warp and _time_for_another(job, self.kept):
                    tables.append(Encoded.of(job, name, lambda: not _time_for_another(job, self.kept)))
        if job.run.folder is not None and len(encodings) > 1:
            with atomic_path(job.run.folder / CHOICE) as beside:
                beside.write_text(json.dumps([table.warp for table in tables]), encoding="utf-8")
        return tables

    def _chosen_before(self, encodings: Sequence[str]) -> list[str] | None:
        """The encodings that the run to be resumed has tried, whether or not this one would have time for them.

        Their number decides on each one's budget, so with others the run would not take up its own checkpoints.
        """
        path = None if self.job.run.folder is None else self.job.run.folder / CHOICE
        if path is None or not self.job.run.resume or not path.is_file():
            return None
        with reading(str(path)):
            found = read_json(path.read_bytes())
            if not isinstance(found, list) or not found or not set(found) <= set(encodings):
                raise UserError(f"expected encodings out of {list(encodings)}, got {found!r:.80}")
        return [name for name in encodings if name in found]

    def _first(self, encodings: Sequence[str]) -> Encoded:
        """The table in the first encoding; in the last, which is the quickest, where that would take too long."""
        budget = self.job.budget
        slow = budget.whole is not None and SECONDS_TO_BEND * len(self.job.schema) > BENDING * budget.whole
        if len(encodings) > 1 and not slow:
            with suppress(TimeoutError):
                return Encoded.of(self.job, encodings[0], lambda: budget.late(ENOUGH))
        return Encoded.of(self.job, encodings[-1])

    def _forget(self, warps: Sequence[str]) -> None:
        """Remove what an earlier run has left in the folder of this one, unless it is to go on."""
        labels = [_label(warp, fold) for warp in warps for fold in range(len(self.job.folds))]
        for path in () if self.job.run.resume else map(self.job.run.checkpoint, labels):
            if path is not None:
                path.unlink(missing_ok=True)

    def _trainer(self, table: Encoded, fold: int) -> Trainer:
        """The trainer of a fold's network, where it stopped if it is to go on."""
        job, seed = self.job, self.job.run.seed + fold
        options = job.options
        rows, heads = table.training(fold), table.heads()
        asked = sum(head.levels == 0 for head in heads if head.size)
        reals = sum(head.levels == 0 for head in heads) if asked else 0
        kind = networks.of(options.network)
        short = kind.for_short_tables if len(job.folds) > 1 else {}
        network = {**short, **kind.defaults(table.warp, reals), **options.network}
        model = AnyOrderModel.build(table.encoding, heads, network, protocols.build(options.protocol), seed=seed)
        model.network.prepare(rows.values, rows.observed)
        learning, answering = _row_seconds(model, asked if network.get("expert") else 0)
        one = trainer(
            replace(job.run, seed=seed),
            model,
            _masking(options.masking, model, rows),
            table.source or rows,
            table.held_out(fold),
            options.objective,
            _affordable(_share(options.training, 1 / self.parts), learning, answering, len(job.folds)),
            label=_label(table.warp, fold),
            spent=0.0,
        )
        job.budget.before += one.progress.seconds
        wide = (SECONDS_A_QUESTION + 3 * answering) * asked_of(len(job.schema.answered))
        job.budget.weighing = max(job.budget.weighing, wide)
        return one


def _time_for_another(job: Job, kept: float) -> bool:
    """Whether the trial of another encoding would take little of the time, and be long enough to tell something."""
    seconds = (job.budget.left - kept) * job.options.trial / (len(job.folds) + job.options.trial)
    return seconds >= SHORTEST_TRIAL and not job.budget.late(ENOUGH)


def _label(warp: str, fold: int) -> str:
    return warp if fold == 0 else f"{warp}-{fold}"


def _allow(one: Trainer, seconds: float) -> None:
    """So many seconds in all, for a trainer with a budget in time."""
    if one.seconds is not None:
        one.seconds = seconds


def _masking(described: Mapping[str, Any], model: AnyOrderModel, rows: Rows) -> Masking:
    if described.get("name") != "auto":
        return maskings.build(_about_columns(described, model.schema, rows))
    # A network that reads an order learns only the steps of the chains it is shown: evidence, and all the rest.
    evidence = Cardinality(least=0, spare=1)
    return EvidenceThenRest(evidence) if model.network.reads_order else Univariate(evidence)


def _about_columns(masking: Any, schema: Schema, rows: Rows) -> Any:
    """A masking as a table's user writes it: targets by column name, patterns of missing cells from the table.

    In a table with context it speaks of the other columns alone, in their order.
    """
    if isinstance(masking, list | tuple):
        return [_about_columns(part, schema, rows) for part in masking]
    if not isinstance(masking, Mapping):
        return masking
    described = {name: _about_columns(value, schema, rows) for name, value in masking.items()}
    if described.get("name") == Targets.name:
        columns = described.get("targets", ())
        described["targets"] = [schema.answered.index(schema.asked(c)) if isinstance(c, str) else c for c in columns]
    if described.get("name") == Observed.name and "patterns" not in described:
        return describe(Observed.from_observed(rows.observed[:, list(schema.answered)]))
    return described


def _share(options: Options, share: float) -> Options:
    """Copy the options with that share of the steps; the time of a network is told to its trainer."""
    return replace(options, steps=None if options.steps is None else max(1, round(options.steps * share)))


def _row_seconds(model: AnyOrderModel, expert: int) -> tuple[float, float]:
    """About how long one core needs to learn from a row, and to answer for one.

    From the size of the model and of the Gaussian ``expert`` beside it, not from a clock: a resumed run must come to
    the same.
    """
    weights = 2 * sum(parameter.numel() for parameter in model.parameters()) / OPERATIONS
    factors = expert**3 / EXPERT_OPERATIONS
    return 3 * weights + factors, weights + factors


def _affordable(options: Options, learning: float, answering: float, folds: int) -> Options:
    """Smaller batches and fewer validation queries, where a table is so wide that its time would hold few of them."""
    if options.minutes is None:
        return options
    whole = 60 * options.minutes / 2 / folds  # about what one network has
    return replace(
        options,
        batch=min(options.batch, max(FEWEST_ROWS, int(whole / FEWEST_STEPS / learning))),
        validation_queries=min(options.validation_queries, max(FEWEST_QUERIES, int(whole * VALIDATION / answering))),
    )
