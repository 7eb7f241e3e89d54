"""A batch in parts asks the same questions and takes the same step as at once; the schedule of a paper is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from anyorder.errors import UserError
from anyorder.masking import Cardinality, Conditional
from anyorder.modalities.images.core import image_masking, image_model
from anyorder.model import AnyOrderModel
from anyorder.protocols import Random
from anyorder.training.gradients import add_gradients
from anyorder.training.loop import Trainer
from anyorder.training.objectives import Objective, objective_for
from anyorder.training.rows import Rows

from small_runs import QUICK, same_weights, small_trainer, weights_of

SHAPE, ROWS, LEVELS = (4, 4), 10, 3
SIZES: dict[str, dict[str, Any]] = {
    "bidirectional_transformer": {"width": 8, "blocks": 1, "heads": 2},
    "causal_transformer": {"width": 8, "blocks": 1, "heads": 2},
    "unet": {"channels": 8, "blocks": 1, "modes": 7},
}
REST = Conditional(Cardinality(least=0, spare=1))
FIXED = replace(QUICK, early_stopping=False, beta1=0.8, beta2=0.95, parts=3, average=0.0, cool_down=0.0, warmup=5)


def small_model(network: str) -> AnyOrderModel:
    described = {"name": network, **SIZES[network]}
    return image_model(SHAPE, LEVELS, described, Random(), head="categorical", components=1, seed=0)


def some_rows() -> Rows:
    """Rows of which not all cells exist, so that they do not count alike."""
    generator = torch.Generator().manual_seed(1)
    shape = (ROWS, SHAPE[0] * SHAPE[1])
    values = torch.randint(LEVELS, shape, generator=generator).float()
    return Rows(values, torch.rand(shape, generator=generator) < 0.8, torch.randn(shape, generator=generator))


def step(model: AnyOrderModel, objective: Objective, parts: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The loss of some rows and the gradients of all weights that have one."""
    model.train().zero_grad()
    loss = add_gradients(model, objective, some_rows(), torch.Generator().manual_seed(2), parts)
    return loss, {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize("parts", [2, 3, 10, 100])
@pytest.mark.parametrize(
    ("network", "name", "options"),
    [
        ("bidirectional_transformer", "parallel", {"reweight": True}),
        ("bidirectional_transformer", "edges", {}),
        ("causal_transformer", "chain", {}),
        ("unet", "stages", {}),
    ],
)
def test_a_batch_in_parts_is_the_same_step(network: str, name: str, options: dict[str, Any], parts: int) -> None:
    model = small_model(network)
    masking = image_masking(SHAPE) if name == "stages" else REST
    objective = objective_for(model, masking, name, **options)
    whole_loss, whole = step(model, objective, 1)
    loss, summed = step(model, objective, parts)
    torch.testing.assert_close(loss, whole_loss, rtol=1e-5, atol=1e-6)
    assert summed.keys() == whole.keys() and whole
    largest = max(float(gradient.abs().max()) for gradient in whole.values())
    assert largest > 1e-3
    for key, gradient in whole.items():
        torch.testing.assert_close(summed[key], gradient, rtol=1e-4, atol=1e-5 * largest)


def test_a_batch_at_once_is_the_objective_itself() -> None:
    model = small_model("bidirectional_transformer")
    objective = objective_for(model, REST)
    rows = some_rows()
    model.train().zero_grad()
    generator = torch.Generator().manual_seed(2)
    (-objective.scores(model, rows.values, rows.observed, rows.log_det, generator).mean()).backward()
    expected = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    assert same_weights(step(model, objective, 1)[1], expected)


def test_a_whole_run_in_parts_ends_where_the_other_does() -> None:
    def trained(parts: int) -> dict[str, torch.Tensor]:
        model, rows = small_model("bidirectional_transformer"), some_rows()
        options = replace(FIXED, steps=10, batch=8, parts=parts)
        trainer = Trainer(model, objective_for(model, REST), rows, rows, options, seed=0)
        trainer.run()
        return weights_of(trainer)

    whole, summed = trained(1), trained(4)
    for name, weight in whole.items():
        torch.testing.assert_close(summed[name], weight, rtol=1e-3, atol=1e-4)


def test_without_early_stopping_the_whole_budget_is_spent_and_the_last_weights_kept() -> None:
    impatient = replace(QUICK, steps=60, validate_every=1, patience=1, falls=0, learning_rate=0.3, warmup=0)
    stopped = small_trainer(impatient).run()
    trainer = small_trainer(replace(impatient, early_stopping=False, average=0.0, cool_down=0.0))
    progress = trainer.run()
    assert stopped.step < 60 and stopped.best == max(score for _, score in stopped.history)
    assert progress.step == progress.best_step == 60 and progress.falls == progress.stale == 0
    assert progress.best == progress.validation == progress.history[-1][1]
    assert progress.best < max(score for _, score in progress.history)
    assert trainer._learning_rate() == 0.3
    last = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    assert same_weights(weights_of(trainer), last)


def test_the_schedule_is_a_line_and_then_a_constant() -> None:
    trainer = small_trainer(FIXED)
    rates = []
    for number in range(8):
        trainer.progress.step = number
        rates.append(trainer._learning_rate() / FIXED.learning_rate)
    assert rates == pytest.approx([0.2, 0.4, 0.6, 0.8, 1, 1, 1, 1])
    assert all(group["betas"] == (0.8, 0.95) for group in trainer.optimizer.param_groups)


@pytest.mark.parametrize("cut", [7, 20])
def test_a_resumed_run_of_a_fixed_schedule_ends_where_the_whole_one_does(tmp_path: Path, cut: int) -> None:
    whole, path = small_trainer(FIXED), tmp_path / "run.checkpoint"
    whole.run()
    small_trainer(FIXED, checkpoint=path).run(share=cut / 40)
    again = small_trainer(FIXED, checkpoint=path)
    again.resume(path)
    assert again.progress.step == cut
    again.run()
    assert same_weights(weights_of(again), weights_of(whole))
    assert again.progress.best == whole.progress.best


@pytest.mark.parametrize("change", [{"parts": 2}, {"beta1": 0.7}, {"beta2": 0.9}, {"early_stopping": True}])
def test_a_checkpoint_of_another_schedule_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "run.checkpoint"
    small_trainer(FIXED, checkpoint=path).run(share=0.5)
    with pytest.raises(UserError, match="another run"):
        small_trainer(replace(FIXED, **change)).resume(path)
