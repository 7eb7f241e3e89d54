"""The training loop, top to bottom.

One :class:`Trainer` owns everything that changes while training: weights, their running average, the best average so
far, the optimiser and its generators, one for rows and masks and one for dropout. It can be written to a checkpoint
after any step and continues from there to exactly the same result. Progress is measured on a fixed, seeded set of
queries about held-out rows, and with ``noise`` only what exceeds the standard error of the gain of those rows counts;
when there is none the best weights are restored and the learning rate falls, and after a few such falls training ends.
With ``patience_share`` that takes so large a share of the budget without any progress, however long the budget is.
Without ``early_stopping`` nothing falls, and the last weights are kept as the best ones. When training diverges (a
loss, gradient or score that is not finite), the best weights are restored and the learning rate is halved; a weight too
large to be loaded again counts as diverged too. A disk that refuses a checkpoint or a curve does not end training.

Several processes may train one model, each with a trainer of its own: all draw the same rows and questions, and each
passes its share of them (:mod:`anyorder.training.gradients`), in validation too. What they add up has the same bits in
each of them, so that all take the same steps and come to the same decisions. What only one can know is agreed upon:
before every step, whether any was asked to stop, and the clock of the first; and at the beginning the state of the
first, who alone reads and writes checkpoints. How many they are is not part of the state.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.model.checkpoint import LARGEST, check_tensors, read_tensors, write_tensors
from anyorder.model.tensor_bytes import from_bytes, to_bytes
from anyorder.networks.base import rows_at_once
from anyorder.networks.parts.dropout import dropout_from
from anyorder.support.atomic import WriteError
from anyorder.support.boundary import field as part_of
from anyorder.support.boundary import reading
from anyorder.support.checks import check_fields, inside
from anyorder.support.interrupt import Interrupt, deferred_interrupt
from anyorder.support.memory import check_room
from anyorder.support.processes import ALONE, Processes
from anyorder.support.randomness import drawn_seed
from anyorder.support.registry import describe
from anyorder.support.threads import torch_threads
from anyorder.training.adamw import AdamW
from anyorder.training.curves import Curve
from anyorder.training.gradients import add_gradients
from anyorder.training.objectives import Objective
from anyorder.training.options import Options
from anyorder.training.rows import Rows, RowSource
from anyorder.training.speed import at_speed, check_speed

MOST_DIVERGENCES = 5  # the learning rate is then a 32nd: if that is still too much, it was not the rate
MOST_STEPS = 10**15  # steps: a thousand years of them are fewer
MOST_POINTS = 400  # of a training curve that are kept: then every other one goes
FLOOR = -50.0  # nats in model units: what one held-out cell can cost at most when models are compared


@dataclass
class Progress:
    """Where training stands: all of it goes into the checkpoint and to whoever watches."""

    step: int = 0
    seconds: float = 0.0
    best: float = -math.inf  # the score of the weights that are kept
    best_step: int = 0
    mark: float = -math.inf  # the score from which progress is counted
    marked: float = 0.0  # the share of the budget that was spent then, or at the last fall
    stale: int = 0
    falls: int = 0
    diverged: int = 0  # how often training went back because something was not finite
    train: float = math.nan
    validation: float = math.nan
    validated: int = -1  # the step of the last validation
    done: bool = False
    interrupted: bool = False
    noise: float = 0.0  # the standard error of what was gained since the mark
    history: list[list[float]] = field(default_factory=list)  # the share spent and the score of every validation


Watch = Callable[[Progress, float], None]
"""Called after every validation with the progress and the share of the budget that is spent."""


class Trainer:
    """Trains one model by one objective."""

    def __init__(
        self,
        model: AnyOrderModel,
        objective: Objective,
        training: RowSource,
        validation: RowSource,
        options: Options,
        *,
        seed: int,
        checkpoint: Path | None = None,
        curves: Sequence[Curve] = (),
        label: str = "",
        processes: Processes = ALONE,
    ) -> None:
        self.model = model
        self.processes = processes
        self._joined = processes.count == 1  # whether all of them are known to be in the same state
        self.objective = objective
        self.options = options
        self.seed = seed
        self.checkpoint = checkpoint
        self.curves = curves
        self.label = label
        device = model.device
        check_speed(model, options)
        self.training = training.to(device)
        check_room("validation_queries", options.validation_queries, 2 * model.variables, "set fewer")
        repeats = max(1, -(-options.validation_queries // max(len(validation), 1)))
        index = torch.arange(len(validation)).repeat(repeats)[: max(options.validation_queries, 1)]
        self.validation = validation.take(index).to(device)
        self._row = index.to(device)  # which held-out row each query is about
        self._mark_rows: Tensor | None = None  # the score of each held-out row at the mark
        self.seconds = None if options.minutes is None else 60 * options.minutes
        self.average = copy.deepcopy(model).eval()
        self.best = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        self.optimizer = AdamW(
            _decayed(model, options.weight_decay), lr=options.learning_rate, betas=(options.beta1, options.beta2)
        )
        self.progress = Progress()
        self._unwritten: set[str] = set()  # what the disk has refused, and the user was told of
        self.generator = torch.Generator(device=device).manual_seed(seed)
        # Another seed, so that what is dropped does not hang together with the rows and masks that are drawn.
        self.dropout = torch.Generator(device=device).manual_seed(drawn_seed(torch.Generator().manual_seed(seed)))

    def run(self, *, share: float = 1.0, watch: Watch | None = None, judge: bool = False) -> Progress:
        """Train until done, until ``share`` of the budget is spent, or until Ctrl-C; the best weights are kept.

        ``judge``: validate at the end in any case, as it always is when the whole budget is spent.
        """
        self._join()
        progress, since = self.progress, self.progress.step
        saved = time.monotonic()
        faster = at_speed(self.model, self.options)
        with torch_threads(self.options.threads), faster, deferred_interrupt() as interrupt:
            try:
                stop = self._agreed(interrupt)
                while not progress.done and not stop and self.spent() < share:
                    began = time.monotonic()
                    self._step()
                    if progress.step % self.options.validate_every == 0:
                        self._validate(watch)
                    progress.seconds += time.monotonic() - began
                    if self.checkpoint and time.monotonic() - saved > self.options.checkpoint_every:
                        self._keep()
                        saved = time.monotonic()
                    stop = self._agreed(interrupt)
                progress.interrupted = stop
                if progress.interrupted:  # without the validation below: a run that is not disturbed has none here
                    self._keep()
                turn = judge and self._at_the_end_of(share, since)
                over = turn or self.spent() >= 1.0 or stop or progress.best == -math.inf
                if over and progress.validated < progress.step:
                    self._validate(watch)
                progress.done = progress.done or self.spent() >= 1.0
            except KeyboardInterrupt:  # a second Ctrl-C, in the middle of a step: the checkpoint stays as it was
                progress.interrupted = True
                if self.processes.count > 1:  # nobody knows where the others are: the run is over
                    raise
                return progress
            if not progress.interrupted:
                self._keep()
        return progress

    def _at_the_end_of(self, share: float, since: int) -> bool:
        """Whether this share has just been reached: resumed beyond it, a run is not judged as it was not before."""
        if self.options.steps is None:
            return self.progress.step > since
        return (self.progress.step - 1) / self.options.steps < share <= self.progress.step / self.options.steps

    def _agreed(self, interrupt: Interrupt) -> bool:
        """Whether to stop, if any process was asked to; the clock of the run is that of the first."""
        stop, self.progress.seconds = self.processes.agreed(interrupt.requested, self.progress.seconds)
        return stop

    def _join(self) -> None:
        """Take over what the first process knows: its budget and, at the beginning, its state."""
        if self.processes.count == 1:
            return
        said = json.loads(self.processes.told(json.dumps([self.identity, self.seconds]).encode()))
        if self.processes.agreed(said[0] != self.identity, 0.0)[0]:
            raise UserError(
                "the processes of this run do not fit the same model to the same data with the same options and seed; "
                "start all of them alike, or fit each model in a process that is not started by torchrun"
            )
        self.seconds = said[1]
        if not self._joined:
            state = self.processes.told(to_bytes(*self._state()) if self.processes.leads else None)
            if not self.processes.leads:
                tensors, header = from_bytes(state)
                self._restore(tensors, header["progress"])
            self._joined = True

    def _keep(self) -> None:
        """Write the run's own checkpoint, if it has one."""
        if self.checkpoint:
            self._write(self.checkpoint, partial(self.save, self.checkpoint))

    def finish(self) -> AnyOrderModel:
        """The model with the best weights seen."""
        if self.progress.diverged and self.progress.best == -math.inf:
            raise UserError(
                f"training diverged {self.progress.diverged} times before there was any usable model; "
                "try a smaller learning_rate, and check the data for absurd values"
            )
        self.model.load_state_dict(self.best)
        return self.model.eval()

    def spent(self) -> float:
        """The share of the budget that is used up."""
        limits = [0.0]
        if self.seconds is not None:
            limits.append(self.progress.seconds / max(self.seconds, 1e-9))
        if self.options.steps is not None:
            limits.append(self.progress.step / self.options.steps)
        return max(limits)

    def _step(self) -> None:
        options, progress = self.options, self.progress
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate()
        size = min(options.batch, max(len(self.training), 1))
        rows = torch.randint(len(self.training), (size,), generator=self.generator, device=self.generator.device)
        batch = self.training.take(rows)
        self.model.train()
        self.optimizer.zero_grad()
        with dropout_from(self.dropout):
            loss = add_gradients(self.model, self.objective, batch, self.generator, options.parts, self.processes)
        length = nn.utils.clip_grad_norm_(self.model.parameters(), options.clip)
        progress.step += 1
        if not bool((loss + length).isfinite()):
            self._diverge("the loss or its gradient is not finite")
            return
        self.optimizer.step()
        progress.train = -loss.item()
        # The average starts short and lengthens, so that the first steps are soon forgotten.
        decay = min(options.average, (1 + progress.step) / (10 + progress.step))
        with torch.no_grad():
            # One call for all tensors, as torch's own averaging does: tables have many small ones.
            torch._foreach_lerp_(list(self.average.parameters()), list(self.model.parameters()), 1 - decay)

    def _learning_rate(self) -> float:
        options, progress = self.options, self.progress
        rate = options.learning_rate * options.fall**progress.falls * 0.5**progress.diverged
        rate *= min(1.0, (progress.step + 1) / max(options.warmup, 1))
        left = max(0.0, 1.0 - self.spent())
        return rate * min(1.0, left / options.cool_down) if options.cool_down > 0 else rate

    @torch.no_grad()
    def _validate(self, watch: Watch | None = None) -> None:
        progress, rows = self.progress, self.validation
        if progress.diverged and not self.optimizer.state:
            return  # no step since it went back: weights that are known already, or were never trained
        # Seeded afresh each time: the same queries about the same rows, so that scores can be compared.
        generator = torch.Generator(device=rows.values.device).manual_seed(self.seed + 1)
        totals, weights = [], []
        for part in torch.arange(len(rows)).split(rows_at_once(self.model.network.layout)):
            more, counted = self._scored(rows.take(part.to(rows.values.device)), generator)
            totals.append(more)
            weights.append(counted)
        total, weight = both = torch.stack([torch.cat(totals), torch.cat(weights)])
        self.processes.add(both)
        progress.validation = float(total.sum()) / max(float(weight.sum()), 1e-12)
        progress.validated = progress.step
        by_row = self._by_row(total) / self._by_row(weight).clamp(min=1e-12)
        progress.noise = 0.0 if self._mark_rows is None else _standard_error(by_row - self._mark_rows)
        self._judge(by_row)
        if math.isfinite(progress.validation):
            progress.history.append([self.spent(), progress.validation])
        if len(progress.history) > MOST_POINTS:
            del progress.history[1::2]
        numbers = {"seconds": progress.seconds, "train": progress.train, "validation": progress.validation}
        numbers["learning_rate"] = self._learning_rate()
        for curve in self.curves:
            self._write(curve.where, partial(curve.point, self.label, progress.step, numbers))
        if watch is not None:
            watch(progress, self.spent())

    def _scored(self, rows: Rows, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """The sum and the weight of a question about each of these rows; zeros for what other processes score."""
        drawn = self.objective.draw(self.average, rows.values, rows.observed, generator)
        own = self.processes.share(len(rows))
        totals, weights = (torch.zeros(len(rows), dtype=torch.float64, device=rows.values.device) for _ in range(2))
        if own.stop > own.start:
            scores = drawn.rows(own).scores(self.average, rows.values[own], rows.log_det[own])
            totals[own], weights[own] = scores.totals(FLOOR)
        return totals, weights

    def _by_row(self, numbers: Tensor) -> Tensor:
        """The sum over all queries about each held-out row."""
        rows = numbers.new_zeros(int(self._row.max()) + 1)
        return rows.index_add(0, self._row, numbers)

    def _judge(self, by_row: Tensor) -> None:
        """What follows from the last validation: the best weights so far, patience, or going back."""
        options, progress = self.options, self.progress
        if not math.isfinite(progress.validation):
            self._diverge("the score on held-out rows is not finite")
            return
        if progress.validation > progress.best or not options.early_stopping:
            if not _loadable(self.average):
                self._diverge(f"a weight is beyond {LARGEST:g}")
                return
            self.best = {name: tensor.clone() for name, tensor in self.average.state_dict().items()}
            progress.best, progress.best_step = progress.validation, progress.step
        if not options.early_stopping:
            return
        if progress.validation > progress.mark + max(options.noticeable, options.noise * progress.noise):
            progress.mark, progress.marked, progress.stale = progress.validation, self.spent(), 0
            self._mark_rows = by_row
        else:
            progress.stale = min(progress.stale + 1, options.patience)
            if progress.stale == options.patience and self.spent() - progress.marked >= options.patience_share:
                self._fall()

    def _fall(self) -> None:
        """Back to the best weights, at a smaller learning rate; or the end."""
        progress = self.progress
        progress.falls += 1
        progress.marked, progress.stale = self.spent(), 0
        if progress.falls > self.options.falls:
            progress.done = True
            return
        self._go_back()

    def _diverge(self, what: str) -> None:
        """Back to the last weights that were good, at half the learning rate; or the end."""
        progress = self.progress
        progress.diverged += 1
        progress.stale = 0
        progress.done = progress.diverged > MOST_DIVERGENCES
        then = "training ends" if progress.done else "the learning rate is halved"
        if self.processes.leads:
            warnings.warn(
                f"training diverged at step {progress.step} ({what}): "
                f"back to the weights of step {progress.best_step}, and {then}",
                stacklevel=2,
            )
        self._go_back()

    def _go_back(self) -> None:
        self.model.load_state_dict(self.best)
        self.average.load_state_dict(self.best)
        self.optimizer.state.clear()

    def _write(self, where: str | Path, write: Callable[[], None]) -> None:
        """Write this now if the disk allows it; if not, say so once and go on: what is learned is worth more."""
        try:
            write()
        except (OSError, WriteError) as error:
            if str(where) not in self._unwritten:
                self._unwritten.add(str(where))
                reason = error.strerror if isinstance(error, OSError) else str(error)
                warnings.warn(
                    f"{str(where)!r} could not be written ({reason}); training goes on and will try again",
                    stacklevel=2,
                )

    def save(self, path: Path) -> None:
        """Everything that :meth:`resume` needs, written atomically."""
        write_tensors(path, *self._state())

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that changes while training, and whose it is."""
        tensors = {"generator": self.generator.get_state(), self._dropout_key: self.dropout.get_state()}
        for part, state in (
            ("model", self.model.state_dict()),
            ("average", self.average.state_dict()),
            ("best", self.best),
        ):
            tensors.update({f"{part}/{name}": tensor for name, tensor in state.items()})
        if self._mark_rows is not None:
            tensors["mark"] = self._mark_rows
        for index, state in self.optimizer.state.items():
            tensors.update({f"optimizer/{index}/{name}": value for name, value in state.items()})
        return tensors, {"kind": "training", "progress": asdict(self.progress), "identity": self.identity}

    @property
    def _dropout_key(self) -> str:
        return f"random/{self.dropout.device.type}"

    def take_up(self, *, resume: bool) -> None:
        """Go on from the run's own checkpoint, if there is one and that is wanted; else forget what was there."""
        if self.checkpoint is not None and self.checkpoint.exists():
            if resume:
                self.resume(self.checkpoint)
            else:
                self.checkpoint.unlink()  # of an earlier run: a later resume must not find it
        for curve in self.curves:  # a step that was noted after the checkpoint was written is validated and noted again
            curve.forget(self.label, max(0, self.progress.validated))

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint of the same run."""
        tensors, header = read_tensors(path)
        if header.get("kind") != "training":
            raise UserError(f"{path} is not a training checkpoint")
        if header.get("identity") != self.identity:
            raise UserError(
                f"{path} belongs to another run (other data, model, options, threads or seed); "
                "give the same ones, or start afresh without resume"
            )
        with reading(str(path)):
            self._restore(tensors, header["progress"])

    def _restore(self, tensors: dict[str, Tensor], progress: dict[str, Any]) -> None:
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "average": {}, "best": {}}
        moments: dict[int, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            part, _, name = key.partition("/")
            if part in parts:
                parts[part][name] = tensor
            elif part == "optimizer":
                index, _, name = name.partition("/")
                moments.setdefault(int(index), {})[name] = tensor
        expected = self.model.state_dict()
        for part, state in parts.items():
            with part_of(part):  # only the best ever leave the run; of the others a later step may make less
                check_tensors(state, expected, largest=LARGEST if part == "best" else math.inf)
        with part_of("optimizer"):
            weights = self.optimizer.parameters
            for number, moment in moments.items():
                of_weight = {"exp_avg": weights[number], "exp_avg_sq": weights[number]}
                check_tensors(moment, {"step": torch.empty(()), **of_weight}, largest=math.inf)
        mark = tensors.get("mark")
        if mark is not None:
            with part_of("mark"):
                expected_mark = self._by_row(torch.zeros(len(self._row), dtype=torch.float64, device=self._row.device))
                check_tensors({"mark": mark}, {"mark": expected_mark}, largest=math.inf)
        with part_of("progress"):
            restored = Progress(**progress)
            for name, value in asdict(Progress()).items():
                if not isinstance(getattr(restored, name), (int, float) if isinstance(value, float) else type(value)):
                    raise UserError(f"{name}: {getattr(restored, name)!r:.80} is no {type(value).__name__}")
            self._check_progress(restored)
            for point in restored.history:
                if not isinstance(point, list) or len(point) != 2 or not all(inside(x, "(-inf, inf)") for x in point):
                    raise UserError(f"history: expected pairs of numbers, got {point!r:.80}")
        self.model.load_state_dict(parts["model"])
        self.average.load_state_dict(parts["average"])
        self.best = parts["best"]
        self.optimizer.restore(moments)
        self.generator.set_state(tensors["generator"])
        self.dropout.set_state(tensors[self._dropout_key])
        self._mark_rows = None if mark is None else mark.to(self._row.device)
        self.progress = restored
        self.progress.interrupted = False

    def _check_progress(self, progress: Progress) -> None:
        """Refuse numbers that no run of these options comes to: the learning rate and the budget are made of them."""
        check_fields(
            progress,
            whole={"step": 0, "best_step": 0, "stale": 0, "falls": 0, "diverged": 0, "validated": -1},
            most={
                "step": MOST_STEPS,
                "best_step": progress.step,
                "validated": progress.step,
                "stale": self.options.patience,
                "falls": self.options.falls + 1,
                "diverged": MOST_DIVERGENCES + 1,
            },
            within={"seconds": "[0, inf)", "marked": "[0, inf)", "best": "[-inf, inf)", "mark": "[-inf, inf)"},
        )

    @cached_property
    def identity(self) -> str:
        """A hash of all that must be equal for a checkpoint to be resumed: data, model, objective, options, seed."""
        described = {
            "label": self.label,
            "seed": self.seed,
            "options": asdict(self.options),
            "model": self.model.description(),
            "objective": describe(self.objective),
        }
        digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
        for rows in (self.training, self.validation):
            rows.update(digest)
        return digest.hexdigest()


def _standard_error(gains: Tensor) -> float:
    """That of the mean gain of a held-out row."""
    return float(gains.std() / len(gains) ** 0.5) if len(gains) > 1 else 0.0


def _loadable(model: AnyOrderModel) -> bool:
    """Whether a file with these weights could be loaded again."""
    weights = [tensor for tensor in model.state_dict().values() if tensor.dtype == torch.float32 and tensor.numel()]
    return all(float(tensor.abs().max()) <= LARGEST for tensor in weights)


def _decayed(model: AnyOrderModel, weight_decay: float) -> list[dict[str, Any]]:
    """Matrices decay; biases, norms and single vectors do not."""
    parameters = list(model.parameters())
    return [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
