"""What is trained for a table: one trainer per way to encode its numbers, and the race between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from anyorder.errors import UserError
from anyorder.masking import Cardinality, Masking, Observed, Targets, Univariate, maskings
from anyorder.masking import Conditional as EvidenceThenRest
from anyorder.modalities.tables.heads import head_for
from anyorder.modalities.tables.options import Config
from anyorder.model import AnyOrderModel
from anyorder.networks import networks
from anyorder.protocols import protocols
from anyorder.support.registry import describe
from anyorder.training.curves import Curve
from anyorder.training.loop import Trainer
from anyorder.training.objectives import objective_for
from anyorder.training.options import Options
from anyorder.training.progress import training_bar
from anyorder.training.rows import Rows, encoded_rows
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Schema


def race(trainers: list[Trainer], settings: Config, show: bool) -> Trainer:
    """Give every candidate its trial, then the rest of the budget to the best of them."""
    whole = 1 - settings.trial * (len(trainers) - 1)
    with training_bar(show) as watch:
        if len(trainers) > 1:
            for trainer in trainers:
                if trainer.run(share=settings.trial / whole, watch=watch).interrupted:
                    break
        winner = max(trainers, key=lambda trainer: trainer.progress.best)
        if not any(trainer.progress.interrupted for trainer in trainers):
            winner.run(watch=watch)
    return winner


def candidates(
    settings: Config,
    schema: Schema,
    table: pd.DataFrame,
    seed: int,
    device: torch.device,
    checkpoint: Path | None,
    curves: Sequence[Curve],
) -> list[Trainer]:
    """A trainer for every encoding that is to be tried, all on the same rows and judged on the same others."""
    training, validation = split_rows(settings, table, seed)
    kind = networks.of(settings.network)
    if not kind.trainable:
        raise UserError(
            f"the network {kind.name!r} is not trained by steps (it is closed-form, grown, or made of others); "
            "choose one that is, such as 'residual_mlp'"
        )
    if settings.encoding != "auto":
        encodings: Sequence[str] = [settings.encoding]
    else:
        lines = any(not variable.kind.has_levels for variable in schema.variables)
        encodings = kind.encodings if lines else kind.encodings[-1:]  # without numbers all encodings are one
    budget = _share(settings.training, 1 - settings.trial * (len(encodings) - 1))
    trainers: list[Trainer] = []
    for name in encodings:
        encoding = Encoding.fit(training, schema, name)  # type: ignore[arg-type]  # Config checked the name
        rows, judges = encoded_rows(encoding, training), encoded_rows(encoding, validation)
        heads = [head_for(codec, settings.components, settings.heads) for codec in encoding.codecs]
        network = {**kind.defaults(name, sum(head.levels == 0 for head in heads)), **settings.network}
        protocol = protocols.build(settings.protocol)
        model = AnyOrderModel.build(encoding, heads, network, protocol, seed=seed)
        if schema.pairs and kind.reads_order:
            raise UserError(
                f"missingness='joint' needs a network that can hide a column's own indicator at each step, "
                f"such as 'residual_mlp' or 'bidirectional_transformer'; {kind.name!r} cannot"
            )
        model.network.prepare(rows.values, rows.observed)
        objective = dict(settings.objective)
        masking = _masking(settings.masking, model, rows)
        trainers.append(
            Trainer(
                model.to(device),
                objective_for(model, masking, **objective),
                rows,
                judges,
                budget,
                seed=seed,
                checkpoint=None if checkpoint is None else checkpoint / f"{name}.checkpoint",
                curves=curves,
                label=name,
            )
        )
    return trainers


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


def split_rows(settings: Config, table: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to learn from and rows to judge by; the same ones for the same seed."""
    order = np.random.default_rng(seed).permutation(len(table))
    most = min(settings.most_validation_rows, len(table) - 2)
    held_out = int(np.clip(round(settings.validation_share * len(table)), 2, most))
    return table.iloc[order[held_out:]], table.iloc[order[:held_out]]


def _share(options: Options, share: float) -> Options:
    """The same options with that share of the budget."""
    minutes = None if options.minutes is None else options.minutes * share
    steps = None if options.steps is None else max(1, round(options.steps * share))
    return replace(options, minutes=minutes, steps=steps)
