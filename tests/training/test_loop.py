"""Training: deterministic, resumable to the same weights, interruptible, and judged on fixed queries."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from anyorder.errors import UserError
from anyorder.masking import Cardinality
from anyorder.model.checkpoint import LARGEST
from anyorder.protocols import Canonical
from anyorder.training.loop import Trainer
from anyorder.training.objectives import Drawn, Scores
from anyorder.training.options import Options

from disks import no_file_above
from small_runs import QUICK, same_weights, small_trainer, weights_of


@pytest.mark.parametrize("network", ["residual_mlp", "causal_transformer"])
def test_same_seed_same_weights(network: str) -> None:
    first, second = small_trainer(network=network), small_trainer(network=network)
    first.run()
    torch.rand(5)  # the user's own random state is neither read ...
    second.run()
    assert same_weights(weights_of(first), weights_of(second))


def test_training_leaves_the_global_random_state_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    small_trainer().run()
    assert torch.equal(torch.rand(3), expected)


def test_validation_improves_and_best_weights_are_kept() -> None:
    trainer = small_trainer(replace(QUICK, steps=200))
    trainer._validate()
    before = trainer.progress.validation
    progress = trainer.run()
    assert progress.best > before + 0.1
    trainer.average.load_state_dict(weights_of(trainer))
    trainer._validate()
    assert trainer.progress.validation == pytest.approx(progress.best, abs=1e-7)


@pytest.mark.parametrize("network", ["residual_mlp", "causal_transformer"])
@pytest.mark.parametrize("cut", [7, 20])
def test_resumed_run_ends_where_the_uninterrupted_one_does(tmp_path: Path, network: str, cut: int) -> None:
    whole = small_trainer(network=network)
    whole.run()
    path = tmp_path / "run.checkpoint"
    part = small_trainer(network=network, checkpoint=path)
    part.run(share=cut / 40)
    assert part.progress.step == cut
    again = small_trainer(network=network, checkpoint=path)
    again.resume(path)
    again.run()
    assert same_weights(weights_of(again), weights_of(whole))
    assert again.progress.best == whole.progress.best


def test_sigkill_and_resume_give_the_same_weights(tmp_path: Path) -> None:
    """A real process, really killed, somewhere in the middle of its steps."""
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "import torch; torch.set_num_threads(1)\n"
        "from dataclasses import replace; from pathlib import Path\n"
        "from small_runs import QUICK, small_trainer\n"
        "options = replace(QUICK, steps=4000, patience=10**6, checkpoint_every=0.0)\n"
        "trainer = small_trainer(options, checkpoint=Path(sys.argv[1]))\n"
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
    resumed = small_trainer(options, checkpoint=path)
    resumed.resume(path)
    killed_at = resumed.progress.step
    assert 0 < killed_at < 4000
    # To save time both runs are compared 60 steps further on, not at the end.
    resumed.run(share=(killed_at + 60) / 4000)
    uninterrupted = small_trainer(options)
    uninterrupted.run(share=(killed_at + 60) / 4000)
    assert resumed.progress.step == uninterrupted.progress.step
    assert same_weights(dict(resumed.model.state_dict()), dict(uninterrupted.model.state_dict()))
    assert same_weights(resumed.best, uninterrupted.best)


def test_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    small_trainer(checkpoint=path).run(share=0.5)
    other = small_trainer(replace(QUICK, learning_rate=0.5))
    with pytest.raises(UserError, match="another run"):
        other.resume(path)


def test_ctrl_c_keeps_the_best_model_so_far(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    options = replace(QUICK, steps=1000, validate_every=10, patience=10**6)
    trainer = small_trainer(options, checkpoint=path)

    def interrupt(progress: object, spent: float) -> None:
        if trainer.progress.step == 30:
            os.kill(os.getpid(), signal.SIGINT)

    progress = trainer.run(watch=interrupt)
    assert progress.interrupted
    assert 30 <= progress.step <= 31
    # The checkpoint of an interrupted run is as good as any other.
    again, whole = small_trainer(options, checkpoint=path), small_trainer(options)
    again.resume(path)
    again.run(share=0.06)
    whole.run(share=0.06)
    assert same_weights(dict(again.model.state_dict()), dict(whole.model.state_dict()))
    model = trainer.finish()
    values = torch.zeros(1, 4)
    assert model.log_prob_beside(values, torch.zeros(1, 4, dtype=torch.bool)).isfinite().all()


def test_a_run_that_was_asked_to_end_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    trainer, again, whole = small_trainer(checkpoint=path), small_trainer(checkpoint=path), small_trainer()
    step = trainer._step

    def interrupted() -> None:
        step()
        if trainer.progress.step == 15:
            os.kill(os.getpid(), signal.SIGTERM)

    trainer._step = interrupted  # type: ignore[method-assign]
    assert trainer.run().validated == 15  # for the model that it leaves
    again.resume(path)
    whole.run(share=15 / 40)
    for one in (again.progress, whole.progress):
        one.seconds = 0.0
    assert again.progress == whole.progress
    assert same_weights(again.best, whole.best)


def test_second_ctrl_c_stops_at_once() -> None:
    trainer = small_trainer(replace(QUICK, steps=1000))

    def interrupt(progress: object, spent: float) -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    assert trainer.run(watch=interrupt).interrupted
    assert trainer.progress.step == 10


@pytest.mark.parametrize("change", ["masking", "protocol", "objective", "data", "dropout"])
def test_checkpoint_knows_its_run(tmp_path: Path, change: str) -> None:
    path = tmp_path / "run.checkpoint"
    small_trainer(checkpoint=path).run(share=0.5)
    other = small_trainer()
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
    scores = Scores(torch.tensor([[-1.0, -torch.inf], [-60.0, -2.0]]), torch.zeros(2, 2), torch.ones(2, 2))
    assert [numbers.tolist() for numbers in scores.totals(-50.0)] == [[-51.0, -52.0], [2.0, 2.0]]


def test_a_held_out_cell_without_a_score_is_no_low_score() -> None:
    log_prob, counted = torch.tensor([[-1.0, torch.nan]]), torch.ones(1, 2)
    assert Scores(log_prob, torch.zeros(1, 2), counted).totals(-50.0)[0].isnan().all()
    one = Scores(log_prob, torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
    assert [numbers.tolist() for numbers in one.totals(-50.0)] == [[-1.0], [1.0]]


def poison(trainer: Trainer, steps: set[int], what: str) -> None:
    """Make training go wrong at these steps: a loss that is NaN, a gradient that is, or weights that are."""
    draw, step = trainer.objective.draw, trainer._step

    def poisoned(*given: Any) -> Drawn:
        drawn = draw(*given)
        if trainer.progress.step in steps and torch.is_grad_enabled():
            scores = drawn.scores
            object.__setattr__(drawn, "scores", lambda *asked: wrong(scores(*asked)))
        return drawn

    def wrong(right: Scores) -> Scores:
        if what == "loss":
            return replace(right, log_prob=right.log_prob * torch.nan)
        if what == "gradient":  # the root of zero has no slope
            return replace(right, log_prob=right.log_prob + (right.log_prob - right.log_prob).sqrt())
        return right

    def then_broken() -> None:
        step()
        if what == "weights" and trainer.progress.step in steps:
            with torch.no_grad():
                next(trainer.average.parameters()).fill_(torch.nan)

    object.__setattr__(trainer.objective, "draw", poisoned)
    trainer._step = then_broken  # type: ignore[method-assign]


@pytest.mark.parametrize(("what", "step"), [("loss", 15), ("gradient", 15), ("weights", 20)])
def test_training_that_diverges_goes_back_and_on_at_half_the_rate(what: str, step: int) -> None:
    trainer = small_trainer(replace(QUICK, average=0.0, cool_down=0.0, warmup=0))
    poison(trainer, {step}, what)
    with pytest.warns(UserWarning, match=f"diverged at step {step + (what != 'weights')} .* step 10, .* halved"):
        progress = trainer.run()
    assert progress.diverged == 1 and progress.done and progress.step == 40
    assert progress.best_step > 20 and math.isfinite(progress.best)
    assert trainer._learning_rate() == QUICK.learning_rate / 2
    assert all(weight.isfinite().all() for weight in weights_of(trainer).values())


def test_training_that_keeps_diverging_ends_with_the_last_good_weights() -> None:
    trainer, whole = small_trainer(), small_trainer()
    poison(trainer, set(range(10, 40)), "loss")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        progress = trainer.run()
    assert "and training ends" in str(caught[-1].message) and len(caught) == 6
    assert progress.diverged == 6 and progress.done and progress.best_step == 10
    whole.run(share=0.25)
    assert same_weights(weights_of(trainer), whole.best)


@pytest.mark.parametrize("steps", [5, 100])
def test_training_that_never_came_to_anything_gives_no_model(steps: int) -> None:
    trainer = small_trainer(replace(QUICK, steps=steps))
    poison(trainer, set(range(100)), "loss")
    with pytest.warns(UserWarning, match="diverged"):
        progress = trainer.run()
    assert progress.step == min(steps, 6) and progress.best == -math.inf
    with pytest.raises(UserError, match=r"before there was any usable model.*smaller learning_rate"):
        trainer.finish()


@pytest.mark.filterwarnings("ignore:training diverged")
def test_a_rate_that_is_far_too_high_is_refused_in_the_end() -> None:
    trainer = small_trainer(replace(QUICK, learning_rate=1e10, warmup=0, steps=200))
    assert trainer.run().diverged == 6
    with pytest.raises(UserError, match="smaller learning_rate"):
        trainer.finish()


@pytest.mark.parametrize("cut", [12, 17])
@pytest.mark.filterwarnings("ignore:training diverged")
def test_a_resumed_run_remembers_that_it_diverged(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "run.checkpoint"
    whole, part, again = small_trainer(), small_trainer(checkpoint=path), small_trainer(checkpoint=path)
    for trainer in (whole, part, again):
        poison(trainer, {11, 15, 26}, "loss")
    whole.run()
    part.run(share=cut / 40)
    again.resume(path)
    again.run()
    assert again.progress.diverged == whole.progress.diverged == 3
    assert same_weights(weights_of(again), weights_of(whole))


def test_a_disk_that_refuses_checkpoints_does_not_end_training(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    trainer, whole = small_trainer(replace(QUICK, checkpoint_every=0.0), checkpoint=path), small_trainer()
    with warnings.catch_warnings(record=True) as caught, no_file_above(100):
        warnings.simplefilter("always")
        trainer.run(share=0.5)
    (said,) = caught
    assert "run.checkpoint" in str(said.message) and "training goes on" in str(said.message)
    assert os.listdir(tmp_path) == []
    trainer.run()  # there is room again
    whole.run()
    assert same_weights(weights_of(trainer), weights_of(whole))
    again = small_trainer(replace(QUICK, checkpoint_every=0.0))
    again.resume(path)
    assert again.progress.step == 40


def test_patience_lowers_the_rate_and_then_ends() -> None:
    trainer = small_trainer(
        replace(QUICK, steps=100_000, learning_rate=1e-9, warmup=1, patience=2, falls=2, average=0.0)
    )
    progress = trainer.run()
    assert progress.done and progress.falls == 3 and progress.step < 1000


def test_a_budget_is_used_while_the_curve_still_rises() -> None:
    # Gains of less than the usual noticeable ones, but gains: no end by itself, and the rate never falls for them.
    slow = replace(QUICK, steps=300, learning_rate=2e-6, warmup=1, patience=2, falls=1, average=0.0)
    stopped, patient = small_trainer(slow), small_trainer(replace(slow, noticeable=0.0, patience_share=0.1))
    assert stopped.run().step < 300 and stopped.progress.done
    patient.run()
    assert (patient.progress.step, patient.progress.falls) == (300, 0)
    assert patient.progress.best > stopped.progress.best


def test_a_share_of_the_budget_must_pass_without_progress() -> None:
    still = replace(QUICK, steps=200, learning_rate=1e-12, warmup=1, patience=2, falls=1, patience_share=0.25)
    progress = small_trainer(replace(still, noticeable=1.0)).run()
    # A mark at the first validation, a quarter of the budget to the fall, another to the end.
    assert progress.done and progress.falls == 2
    assert progress.step == QUICK.validate_every + 2 * 50


def test_a_run_that_waits_for_a_share_resumes_to_the_same(tmp_path: Path) -> None:
    options, path = replace(QUICK, noticeable=1.0, patience=1, patience_share=0.2), tmp_path / "run.checkpoint"
    whole = small_trainer(options)
    whole.run()
    small_trainer(options, checkpoint=path).run(share=0.55)
    again = small_trainer(options, checkpoint=path)
    again.resume(path)
    again.run()
    assert whole.progress.falls > 0 and again.progress.falls == whole.progress.falls
    assert same_weights(weights_of(again), weights_of(whole))


def test_time_budget_is_kept() -> None:
    trainer = small_trainer(replace(QUICK, minutes=0.02, steps=None, patience=10**9))
    progress = trainer.run()
    assert progress.done and 1.2 <= progress.seconds < 5


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"minutes": None, "steps": None}, "budget"),
        ({"minutes": 0}, "minutes"),
        ({"minutes": float("inf")}, "minutes"),
        ({"batch": 0}, "batch"),
        ({"parts": 0}, "parts"),
        ({"beta1": 1.0}, "beta1"),
        ({"beta2": -0.1}, "beta2"),
        ({"early_stopping": "no"}, "early_stopping"),
        ({"warmup": -1}, "warmup"),
        ({"weight_decay": -1e-3}, "weight_decay"),
        ({"average": 1.0}, "average"),
        ({"cool_down": 1.5}, "cool_down"),
        ({"patience_share": 2.0}, "patience_share"),
        ({"noticeable": -1.0}, "noticeable"),
        ({"learning_rate": "fast"}, "learning_rate"),
    ],
)
def test_senseless_options_are_refused(change: dict[str, object], word: str) -> None:
    with pytest.raises(UserError, match=word):
        replace(Options(), **change)  # type: ignore[arg-type]


def test_what_is_dropped_is_another_stream_than_the_rows() -> None:
    one, again = small_trainer(), small_trainer()
    rows, dropped = (torch.rand(100, generator=generator) for generator in (one.generator, one.dropout))
    assert abs(float(torch.corrcoef(torch.stack([rows, dropped]))[0, 1])) < 0.4
    assert torch.equal(torch.rand(100, generator=again.dropout), dropped)


def test_weights_that_could_not_be_loaded_again_are_a_divergence() -> None:
    trainer = small_trainer()
    trainer.run(share=0.5)
    good = trainer.progress.best_step
    with torch.no_grad():
        trainer.average.get_parameter("network.enter.bias").fill_(-2 * LARGEST)
    trainer.progress.validation = trainer.progress.best + 1
    with pytest.warns(UserWarning, match="a weight is beyond 1e.09.: back to the weights of step"):
        trainer._judge(torch.zeros(40))
    assert trainer.progress.diverged == 1 and trainer.progress.best_step == good
    assert all(bool((tensor.abs() <= LARGEST).all()) for tensor in weights_of(trainer).values())


def test_gains_within_their_noise_are_no_progress() -> None:
    options = replace(QUICK, steps=400, patience=2, falls=1)
    patient, strict = small_trainer(options), small_trainer(replace(options, noise=1e6))
    patient.run()
    strict.run()
    assert strict.progress.done and strict.progress.step == 50  # a mark, two looks, a fall, two looks
    assert strict.progress.step < patient.progress.step
    assert strict.progress.noise > 0


def test_a_run_that_counts_noise_resumes_to_the_same(tmp_path: Path) -> None:
    options, path = replace(QUICK, noise=1.0, patience=1), tmp_path / "run.checkpoint"
    whole = small_trainer(options)
    whole.run()
    small_trainer(options, checkpoint=path).run(share=0.6)
    again = small_trainer(options, checkpoint=path)
    again.resume(path)
    again.run()
    assert same_weights(weights_of(again), weights_of(whole))
    assert again.progress.history == whole.progress.history and len(whole.progress.history) > 1
