"""What is trained for a table: one trainer per way to encode its numbers, and the race between them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd

from anyorder.errors import UserError
from anyorder.masking import Cardinality, Masking, Observed, Targets, Univariate, maskings
from anyorder.masking import Conditional as EvidenceThenRest
from anyorder.modalities.fit import Run, trainer
from anyorder.modalities.tables.heads import head_for
from anyorder.modalities.tables.options import TableOptions
from anyorder.model import AnyOrderModel
from anyorder.networks import networks
from anyorder.protocols import protocols
from anyorder.support.atomic import atomic_path
from anyorder.support.boundary import reading
from anyorder.support.registry import describe
from anyorder.support.strict_json import read_json
from anyorder.training.loop import Trainer
from anyorder.training.options import Options
from anyorder.training.progress import training_bar
from anyorder.training.rows import Rows, encoded_rows
from anyorder.variables.codecs import WarpName
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Schema

CHOICE = "encodings.json"
"""In the folder of a run: which encodings it tries."""


@dataclass(frozen=True)
class Job:
    """A table to be fitted: under which rules, by which options, and what its columns are."""

    run: Run
    options: TableOptions
    schema: Schema
    table: pd.DataFrame


def race(trainers: list[Trainer], job: Job) -> Trainer:
    """Give every candidate its trial, then the rest of the budget to the best of them."""
    trial = job.options.trial
    whole = 1 - trial * (len(trainers) - 1)
    with training_bar(job.run.progress) as watch:
        if len(trainers) > 1:
            for one in trainers:
                if one.run(share=trial / whole, watch=watch).interrupted:
                    break
        winner = max(trainers, key=lambda one: one.progress.best)
        if not any(one.progress.interrupted for one in trainers):
            winner.run(watch=watch)
    return winner


def candidates(job: Job) -> list[Trainer]:
    """A trainer for every encoding that is to be tried, all on the same rows and judged on the same others."""
    options, schema = job.options, job.schema
    kind = networks.of(options.network)
    if not kind.trainable:
        raise UserError(
            f"the network {kind.name!r} is not trained by steps (it is closed-form, grown, or made of others); "
            "choose one that is, such as 'residual_mlp'"
        )
    if schema.pairs and kind.reads_order:
        raise UserError(
            f"missingness='joint' needs a network that can hide a column's own indicator at each step, "
            f"such as 'residual_mlp' or 'bidirectional_transformer'; {kind.name!r} cannot"
        )
    if options.encoding != "auto":
        encodings: Sequence[str] = [options.encoding]
    else:
        lines = any(not variable.kind.has_levels for variable in schema.variables)
        encodings = kind.encodings if lines else kind.encodings[-1:]  # without numbers all encodings are one
    budget = _share(options.training, 1 - options.trial * (len(encodings) - 1))
    split = split_rows(options, job.table, job.run.seed)
    prepared = {encodings[0]: _prepared(job, encodings[0], *split)}
    chosen = _chosen_before(job, encodings)
    for name in encodings[1:] if chosen is None else chosen[1:]:
        # Where a table has so many columns that another encoding would eat up the time to train, the first one is it.
        with suppress(TimeoutError):
            late = partial(_late, job, budget) if chosen is None else _never
            prepared[name] = _prepared(job, name, *split, late=late)
    if job.run.folder is not None and len(encodings) > 1:
        with atomic_path(job.run.folder / CHOICE) as beside:
            beside.write_text(json.dumps(list(prepared)), encoding="utf-8")
    if len(prepared) < len(encodings):
        budget = options.training
    # The budget is the user's time, so preparation counts; but it may not eat up a candidate's whole trial.
    spent = job.run.seconds / len(prepared)
    if budget.minutes is not None:
        spent = min(spent, 60 * budget.minutes * options.trial / 2)
    return [
        trainer(job.run, *parts, options.objective, budget, label=name, spent=spent) for name, parts in prepared.items()
    ]


def _chosen_before(job: Job, encodings: Sequence[str]) -> list[str] | None:
    """The encodings that the run to be resumed has tried, whether or not this one would be late for some of them.

    Their number decides on each one's budget, so with others the run would not take up its own checkpoints.
    """
    path = None if job.run.folder is None else job.run.folder / CHOICE
    if path is None or not job.run.resume or not path.is_file():
        return None
    with reading(str(path)):
        found = read_json(path.read_bytes())
        if not isinstance(found, list) or found[:1] != list(encodings[:1]) or not set(found) <= set(encodings):
            raise UserError(f"expected encodings out of {list(encodings)}, the first one first, got {found!r:.80}")
    return [name for name in encodings if name in found]


def _late(job: Job, budget: Options) -> bool:
    """Whether preparation has used up half of a candidate's budget."""
    return budget.minutes is not None and job.run.seconds > 60 * budget.minutes / 2


def _never() -> bool:
    return False


def _prepared(
    job: Job,
    warp: str,
    training: pd.DataFrame,
    validation: pd.DataFrame,
    *,
    late: Callable[[], bool] = _never,
) -> tuple[AnyOrderModel, Masking, Rows, Rows]:
    """An untrained model in this encoding, what to train it for, the rows to learn from and those to judge by."""
    options = job.options
    encoding = Encoding.fit(training, job.schema, cast(WarpName, warp), late)
    rows, held_out = encoded_rows(encoding, training), encoded_rows(encoding, validation)
    heads = [head_for(codec, options.components, options.heads) for codec in encoding.codecs]
    reals = sum(head.levels == 0 for head in heads)
    network = {**networks.of(options.network).defaults(warp, reals), **options.network}
    model = AnyOrderModel.build(encoding, heads, network, protocols.build(options.protocol), seed=job.run.seed)
    model.network.prepare(rows.values, rows.observed)
    return model, _masking(options.masking, model, rows), rows, held_out


def _masking(described: Mapping[str, Any], model: AnyOrderModel, rows: Rows) -> Masking:
    if described.get("name") != "auto":
        return maskings.build(_about_columns(described, model.schema, rows))
    # A network that reads an order learns only the steps of the chains it is shown: evidence, and all the rest.
    evidence = Cardinality(least=0, spare=1)
    return EvidenceThenRest(evidence) if model.network.reads_order else Univariate(evidence)


def _about_columns(masking: Any, schema: Schema, rows: Rows) -> Any:
    """A masking as a table's user writes it: targets by column name, patterns of missing cells from the table."""
    if isinstance(masking, list | tuple):
        return [_about_columns(part, schema, rows) for part in masking]
    if not isinstance(masking, Mapping):
        return masking
    described = {name: _about_columns(value, schema, rows) for name, value in masking.items()}
    if described.get("name") == Targets.name:
        columns = described.get("targets", ())
        described["targets"] = [schema.index(c) if isinstance(c, str) else c for c in columns]
    if described.get("name") == Observed.name and "patterns" not in described:
        return describe(Observed.from_observed(rows.observed))
    return described


def split_rows(options: TableOptions, table: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to learn from and rows to judge by; the same ones for the same seed."""
    order = np.random.default_rng(seed).permutation(len(table))
    most = min(options.most_validation_rows, len(table) - 2)
    held_out = int(np.clip(round(options.validation_share * len(table)), 2, most))
    return table.iloc[order[held_out:]], table.iloc[order[:held_out]]


def _share(options: Options, share: float) -> Options:
    """Copy the options with that share of the budget."""
    minutes = None if options.minutes is None else options.minutes * share
    steps = None if options.steps is None else max(1, round(options.steps * share))
    return replace(options, minutes=minutes, steps=steps)
