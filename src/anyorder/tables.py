"""Tables: from a frame to a fitted model, and the model's public face in the units of the data."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from anyorder.candidates import candidates, race
from anyorder.card import make_card
from anyorder.checkpoint import load_model, save_model
from anyorder.conditional import Conditional, log_probs
from anyorder.config import Config
from anyorder.curves import Curve, JsonLines, TensorBoard
from anyorder.data.frames import as_pandas, like_input
from anyorder.data.tables import prepare
from anyorder.encoding import Unseen
from anyorder.errors import UserError
from anyorder.impute import fill_draws, fill_point
from anyorder.model import AnyOrderModel
from anyorder.query import Query
from anyorder.schema import Schema
from anyorder.threads import torch_threads

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

    def log_prob(
        self, frame: Any, given: Any = None, *, orders: int = 1, seed: int = 0, unseen: Unseen = "refuse"
    ) -> Any:
        """One number a row, in nats: log p of its filled cells, jointly; unknown cells are marginalised out.

        ``given``: names of columns, or a frame or array of booleans, whose cells are evidence instead of being asked.
        ``orders`` > 1 averages the probability over that many orders (SFARM eq. 14).
        ``unseen="missing"`` takes a level that was never seen in training for an unknown cell.
        """
        table = as_pandas(frame)
        values, observed = self.core.encoding.encode(table, unseen)
        known = observed & self._given_mask(table, given, observed.shape)
        query = Query(torch.as_tensor(known), torch.as_tensor(observed & ~known))
        nats = log_probs(self.core, torch.as_tensor(values), query, orders=orders, seed=seed)
        average = np.logaddexp.reduce(nats, axis=0) - np.log(orders)
        scores = pd.DataFrame({"log_prob": average}, index=table.index)
        return like_input(scores, frame)["log_prob"]

    def sample(self, n: int = 1, seed: int = 0) -> pd.DataFrame:
        """``n`` rows from the joint distribution."""
        return self.given().sample(n, seed=seed)

    def fill(self, frame: Any, draws: int | None = None, seed: int = 0, *, unseen: Unseen = "refuse") -> Any:
        """Unknown cells filled: by mean or most probable level, or by ``draws`` joint draws (a list of frames).

        Known cells come back as they are. With ``unseen="missing"`` so do levels that were never seen in training,
        which the model then does not hear of.
        """
        table = as_pandas(frame)
        if draws is None:
            return like_input(fill_point(self.core, table, unseen), frame)
        if draws < 1:
            raise UserError(f"draws must be 1 or more, got {draws}; leave it out for one best fill")
        return [like_input(filled, frame) for filled in fill_draws(self.core, table, draws, seed, unseen)]

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
            if name in self.schema or name not in table.columns:  # the table's other columns were left out by fit
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
    began = time.monotonic()
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise UserError(f"seed must be a whole number from 0 up, got {seed!r}")
    if resume and checkpoint is None:
        raise UserError("resume needs checkpoint: the folder that keeps the state of the run")
    settings = Config.read(config, minutes=minutes)
    schema, table = prepare(frame, kinds=kinds, missing=missing, drop=drop)
    if len(table) < FEWEST_ROWS:
        raise UserError(f"a table needs at least {FEWEST_ROWS} rows to learn from, got {len(table)}")
    curves: list[Curve] = [] if log is None else [JsonLines(Path(log))]
    if tensorboard is not None:
        curves.append(TensorBoard(Path(tensorboard)))
    folder = None if checkpoint is None else _folder(Path(checkpoint))
    with torch_threads(settings.training.threads):
        trainers = candidates(settings, schema, table, seed, _device(device), folder, curves)
    for trainer in trainers:
        # The budget is the user's time, so preparation counts; but it may not eat up a candidate's whole trial.
        trainer.progress.seconds = (time.monotonic() - began) / len(trainers)
        if trainer.options.minutes is not None:
            trial = 60 * trainer.options.minutes * settings.trial
            trainer.progress.seconds = min(trainer.progress.seconds, trial / 2)
        if trainer.checkpoint is not None and trainer.checkpoint.exists():
            if resume:
                trainer.resume(trainer.checkpoint)
            else:
                trainer.checkpoint.unlink()  # of an earlier run: a later resume must not find it
        for curve in curves:
            curve.forget(trainer.label, trainer.progress.step)
    winner = race(trainers, settings, progress)
    arguments = {"seed": seed, "kinds": dict(kinds or {}), "missing": list(missing), "drop": list(drop)}
    card = make_card(winner, trainers, settings, table, arguments)
    return TableModel(winner.finish().cpu(), card)


def _folder(path: Path) -> Path:
    if path.is_file():
        raise UserError(f"checkpoint must be a folder, but {str(path)!r} is a file; name another")
    path.mkdir(parents=True, exist_ok=True)
    return path


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device, dtype=torch.float64)  # the expert and the lattices need double precision
    except (RuntimeError, AssertionError, TypeError) as error:
        raise UserError(
            f"device {name!r} cannot be used here ({str(error).splitlines()[0]}); try 'auto' or 'cpu'"
        ) from error
    return device
