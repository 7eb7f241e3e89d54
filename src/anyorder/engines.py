"""Two engines for a table and their blend: a network, boosted trees, or both as one mixture.

Networks are strong where columns bend smoothly together, trees where they step and jump, and held-out rows tell which
of them to believe for which variable: p(x_i | x_e) = sum_m w_im p_m(x_i | x_e), the weights w_i by EM. ``auto`` trains
the network first, since the trees grow in its encoding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from anyorder.boosting import (
    Clock,
    Judged,
    TreeOptions,
    all_rows,
    grow_trees,
    judge_trees,
    random_subsets,
    tree_head,
    tree_workers,
)
from anyorder.candidates import candidates, encoded_rows, race, split_rows
from anyorder.config import Config
from anyorder.curves import Curve
from anyorder.encoding import Codec, Encoding, LevelCodec, WarpName
from anyorder.errors import UserError, nearest
from anyorder.fair import allowed_targets, recorded
from anyorder.families import head_for
from anyorder.heads import Head
from anyorder.heads.blend import Blend, blend_weights
from anyorder.interrupt import deferred_interrupt
from anyorder.model import AnyOrderModel, layout_of
from anyorder.networks import ChainNetwork, networks
from anyorder.networks.blend import BlendNetwork
from anyorder.networks.boosted_trees import BoostedTrees, lightgbm
from anyorder.progress import trees_bar
from anyorder.protocols import protocols
from anyorder.registry import describe
from anyorder.schema import Kind, Schema
from anyorder.threads import torch_threads
from anyorder.train import FLOOR, Rows, Trainer
from anyorder.warp import Warp

Engine: TypeAlias = Literal["auto", "neural", "trees"]

TREES_SHARE = 0.3  # of the budget of "auto"
JUDGING = 4_000  # questions about held-out rows by which members are weighed,
JUDGING_CELLS = 100_000  # but no more than fit into so many cells
PRIOR_ROWS = 4.0  # held-out rows that a variable's own weights must outweigh, against those of all variables
LEAST_WEIGHT = 0.02  # a member that counts for less costs more time than it is worth


@dataclass(frozen=True)
class Fitted:
    """A trained model and what its card says about the training."""

    core: AnyOrderModel
    chosen: str
    training: dict[str, Any]
    scores: dict[str, Any]


@dataclass(frozen=True)
class _Member:
    """One model as it was judged on held-out rows, and what goes into the blend for it, with equal shares."""

    label: str
    judged: AnyOrderModel
    final: list[AnyOrderModel]


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
        share = 1 - TREES_SHARE if engine == "auto" else 1.0
        trainers = _trainers(run, share)
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
        if trainer.checkpoint is not None and trainer.checkpoint.exists():
            if run.resume:
                trainer.resume(trainer.checkpoint)
            else:
                trainer.checkpoint.unlink()  # of an earlier run: a later resume must not find it
        for curve in run.curves:
            curve.forget(trainer.label, trainer.progress.step)
    return trainers


def _with_trees(run: Run, winner: Trainer | None) -> tuple[AnyOrderModel, dict[str, Any], bool]:
    """Trees, blended with the network if there is one; how the members scored; whether Ctrl-C cut growth short."""
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
        deadline = max(run.began + 0.95 * whole, time.monotonic() + (TREES_SHARE - 0.05) * whole)
    if settings.training.steps is not None:
        options = replace(options, rounds=min(options.rounds, settings.training.steps))
    forest = _Forest(encoding, heads, rows, options, run.seed)
    final = all_rows(rows, judges) if len(run.table) <= options.refit_below else rows
    jobs = (1 + options.members) * len(heads)
    with deferred_interrupt() as interrupt, trees_bar(run.progress, jobs) as advance:
        clock = Clock(jobs, tree_workers(options), deadline, lambda: interrupt.requested)
        judged = forest.judged(judges, clock, advance)
        grown = [forest.grown(number, final, judged, clock, advance) for number in range(options.members)]
        stopped = interrupt.requested
    protocol = protocols.build(settings.protocol)
    members = [] if winner is None else [_Member("neural", core, [core])]
    models = [AnyOrderModel(encoding, network, own, protocol).eval() for own, network in grown]
    members.append(_Member("trees", AnyOrderModel(encoding, judged.network, judged.heads, protocol).eval(), models))
    with torch_threads(settings.training.threads):
        model, scores = _blend(encoding, protocol, members, judges, run.seed)
    return model, scores, stopped


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
            isinstance(codec, LevelCodec) and codec.variable.kind is Kind.CATEGORICAL and len(codec.variable.levels) > 2
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
            instead=judged.texts if number == 0 else (),  # the first have the bins that were judged
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


def _blend(
    encoding: Encoding, protocol: Any, members: list[_Member], judges: Rows, seed: int
) -> tuple[AnyOrderModel, dict[str, Any]]:
    """One model of all members that count, and how they scored on held-out rows."""
    known, weight = _questions(judges, encoding.schema.partners, seed)
    index = torch.arange(len(judges)).repeat(-(-len(known) // len(judges)))[: len(known)]
    asked = judges.take(index)
    log_probs = np.stack([_log_probs(member.judged, asked.values, known) for member in members])
    weights = _weights(log_probs, weight.numpy(), len(judges))
    weights[weights < LEAST_WEIGHT] = 0
    weights /= weights.sum(axis=0)
    kept = [place for place in range(len(members)) if weights[place].any()]
    shift = asked.log_det.double().numpy()
    scores = {
        "members": {member.label: _mean(log_probs[place] + shift, weight) for place, member in enumerate(members)},
        "weights": {member.label: float(weights[place].mean()) for place, member in enumerate(members)},
        "held_out": _mean(_mixture(log_probs, weights) + shift, weight),
    }
    parts = [model for place in kept for model in members[place].final]
    shares = np.concatenate([weights[place] * _even_shares(members[place].final) for place in kept])
    if len(parts) == 1:
        return parts[0], scores
    starts = np.concatenate([[0], np.cumsum([part.network.layout.width for part in parts])[:-1]]).tolist()
    heads: list[Head] = [
        Blend(tuple(part.heads.of(variable) for part in parts), tuple(shares[:, variable].tolist()), tuple(starts))
        for variable in range(len(encoding.codecs))
    ]
    described: tuple[Mapping[str, Any], ...] = tuple({"network": describe(part.network)} for part in parts)
    network = BlendNetwork(layout_of(encoding.schema, heads), described)
    network.parts = nn.ModuleList([part.network for part in parts])  # the trained ones
    return AnyOrderModel(encoding, network, heads, protocol).eval(), scores


def _even_shares(models: Sequence[AnyOrderModel]) -> Float[np.ndarray, "models variables"]:
    """The same share for every model of a member, but none for trees that time did not allow."""
    grown = [
        [length > 0 for length in model.network.lengths]
        if isinstance(model.network, BoostedTrees)
        else [True] * model.variables
        for model in models
    ]
    counted = np.array(grown, dtype=np.float64)
    counted[0] = np.where(counted.any(axis=0), counted[0], 1.0)  # a variable without any: its marginal answers once
    shares: Float[np.ndarray, "models variables"] = counted / counted.sum(axis=0)
    return shares


def _questions(
    judges: Rows, partners: Sequence[int], seed: int
) -> tuple[Bool[Tensor, "questions variables"], Float[Tensor, "questions variables"]]:
    """Which cells are known in each question, and how much each asked cell counts: every question once in all."""
    most = max(len(judges), min(JUDGING, JUDGING_CELLS // judges.values.shape[1]))
    observed = judges.observed.repeat(-(-most // len(judges)), 1)[:most]
    generator = np.random.default_rng([seed, 7])
    chosen = torch.as_tensor(random_subsets(len(observed), observed.shape[1], generator))
    asked = (observed & allowed_targets(chosen, partners)).double()
    return recorded(chosen, observed, partners), asked / asked.sum(dim=1, keepdim=True).clamp(min=1)


@torch.no_grad()
def _log_probs(
    model: AnyOrderModel, values: Tensor, known: Bool[Tensor, "questions variables"]
) -> Float[np.ndarray, "questions variables"]:
    parts = [
        model.log_prob_beside(values[part], known[part]).double() for part in torch.arange(len(values)).split(1000)
    ]
    nats: Float[np.ndarray, "questions variables"] = torch.cat(parts).clamp(min=FLOOR).numpy()
    return nats


def _weights(
    log_probs: Float[np.ndarray, "members questions variables"],
    weight: Float[np.ndarray, "questions variables"],
    rows: int,
) -> Float[np.ndarray, "members variables"]:
    """The members' weights for every variable; a variable with few held-out cells follows all variables together."""
    members, questions, variables = log_probs.shape
    even = np.full(members, 1 / members)
    # Many questions about one row are worth little more than one: cells count so that rows are what is counted.
    scale = rows / questions
    flat = log_probs.reshape(members, -1)
    common = blend_weights(flat, even, PRIOR_ROWS, counts=weight.reshape(-1) * scale)
    own = [
        blend_weights(log_probs[:, :, place], common, PRIOR_ROWS, counts=weight[:, place] * scale * variables)
        for place in range(variables)
    ]
    return np.stack(own, axis=1)


def _mixture(log_probs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        mixed: np.ndarray = np.logaddexp.reduce(log_probs + np.log(weights)[:, None, :], axis=0)
    return mixed


def _mean(nats: np.ndarray, weight: Tensor) -> float:
    counted = weight.numpy()
    return float((nats * counted).sum() / max(counted.sum(), 1e-12))
