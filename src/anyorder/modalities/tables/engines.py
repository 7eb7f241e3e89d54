"""Two engines for a table and their blend: a network, boosted trees, or both as one mixture.

Networks are strong where columns bend smoothly together, trees where they step and jump, and held-out rows tell which
of them to believe for which variable: p(x_i | x_e) = sum_m w_im p_m(x_i | x_e), the weights w_i by EM. ``auto`` trains
the network first, since the trees grow in its encoding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float

from anyorder.errors import UserError, nearest
from anyorder.heads import Head
from anyorder.modalities.tables.heads import head_for
from anyorder.modalities.tables.options import Config
from anyorder.modalities.tables.race import candidates, race, split_rows
from anyorder.model import AnyOrderModel, layout_of
from anyorder.networks import ChainNetwork, networks
from anyorder.networks.boosted_trees import BoostedTrees, lightgbm
from anyorder.protocols import protocols
from anyorder.support.interrupt import deferred_interrupt
from anyorder.support.threads import torch_threads
from anyorder.training.blending import Member, blend
from anyorder.training.curves import Curve
from anyorder.training.loop import Trainer
from anyorder.training.progress import trees_bar
from anyorder.training.rows import Rows, encoded_rows
from anyorder.training.trees.classes import tree_head
from anyorder.training.trees.growing import Judged, all_rows, grow_trees, judge_trees
from anyorder.training.trees.options import JUDGED, Clock, TreeOptions, tree_seconds
from anyorder.variables.codecs import Codec, Space, WarpName
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema
from anyorder.variables.warp import Warp

Engine: TypeAlias = Literal["auto", "neural", "trees"]

MOST_FOR_TREES = 0.5  # of the budget of "auto"


@dataclass(frozen=True)
class Fitted:
    """A trained model and what its card says about the training."""

    core: AnyOrderModel
    chosen: str
    training: dict[str, Any]
    scores: dict[str, Any]


@dataclass(frozen=True)
class Run:
    """What every engine needs to know."""

    settings: Config
    schema: Schema
    table: pd.DataFrame
    seed: int
    device: torch.device
    folder: Path | None = None
    curves: Sequence[Curve] = ()
    resume: bool = False
    progress: bool = False
    began: float = 0.0  # monotonic seconds: preparation counts against the budget


def fit_engine(run: Run) -> Fitted:
    """The engine that the configuration names, fitted."""
    engine = run.settings.engine
    if engine not in get_args(Engine):
        raise UserError(f"unknown engine {engine!r}; {nearest(engine, get_args(Engine))}")
    if engine == "auto" and not _trees_help(run):
        engine = "neural"
    trainers: list[Trainer] = []
    winner = None
    if engine != "trees":
        trainers = _trainers(run, 1 - _trees_share(run) if engine == "auto" else 1.0)
        winner = race(trainers, run.settings, run.progress)
    training: dict[str, Any] = {
        "engine": engine,
        "steps": winner.progress.step if winner else 0,
        "best_step": winner.progress.best_step if winner else 0,
        "interrupted": any(trainer.progress.interrupted for trainer in trainers),
    }
    scores: dict[str, Any] = {"unit": "nats per cell, held-out rows, random queries"}
    if winner is not None:
        scores["encodings"] = {trainer.label: trainer.progress.best for trainer in trainers}
        scores["held_out"] = winner.progress.best
    chosen = winner.label if winner else run.settings.encoding
    if winner is not None and (engine == "neural" or training["interrupted"]):
        core = winner.finish().cpu()
    else:
        core, weighed, stopped = _with_trees(run, winner)
        scores |= weighed
        training["interrupted"] = training["interrupted"] or stopped
    training["seconds"] = round(time.monotonic() - run.began, 2)
    training["parameters"] = sum(parameter.numel() for parameter in core.parameters())
    return Fitted(core, chosen, training, scores)


def _trees_help(run: Run) -> bool:
    """Whether "auto" should grow trees: the table is not too long for them and the network is one they can join."""
    if len(run.table) > run.settings.trees.most_rows:
        return False
    name = run.settings.network.get("name")
    if name is not None and issubclass(networks.get(str(name)), ChainNetwork):
        return False
    try:
        lightgbm()
    except UserError:
        return False
    return True


def _trees_share(run: Run) -> float:
    """The part of the budget that "auto" keeps for the trees: what they need, within limits."""
    minutes = run.settings.training.minutes
    if minutes is None:
        return MOST_FOR_TREES
    needed = tree_seconds(len(run.table), len(run.schema.names), run.settings.trees)
    return min(max(needed / (60 * minutes), 0.1), MOST_FOR_TREES)


def _trainers(run: Run, share: float) -> list[Trainer]:
    settings = run.settings
    if share < 1 and settings.training.minutes is not None:
        settings = replace(settings, training=replace(settings.training, minutes=settings.training.minutes * share))
    with torch_threads(settings.training.threads):
        trainers = candidates(settings, run.schema, run.table, run.seed, run.device, run.folder, run.curves)
    for trainer in trainers:
        # The budget is the user's time, so preparation counts; but it may not eat up a candidate's whole trial.
        trainer.progress.seconds = (time.monotonic() - run.began) / len(trainers)
        if trainer.options.minutes is not None:
            trial = 60 * trainer.options.minutes * settings.trial
            trainer.progress.seconds = min(trainer.progress.seconds, trial / 2)
        trainer.take_up(resume=run.resume)
    return trainers


def _with_trees(run: Run, winner: Trainer | None) -> tuple[AnyOrderModel, dict[str, Any], bool]:
    """Trees, blended with the network if there is one; how the members scored; whether Ctrl-C cut growth short."""
    # Also while rows are encoded and members weighed: whatever Ctrl-C meets here, a trained network must not be lost.
    with deferred_interrupt() as interrupt:
        model, scores = _grown_and_blended(run, winner, lambda: interrupt.requested)
        return model, scores, interrupt.requested


def _grown_and_blended(
    run: Run, winner: Trainer | None, stop: Callable[[], bool]
) -> tuple[AnyOrderModel, dict[str, Any]]:
    settings = run.settings
    training, validation = split_rows(settings, run.table, run.seed)
    if winner is None:
        warp = cast(WarpName, "normal_scores" if settings.encoding == "auto" else settings.encoding)
        encoding = Encoding.fit(training, run.schema, warp)
        heads = [head_for(codec, settings.components, settings.heads) for codec in encoding.codecs]
    else:
        core = winner.finish().cpu()
        encoding = core.encoding
        heads = [core.heads.of(variable) for variable in range(core.variables)]
    rows, judges = encoded_rows(encoding, training), encoded_rows(encoding, validation)
    options = settings.trees
    deadline = None
    if settings.training.minutes is not None:
        # What the network left of the budget, and its own share at least; a little is needed to weigh the members.
        whole = 60 * settings.training.minutes
        least = (_trees_share(run) - 0.05) * whole if winner else 0.0
        deadline = max(run.began + 0.95 * whole, time.monotonic() + least)
    if settings.training.steps is not None:
        options = replace(options, rounds=min(options.rounds, settings.training.steps))
    forest = _Forest(encoding, heads, rows, options, run.seed)
    final = all_rows(rows, judges) if len(run.table) <= options.refit_below else rows
    with trees_bar(run.progress, (1 + options.members) * len(heads)) as advance:
        clock = Clock((JUDGED + options.members) * len(heads), deadline, stop)
        judged = forest.judged(judges, clock, advance)
        grown = [forest.grown(number, final, judged, clock, advance) for number in range(options.members)]
    protocol = protocols.build(settings.protocol)
    members = [] if winner is None else [Member("neural", core, [core])]
    models = [AnyOrderModel(encoding, network, own, protocol).eval() for own, network in grown]
    members.append(Member("trees", AnyOrderModel(encoding, judged.network, judged.heads, protocol).eval(), models))
    with torch_threads(settings.training.threads):
        return blend(encoding, protocol, members, judges, run.seed)


@dataclass(frozen=True)
class _Forest:
    """All sets of trees of one table: the same variables, bins at shifted places, other subsets shown."""

    encoding: Encoding
    heads: Sequence[Head]
    rows: Rows
    options: TreeOptions
    seed: int

    @cached_property
    def warps(self) -> list[Warp | None]:
        """From model units to normal scores: nothing to do where the encoding has bent the column already."""
        return [_normal_scores(codec, cells) for codec, cells in zip(self.encoding.codecs, self._cells, strict=True)]

    @cached_property
    def _cells(self) -> list[Float[np.ndarray, " cells"]]:
        """The known cells of every variable, in model units."""
        values, observed = self.rows.values.numpy(), self.rows.observed.numpy()
        return [values[observed[:, place], place] for place in range(values.shape[1])]

    @cached_property
    def nominal(self) -> list[bool]:
        """Which variables have levels without an order."""
        return [
            codec.space is Space.LEVELS and codec.variable.kind is Kind.CATEGORICAL and len(codec.variable.levels) > 2
            for codec in self.encoding.codecs
        ]

    def judged(self, judges: Rows, clock: Clock, advance: Callable[[], None]) -> Judged:
        heads = self._bins(0)
        layout = layout_of(self.encoding.schema, heads)
        return judge_trees(
            heads, layout, self.nominal, self.rows, judges, self.options, seed=self.seed, clock=clock, advance=advance
        )

    def grown(
        self, number: int, rows: Rows, judged: Judged, clock: Clock, advance: Callable[[], None]
    ) -> tuple[list[Head], BoostedTrees]:
        heads = self._bins(number)
        layout = layout_of(self.encoding.schema, heads)
        return heads, grow_trees(
            heads,
            layout,
            self.nominal,
            rows,
            judged.plans,
            self.options,
            seed=self.seed + number,
            clock=clock,
            advance=advance,
            instead=judged if number == 0 else None,  # the first have the bins that were judged
        )

    def _bins(self, number: int) -> list[Head]:
        shift = (number + 0.5) / self.options.members
        columns = zip(self.heads, self._cells, self.warps, strict=True)
        return [tree_head(head, cells, self.options.bins, shift, warp) for head, cells, warp in columns]


def _normal_scores(codec: Codec, cells: Float[np.ndarray, " cells"]) -> Warp | None:
    warp = getattr(codec, "warp", None)
    if not isinstance(warp, Warp):
        return None
    return Warp.affine(0.0, 1.0) if len(warp.x) > 2 else Warp.normal_scores(cells.astype(np.float64))
