"""What every fit does, whatever it is fitted to: check, start the clock, train, finish, write the card.

A modality prepares an untrained core and its rows; :func:`run_fit` does the rest. Tables try several encodings, each
with a :func:`trainer` of its own, and run them by turns.

Under ``torchrun`` every process prepares the same and trains its share of each batch. All else is done by the first
one, whose clock decides how long it takes, and the others receive the model (:meth:`Run.finished`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from anyorder.errors import UserError
from anyorder.masking import Masking
from anyorder.modalities.card import make_card
from anyorder.modalities.options import FitOptions
from anyorder.model import AnyOrderModel
from anyorder.model.checkpoint import model_from_bytes, model_to_bytes
from anyorder.model.tensor_bytes import check_description
from anyorder.support.bars import long_work
from anyorder.support.devices import chosen_device
from anyorder.support.interrupt import deferred_interrupt
from anyorder.support.processes import ALONE, Processes, joined
from anyorder.training.curves import Curve, curves_to
from anyorder.training.forecast import noticeable, still_to_gain
from anyorder.training.loop import Trainer
from anyorder.training.objectives import objective_for
from anyorder.training.options import Options
from anyorder.training.progress import training_bar
from anyorder.training.rows import RowSource
from anyorder.training.run import check_run, run_folder


@dataclass(frozen=True)
class Run:
    """Under which rules a fit runs. ``began`` is when: preparation counts against the budget.

    ``processes``: those that train together; only the first of them writes and shows anything.
    """

    seed: int
    device: torch.device
    folder: Path | None
    curves: Sequence[Curve]
    resume: bool
    progress: bool | None
    began: float
    processes: Processes = ALONE

    @classmethod
    def start(
        cls,
        seed: int,
        device: str,
        checkpoint: str | Path | None,
        *,
        resume: bool,
        log: str | Path | None,
        tensorboard: str | Path | None,
        progress: bool | None,
        together: bool = True,
    ) -> Run:
        """Check what a user said of the run, and start its clock; ``together``: with the processes of ``torchrun``."""
        began = time.monotonic()
        seed = check_run(seed, checkpoint, resume=resume)
        processes = joined() if together else ALONE
        if not processes.leads:
            return cls(seed, chosen_device(device), None, (), False, False, began, processes)
        folder = None if checkpoint is None else run_folder(Path(checkpoint))
        return cls(seed, chosen_device(device), folder, curves_to(log, tensorboard), resume, progress, began, processes)

    def checkpoint(self, label: str) -> Path | None:
        """Where the trainer of this name keeps its state, if it does."""
        return None if self.folder is None else self.folder / f"{label}.checkpoint"

    def finished(
        self, make: Callable[[], tuple[AnyOrderModel, dict[str, Any]]], helping: Callable[[], None] = lambda: None
    ) -> tuple[AnyOrderModel, dict[str, Any]]:
        """The core and the card that the first process makes; the others do their part by ``helping``, and receive."""
        if self.processes.count == 1:
            return make()
        if not self.processes.leads:
            helping()
            return model_from_bytes(self.processes.told())
        try:
            core, card = make()
            made = model_to_bytes(core, card)
        except BaseException:
            with suppress(UserError):  # that the others have ended: what happened here is more to the point
                self.processes.told()
            raise
        self.processes.told(made)
        return core, card

    @property
    def seconds(self) -> float:
        """How long the run has taken so far."""
        return time.monotonic() - self.began


def trainer(
    run: Run,
    core: AnyOrderModel,
    masking: Masking,
    training: RowSource,
    validation: RowSource,
    objective: Mapping[str, Any],
    options: Options,
    *,
    label: str,
    spent: float,
) -> Trainer:
    """A trainer that goes on where an earlier run of the same name stopped, if that is wanted.

    ``spent``: the seconds of its budget that preparation has used up.
    """
    check_description(core.description())
    made = Trainer(
        core.to(run.device),
        objective_for(core, masking, **objective),
        training,
        validation,
        options,
        seed=run.seed,
        checkpoint=run.checkpoint(label),
        curves=run.curves,
        label=label,
        processes=run.processes,
    )
    made.progress.seconds = spent
    made.take_up(resume=run.resume)
    return made


def run_fit(
    run: Run,
    core: AnyOrderModel,
    options: FitOptions,
    masking: Masking,
    training: RowSource,
    validation: RowSource,
    *,
    modality: str,
    unit: str,
    data: Mapping[str, Any],
    arguments: Mapping[str, Any],
    reserved: float = 0.0,
    complete: Callable[[AnyOrderModel, Callable[[], bool]], tuple[AnyOrderModel, Mapping[str, Any]]] | None = None,
    **facts: Any,
) -> tuple[AnyOrderModel, dict[str, Any]]:
    """The trained core and its card. ``unit`` says what held-out scores count; ``facts`` are the modality's own.

    ``complete`` makes the final core of the trained one, and its scores, soon if it is told to stop; ``reserved``:
    seconds of the budget for that.
    """
    one = trainer(
        run,
        core,
        masking,
        training,
        validation,
        options.objective,
        options.training,
        label=modality,
        spent=run.seconds + reserved,
    )
    with training_bar(run.progress, alike=core.schema.alike) as watch:
        one.run(watch=watch)

    def completed() -> tuple[AnyOrderModel, dict[str, Any]]:
        made, scores = one.finish().cpu(), {"held_out": one.progress.best}
        if complete is not None:
            # Ctrl-C must not cost what was trained: it only makes this shorter.
            with deferred_interrupt() as interrupt, long_work("learning how to mix", run.progress, part=True):
                made, more = complete(made, lambda: interrupt.requested or one.progress.interrupted)
            scores |= more
        return made, fit_card(
            run, made, options, [one], scores, modality=modality, unit=unit, data=data, arguments=arguments, **facts
        )

    return run.finished(completed)


def fit_card(
    run: Run,
    core: AnyOrderModel,
    options: FitOptions,
    trainers: Sequence[Trainer],
    scores: Mapping[str, Any],
    *,
    modality: str,
    unit: str,
    data: Mapping[str, Any],
    arguments: Mapping[str, Any],
    **facts: Any,
) -> dict[str, Any]:
    """The card of one core; without ``trainers`` nothing of it was trained. The rest is as in :func:`run_fit`."""
    return make_card(
        modality,
        data=data,
        arguments={"seed": run.seed, **arguments},
        config=options.to_json(),
        training=training_facts(core, trainers, run.seconds),
        scores={"unit": unit, **scores},
        **facts,
    )


def training_facts(
    core: AnyOrderModel, trainers: Sequence[Trainer], seconds: float, weight: float = 1.0
) -> dict[str, Any]:
    """What a card says of the training; a model that was only grown has no trainer, one of folds has several.

    Of several, the steps are those of the longest. ``weight``: that of the networks in the model.
    """
    progress = [one.progress for one in trainers]
    gains = [gain for gain in map(still_to_gain, trainers) if gain is not None]
    gain = weight * sum(gains) / len(gains) if gains else None
    # Without a curve that tells, training that ended with its best score may well have ended too soon.
    ended_best = sum(one.best_step == one.step for one in progress)
    unknown = gain is None and 0 < len(progress) <= 2 * ended_best
    worth = min((noticeable(one.best, alike=core.schema.alike) for one in progress), default=math.inf)
    return {
        "steps": max((one.step for one in progress), default=0),
        "best_step": max((one.best_step for one in progress), default=0),
        "diverged": sum(one.diverged for one in progress),
        "interrupted": any(one.interrupted for one in progress),
        "still_improving": unknown or (gain or 0.0) > worth,
        "expected_gain": None if gain is None else round(gain, 4),
        "seconds": round(seconds, 2),
        "parameters": sum(parameter.numel() for parameter in core.parameters()),
    }
