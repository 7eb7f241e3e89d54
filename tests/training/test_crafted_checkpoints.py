"""Checkpoints made on purpose: resuming refuses them by the file and the field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from anyorder.errors import UserError
from anyorder.model.checkpoint import read_tensors, write_tensors

from small_runs import same_weights, small_trainer

Change = Callable[[dict[str, Tensor], dict[str, Any]], object]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run.checkpoint"
    trainer = small_trainer()
    trainer.run()
    trainer.save(path)
    return path


@pytest.mark.parametrize(
    "change, problem",
    [
        (lambda tensors, header: header.pop("identity"), "another run"),
        (lambda tensors, header: header.pop("progress"), "the entry 'progress' is missing"),
        (lambda tensors, header: header["progress"].update(step="many"), "progress: step: 'many' is no int"),
        (lambda tensors, header: header["progress"].update(odd=1), "progress: "),
        (lambda tensors, header: header["progress"].update(diverged=10**9), "progress: diverged must be .* at most 6"),
        (lambda tensors, header: header["progress"].update(falls=-(10**9)), "progress: falls must be .* 0 or more"),
        (lambda tensors, header: header["progress"].update(step=10**400), "progress: step must be"),
        (lambda tensors, header: header["progress"].update(best_step=41), "progress: best_step must be .* at most 40"),
        (lambda tensors, header: header["progress"].update(seconds=-1e300), "progress: seconds must be"),
        (lambda tensors, header: header["progress"].update(seconds=10**400), "progress: seconds must be"),
        (lambda tensors, header: header["progress"].update(best=float("inf")), "progress: best must be"),
        (lambda tensors, header: header["progress"].update(mark=float("nan")), "progress: mark must be"),
        (lambda tensors, header: tensors.pop("model/network.leave.bias"), "model: the tensor 'network.leave.bias' is"),
        (lambda tensors, header: tensors["best/network.leave.bias"].fill_(torch.nan), "best: .* not finite"),
        (lambda tensors, header: tensors.update({"average/odd": torch.zeros(3)}), "average: the tensor 'odd' is there"),
        (lambda tensors, header: tensors.update({"optimizer/0/exp_avg": torch.zeros(3)}), "optimizer: .*'exp_avg' is"),
        (lambda tensors, header: tensors.pop("optimizer/0/exp_avg_sq"), "optimizer: .*'exp_avg_sq' is missing"),
        (lambda tensors, header: tensors.update({"optimizer/99/exp_avg": torch.zeros(3)}), "optimizer: "),
        (lambda tensors, header: tensors.update({"optimizer/x/exp_avg": torch.zeros(3)}), "cannot be read"),
        (lambda tensors, header: header["progress"].update(history=[[1, "a"]]), "progress: history: expected pairs"),
        (lambda tensors, header: header["progress"].update(history=7), "progress: history: 7 is no list"),
        (lambda tensors, header: tensors.update(mark=torch.zeros(3)), "mark: the tensor 'mark' is"),
        (lambda tensors, header: tensors.pop("generator"), "the entry 'generator' is missing"),
        (lambda tensors, header: tensors.update(generator=torch.zeros(3, dtype=torch.uint8)), "cannot be read"),
    ],
)
def test_what_is_wrong_is_named(checkpoint: Path, tmp_path: Path, change: Change, problem: str) -> None:
    tensors, header = read_tensors(checkpoint)
    change(tensors, header)
    made = tmp_path / "made.checkpoint"
    write_tensors(made, tensors, header)
    with pytest.raises(UserError, match=problem) as error:
        small_trainer().resume(made)
    assert str(made) in str(error.value)


def test_moments_may_be_large(checkpoint: Path, tmp_path: Path) -> None:
    """The square of a gradient is soon beyond what any weight comes to."""
    tensors, header = read_tensors(checkpoint)
    tensors["optimizer/0/exp_avg_sq"].fill_(1e12)
    tensors["model/network.leave.bias"].fill_(1e12)
    write_tensors(tmp_path / "large.checkpoint", tensors, header)
    small_trainer().resume(tmp_path / "large.checkpoint")


def test_a_sound_one_is_resumed(checkpoint: Path) -> None:
    trainer = small_trainer()
    trainer.resume(checkpoint)
    saved = {k.removeprefix("model/"): t for k, t in read_tensors(checkpoint)[0].items() if k.startswith("model/")}
    assert same_weights(dict(trainer.model.state_dict()), saved)
