"""Training: deterministic, resumable to the same weights, interruptible, and judged on fixed queries."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from anyorder.errors import UserError
from anyorder.heads import Categorical
from anyorder.masking import Cardinality, Conditional
from anyorder.model import AnyOrderModel
from anyorder.protocols import Canonical
from anyorder.training.curves import JsonLines, TensorBoard
from anyorder.training.loop import Trainer
from anyorder.training.objectives import Scores, objective_for
from anyorder.training.options import Options
from anyorder.training.rows import Rows
from anyorder.variables.codecs import LevelCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable

from models import categorical_table

QUICK = Options(minutes=None, steps=40, batch=32, validate_every=10, validation_queries=64, checkpoint_every=1e9)


def _trainer(options: Options = QUICK, network: str = "residual_mlp", **extra: object) -> Trainer:
    levels = (2, 3, 2, 4)
    schema = Schema(
        tuple(
            Variable(n, Kind.CATEGORICAL, tuple(map(str, range(k))), "str") for n, k in zip("abcd", levels, strict=True)
        )
    )
    encoding = Encoding(schema, tuple(LevelCodec(v) for v in schema.variables))
    settings = {"name": network, "width": 16, "blocks": 1, "dropout": 0.2}
    model = AnyOrderModel.build(encoding, [Categorical(k) for k in levels], settings, Canonical(), seed=0)
    values, observed = encoding.encode(categorical_table(200))
    rows = Rows(torch.as_tensor(values).float(), torch.as_tensor(observed), torch.zeros(values.shape))
    objective = objective_for(model, Conditional(Cardinality(least=0, spare=1)))
    held_out, training = rows.take(torch.arange(40)), rows.take(torch.arange(40, 200))
    return Trainer(model, objective, training, held_out, options, seed=0, **extra)  # type: ignore[arg-type]


def _weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return dict(trainer.finish().state_dict())


def _same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("network", ["residual_mlp", "causal_transformer"])
def test_same_seed_same_weights(network: str) -> None:
    first, second = _trainer(network=network), _trainer(network=network)
    first.run()
    torch.rand(5)  # the user's own random state is neither read ...
    second.run()
    assert _same(_weights(first), _weights(second))


def test_training_leaves_the_global_random_state_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    _trainer().run()
    assert torch.equal(torch.rand(3), expected)


def test_validation_improves_and_best_weights_are_kept() -> None:
    trainer = _trainer(replace(QUICK, steps=200))
    trainer._validate()
    before = trainer.progress.validation
    progress = trainer.run()
    assert progress.best > before + 0.1
    trainer.average.load_state_dict(_weights(trainer))
    trainer._validate()
    assert trainer.progress.validation == pytest.approx(progress.best, abs=1e-7)


@pytest.mark.parametrize("network", ["residual_mlp", "causal_transformer"])
@pytest.mark.parametrize("cut", [7, 20])
def test_resumed_run_ends_where_the_uninterrupted_one_does(tmp_path: Path, network: str, cut: int) -> None:
    whole = _trainer(network=network)
    whole.run()
    path = tmp_path / "run.checkpoint"
    part = _trainer(network=network, checkpoint=path)
    part.run(share=cut / 40)
    assert part.progress.step == cut
    again = _trainer(network=network, checkpoint=path)
    again.resume(path)
    again.run()
    assert _same(_weights(again), _weights(whole))
    assert again.progress.best == whole.progress.best


def test_sigkill_and_resume_give_the_same_weights(tmp_path: Path) -> None:
    """A real process, really killed, somewhere in the middle of its steps."""
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "import torch; torch.set_num_threads(1)\n"
        "from dataclasses import replace; from pathlib import Path\n"
        "from test_train import QUICK, _trainer\n"
        "options = replace(QUICK, steps=4000, patience=10**6, checkpoint_every=0.0)\n"
        "trainer = _trainer(options, checkpoint=Path(sys.argv[1]))\n"
        "trainer.run()\n"
    )
    path = tmp_path / "run.checkpoint"
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(path), *folders], env={**os.environ, "PYTHONHASHSEED": "0"}
    )
    try:
        deadline = time.monotonic() + 60
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.3)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert child.returncode == -signal.SIGKILL
    options = replace(QUICK, steps=4000, patience=10**6, checkpoint_every=0.0)
    resumed = _trainer(options, checkpoint=path)
    resumed.resume(path)
    killed_at = resumed.progress.step
    assert 0 < killed_at < 4000
    # To save time both runs are compared 60 steps further on, not at the end.
    resumed.run(share=(killed_at + 60) / 4000)
    uninterrupted = _trainer(options)
    uninterrupted.run(share=(killed_at + 60) / 4000)
    assert resumed.progress.step == uninterrupted.progress.step
    assert _same(dict(resumed.model.state_dict()), dict(uninterrupted.model.state_dict()))
    assert _same(resumed.best, uninterrupted.best)


def test_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    _trainer(checkpoint=path).run(share=0.5)
    other = _trainer(replace(QUICK, learning_rate=0.5))
    with pytest.raises(UserError, match="another run"):
        other.resume(path)


def test_ctrl_c_keeps_the_best_model_so_far(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    options = replace(QUICK, steps=1000, validate_every=10, patience=10**6)
    trainer = _trainer(options, checkpoint=path)

    def interrupt(progress: object, spent: float) -> None:
        if trainer.progress.step == 30:
            os.kill(os.getpid(), signal.SIGINT)

    progress = trainer.run(watch=interrupt)
    assert progress.interrupted
    assert 30 <= progress.step <= 31
    # The checkpoint of an interrupted run is as good as any other.
    again, whole = _trainer(options, checkpoint=path), _trainer(options)
    again.resume(path)
    again.run(share=0.06)
    whole.run(share=0.06)
    assert _same(dict(again.model.state_dict()), dict(whole.model.state_dict()))
    model = trainer.finish()
    values = torch.zeros(1, 4)
    assert model.log_prob_beside(values, torch.zeros(1, 4, dtype=torch.bool)).isfinite().all()


def test_second_ctrl_c_stops_at_once() -> None:
    trainer = _trainer(replace(QUICK, steps=1000))

    def interrupt(progress: object, spent: float) -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    assert trainer.run(watch=interrupt).interrupted
    assert trainer.progress.step == 10


@pytest.mark.parametrize("change", ["masking", "protocol", "objective", "data", "dropout"])
def test_checkpoint_knows_its_run(tmp_path: Path, change: str) -> None:
    path = tmp_path / "run.checkpoint"
    _trainer(checkpoint=path).run(share=0.5)
    other = _trainer()
    if change == "masking":
        other.objective = replace(other.objective, masking=Cardinality())
    elif change == "protocol":
        other.objective = replace(other.objective, protocol=Canonical(stride=2))
    elif change == "objective":
        other.objective = replace(other.objective, reweight=True)
    elif change == "data":
        other.training.values[0, 0] = 1 - other.training.values[0, 0]
    else:
        other.model.network.dropout = 0.5
    with pytest.raises(UserError, match="another run"):
        other.resume(path)


def test_one_absurd_held_out_cell_does_not_decide() -> None:
    scores = Scores(torch.tensor([[-1.0, -torch.inf], [torch.nan, -2.0]]), torch.zeros(2, 2), torch.ones(2, 2))
    assert scores.total(-50.0) == (-103.0, 4.0)


def test_patience_lowers_the_rate_and_then_ends() -> None:
    trainer = _trainer(replace(QUICK, steps=100_000, learning_rate=1e-9, warmup=1, patience=2, falls=2, average=0.0))
    progress = trainer.run()
    assert progress.done and progress.falls == 3 and progress.step < 1000


def test_time_budget_is_kept() -> None:
    trainer = _trainer(replace(QUICK, minutes=0.02, steps=None, patience=10**9))
    progress = trainer.run()
    assert progress.done and 1.2 <= progress.seconds < 5


def test_curve_is_one_json_object_a_line(tmp_path: Path) -> None:
    log = tmp_path / "curve.jsonl"
    _trainer(curves=[JsonLines(log)], label="mine").run()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["step"] for line in lines] == [10, 20, 30, 40]
    assert all(line["run"] == "mine" and np.isfinite(line["validation"]) for line in lines)


def test_curve_for_tensorboard(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    _trainer(curves=[TensorBoard(tmp_path)], label="mine").run()
    events = accumulator.EventAccumulator(str(tmp_path / "mine")).Reload()
    assert [event.step for event in events.Scalars("validation")] == [10, 20, 30, 40]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"minutes": None, "steps": None}, "budget"),
        ({"minutes": 0}, "minutes"),
        ({"minutes": float("inf")}, "minutes"),
        ({"batch": 0}, "batch"),
        ({"warmup": -1}, "warmup"),
        ({"weight_decay": -1e-3}, "weight_decay"),
        ({"average": 1.0}, "average"),
        ({"cool_down": 1.5}, "cool_down"),
        ({"learning_rate": "fast"}, "learning_rate"),
    ],
)
def test_senseless_options_are_refused(change: dict[str, object], word: str) -> None:
    with pytest.raises(UserError, match=word):
        replace(Options(), **change)  # type: ignore[arg-type]
