"""Tables: from a frame to a fitted model, and the model's public face in the units of the data."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from anyorder.checkpoint import load_model, save_model
from anyorder.conditional import Conditional, log_probs
from anyorder.config import Config
from anyorder.curves import Curve, JsonLines, TensorBoard
from anyorder.data.frames import as_pandas, like_input
from anyorder.data.tables import prepare
from anyorder.encoding import Encoding, LevelCodec
from anyorder.errors import UserError
from anyorder.heads import Bernoulli, Categorical, DiscretizedLogisticMixture, GaussianMixture, Head
from anyorder.impute import fill_draws, fill_point
from anyorder.masking import Cardinality, Masking, Observed, Targets, Univariate, maskings
from anyorder.masking import Conditional as EvidenceThenRest
from anyorder.model import AnyOrderModel
from anyorder.networks import ChainNetwork
from anyorder.networks.gaussian import GaussianNetwork, fit_moments
from anyorder.networks.residual_mlp import ResidualMLP
from anyorder.objectives import objective_for
from anyorder.progress import training_bar
from anyorder.protocols import protocols
from anyorder.query import Query
from anyorder.registry import describe
from anyorder.schema import Schema
from anyorder.train import Options, Rows, Trainer

FEWEST_ROWS = 4  # two to learn from and two to judge by


class TableModel:
    """A fitted model of a table. Every method speaks in the columns, values and units of that table."""

    def __init__(self, core: AnyOrderModel, card: dict[str, Any]) -> None:
        self.core = core
        self.card = card

    def __repr__(self) -> str:
        return f"TableModel({len(self.schema)} variables: {', '.join(self.schema.names)})"

    @property
    def schema(self) -> Schema:
        return self.core.schema

    def given(self, evidence: Mapping[str, Any] | None = None, /, **more: Any) -> Conditional:
        """p(... | evidence), lazily: nothing runs until a number is asked for."""
        return Conditional(self.core, {**(evidence or {}), **more})

    def asking(self, *names: str) -> Conditional:
        """p(names), no evidence."""
        return Conditional(self.core, asked=names)

    def __getitem__(self, name: str) -> Any:
        """The marginal distribution of one column."""
        return self.given()[name]

    def log_prob(self, frame: Any, given: Any = None, *, orders: int = 1, seed: int = 0) -> Any:
        """One number a row, in nats: log p of its filled cells, jointly; unknown cells are marginalised out.

        ``given``: names of columns, or a frame or array of booleans, whose cells are evidence instead of being asked.
        ``orders`` > 1 averages the probability over that many orders (SFARM eq. 14).
        """
        table = as_pandas(frame)
        values, observed = self.core.encoding.encode(table)
        known = observed & self._given_mask(table, given, observed.shape)
        query = Query(torch.as_tensor(known), torch.as_tensor(observed & ~known))
        nats = log_probs(self.core, torch.as_tensor(values), query, orders=orders, seed=seed)
        average = np.logaddexp.reduce(nats, axis=0) - np.log(orders)
        scores = pd.DataFrame({"log_prob": average}, index=table.index)
        return like_input(scores, frame)["log_prob"]

    def sample(self, n: int = 1, seed: int = 0) -> pd.DataFrame:
        """``n`` rows from the joint distribution."""
        return self.given().sample(n, seed=seed)

    def fill(self, frame: Any, draws: int | None = None, seed: int = 0) -> Any:
        """Unknown cells filled: by mean or most probable level, or by ``draws`` joint draws (a list of frames)."""
        table = as_pandas(frame)
        if draws is None:
            return like_input(fill_point(self.core, table), frame)
        if draws < 1:
            raise UserError(f"draws must be 1 or more, got {draws}; leave it out for one best fill")
        return [like_input(filled, frame) for filled in fill_draws(self.core, table, draws, seed)]

    def save(self, path: str | Path) -> None:
        """One ``.anyorder`` file, written atomically."""
        save_model(self.core, self.card, path)

    def _given_mask(self, table: pd.DataFrame, given: Any, shape: tuple[int, ...]) -> np.ndarray:
        mask = np.zeros(shape, dtype=bool)
        if given is None:
            return mask
        if isinstance(given, str):
            given = [given]
        if isinstance(given, Sequence) and all(isinstance(name, str) for name in given):
            mask[:, [self.schema.index(name) for name in given]] = True
            return mask
        if isinstance(given, np.ndarray):
            if given.dtype != bool or given.shape != (len(table), table.shape[1]):
                raise UserError(
                    f"given must be booleans of shape {(len(table), table.shape[1])}, got {given.dtype} {given.shape}"
                )
            given = pd.DataFrame(given, columns=table.columns)
        marks = as_pandas(given)
        if len(marks) != len(table):
            raise UserError(f"given has {len(marks)} rows and the table {len(table)}; they must be the same rows")
        for name in marks.columns:
            if not pd.api.types.is_bool_dtype(marks[name].dtype):
                raise UserError(f"given must hold booleans; its column {name!r} is {marks[name].dtype}")
            if name in self.schema:
                mask[:, self.schema.index(name)] = marks[name].to_numpy()
        return mask


def load(path: str | Path, device: str = "cpu") -> TableModel:
    """Read a model file; answers are bit-identical to those before saving."""
    core, card = load_model(path, device=device)
    return TableModel(core, card)


def fit(
    frame: Any,
    *,
    minutes: float | None = None,
    seed: int = 0,
    kinds: Mapping[str, str] | None = None,
    missing: Sequence[str] = (),
    drop: Sequence[str] = (),
    config: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    log: str | Path | None = None,
    tensorboard: str | Path | None = None,
    progress: bool = False,
    device: str = "auto",
) -> TableModel:
    """Fit one model to a table; afterwards ask it any conditional question.

    Parameters
    ----------
    frame
        pandas or polars; NaN, None and the marks in ``missing`` are unknown cells, in training too.
    minutes
        The most time to train (2 by default). Ctrl-C stops earlier and keeps the best model so far.
    kinds
        Overrides of what a column is, such as ``{"zip": "categorical"}``.
    config
        Further options, as a TOML file holds them (see :class:`~anyorder.config.Config`).
    checkpoint, resume
        A folder that keeps the state of the run; with ``resume`` a killed run goes on from there.
    log, tensorboard
        A file to which the training curve is written, one JSON object a line; a folder for TensorBoard.
    """
    settings = Config.read(config, minutes=minutes)
    schema, table = prepare(frame, kinds=kinds, missing=missing, drop=drop)
    if len(table) < FEWEST_ROWS:
        raise UserError(f"a table needs at least {FEWEST_ROWS} rows to learn from, got {len(table)}")
    curves: list[Curve] = [] if log is None else [JsonLines(Path(log))]
    if tensorboard is not None:
        curves.append(TensorBoard(Path(tensorboard)))
    trainers = _candidates(settings, schema, table, seed, _device(device), checkpoint, curves)
    if resume:
        for trainer in trainers:
            if trainer.checkpoint and trainer.checkpoint.exists():
                trainer.resume(trainer.checkpoint)
    winner = _race(trainers, settings, progress)
    arguments = {"seed": seed, "kinds": dict(kinds or {}), "missing": list(missing), "drop": list(drop)}
    card = _card(winner, trainers, settings, table, arguments)
    return TableModel(winner.finish().cpu(), card)


def _race(trainers: list[Trainer], settings: Config, show: bool) -> Trainer:
    """Give every candidate its trial, then the rest of the budget to the best of them."""
    whole = 1 - settings.trial * (len(trainers) - 1)
    with training_bar(show, settings.training.minutes) as watch:
        if len(trainers) > 1:
            for trainer in trainers:
                if trainer.run(share=settings.trial / whole, watch=watch).interrupted:
                    break
        winner = max(trainers, key=lambda trainer: trainer.progress.best)
        if not any(trainer.progress.interrupted for trainer in trainers):
            winner.run(watch=watch)
    return winner


def _candidates(
    settings: Config,
    schema: Schema,
    table: pd.DataFrame,
    seed: int,
    device: torch.device,
    checkpoint: str | Path | None,
    curves: Sequence[Curve],
) -> list[Trainer]:
    order = np.random.default_rng(seed).permutation(len(table))
    held_out = int(np.clip(round(settings.validation_share * len(table)), 2, settings.most_validation_rows))
    training, validation = table.iloc[order[held_out:]], table.iloc[order[:held_out]]
    if settings.network.get("name") == GaussianNetwork.name:
        raise UserError(
            "the network 'gaussian' is closed-form and not trained; choose 'residual_mlp', whose 'expert' it is"
        )
    mlp = settings.network.get("name") == ResidualMLP.name
    if settings.encoding != "auto":
        encodings = [settings.encoding]
    else:
        lines = any(not variable.kind.has_levels for variable in schema.variables)
        encodings = ["standard", "normal_scores"] if lines and mlp else ["normal_scores"]
    budget = _share(settings.training, 1 - settings.trial * (len(encodings) - 1))
    if checkpoint is not None:
        Path(checkpoint).mkdir(parents=True, exist_ok=True)
    trainers: list[Trainer] = []
    for name in encodings:
        encoding = Encoding.fit(training, schema, name)  # type: ignore[arg-type]
        rows, judges = _rows(encoding, training), _rows(encoding, validation)
        heads = [_head(codec, settings.components) for codec in encoding.codecs]
        reals = torch.tensor([head.levels == 0 for head in heads])
        network = dict(settings.network)
        if mlp:
            network.setdefault("expert", name == "normal_scores" and int(reals.sum()) > 1)
        protocol = protocols.build(settings.protocol)
        model = AnyOrderModel.build(encoding, heads, network, protocol, seed=seed)
        if isinstance(model.network, ResidualMLP) and model.network.expert:
            model.network.set_moments(*fit_moments(rows.values[:, reals], rows.observed[:, reals]))
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
                checkpoint=None if checkpoint is None else Path(checkpoint) / f"{name}.checkpoint",
                curves=curves,
                label=name,
            )
        )
    return trainers


def _masking(described: Mapping[str, Any], model: AnyOrderModel, rows: Rows) -> Masking:
    if described.get("name") != "auto":
        return maskings.build(_about_columns(described, model.schema, rows))
    # A chain network learns only the steps of the chains it is shown, so it must be shown evidence and all the rest.
    evidence = Cardinality(least=0, spare=1)
    return EvidenceThenRest(evidence) if isinstance(model.network, ChainNetwork) else Univariate(evidence)


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


def _rows(encoding: Encoding, table: pd.DataFrame) -> Rows:
    values, observed = encoding.encode(table)
    log_det = encoding.log_det(values)
    return Rows(torch.as_tensor(values).float(), torch.as_tensor(observed), torch.as_tensor(log_det).float())


def _head(codec: Any, components: int) -> Head:
    """The family for a kind of column."""
    variable = codec.variable
    if isinstance(codec, LevelCodec):
        return Bernoulli() if len(variable.levels) == 2 else Categorical(len(variable.levels))
    if variable.discrete:
        return DiscretizedLogisticMixture(components, codec.lattice)
    return GaussianMixture(components)


def _share(options: Options, share: float) -> Options:
    """The same options with that share of the budget."""
    minutes = None if options.minutes is None else options.minutes * share
    steps = None if options.steps is None else max(1, round(options.steps * share))
    return replace(options, minutes=minutes, steps=steps)


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(
            f"device {name!r} cannot be used here ({str(error).splitlines()[0]}); try 'auto' or 'cpu'"
        ) from error
    return device


def _card(
    winner: Trainer, trainers: list[Trainer], settings: Config, table: pd.DataFrame, arguments: dict[str, Any]
) -> dict[str, Any]:
    """How this model came to be: enough to repeat the run and to know what to expect of it."""
    progress = winner.progress
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in ("anyorder", "torch", "numpy", "pandas")},
        },
        "data": {
            "rows": len(table),
            "columns": [str(name) for name in table.columns],
            "fingerprint": fingerprint(table),
        },
        "arguments": arguments,
        "config": settings.to_json(),
        "chosen": winner.label,
        "training": {
            "steps": progress.step,
            "seconds": round(sum(trainer.progress.seconds for trainer in trainers), 2),
            "best_step": progress.best_step,
            "interrupted": any(trainer.progress.interrupted for trainer in trainers),
            "parameters": sum(parameter.numel() for parameter in winner.model.parameters()),
        },
        "scores": {
            "unit": "nats per cell, held-out rows, random queries",
            "held_out": progress.best,
            "candidates": {trainer.label: trainer.progress.best for trainer in trainers},
        },
    }


def fingerprint(table: pd.DataFrame) -> str:
    """A hash of the cells, to tell whether two models saw the same data."""
    digest = hashlib.sha256()
    for name in table.columns:
        column = table[name]
        try:
            hashed = pd.util.hash_pandas_object(column, index=False)
        except TypeError:
            hashed = pd.util.hash_pandas_object(column.astype(str), index=False)
        digest.update(str(name).encode())
        digest.update(hashed.to_numpy().tobytes())
    return digest.hexdigest()[:16]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
