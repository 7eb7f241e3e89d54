"""Lighter steps are the same steps: bit for bit where activations are computed again, nearly so in bfloat16."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from anyorder.errors import UserError
from anyorder.masking import Cardinality, Conditional
from anyorder.modalities.images.core import image_masking, image_model
from anyorder.protocols import Random
from anyorder.training import speed
from anyorder.training.loop import Trainer
from anyorder.training.objectives import objective_for
from anyorder.training.options import Options
from anyorder.training.rows import Rows

from small_runs import QUICK, same_weights, small_trainer, weights_of

SIZES: dict[str, dict[str, Any]] = {
    "bidirectional_transformer": {"width": 16, "blocks": 2, "heads": 2},
    "causal_transformer": {"width": 16, "blocks": 2, "heads": 2, "positions": "rotary"},
    "residual_mlp": {"width": 16, "blocks": 2, "dropout": 0.0},
    "unet": {"channels": 8, "blocks": 1, "modes": 7, "attention": "every"},
}


def trained(network: str, **change: Any) -> Trainer:
    described = {"name": network, **SIZES[network]}
    model = image_model((4, 4), 3, described, Random(), head="categorical", components=1, seed=0)
    values = torch.randint(3, (12, 16), generator=torch.Generator().manual_seed(1)).float()
    rows = Rows(values, torch.ones_like(values, dtype=torch.bool), torch.zeros_like(values))
    masking = image_masking((4, 4)) if network == "unet" else Conditional(Cardinality(least=0, spare=1))
    options = replace(QUICK, steps=6, validate_every=3, batch=6, **change)
    trainer = Trainer(model, objective_for(model, masking), rows, rows, options, seed=0)
    trainer.run()
    return trainer


@pytest.mark.parametrize("network", SIZES)
def test_activations_computed_again_are_the_same_bits(network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    again, calls = speed._again, []

    def counted(*inputs: Any, **named: Any) -> Any:
        calls.append(None)
        return again(*inputs, **named)

    monkeypatch.setattr(speed, "_again", counted)
    plain, recomputed = trained(network), trained(network, recompute=True)
    assert len(calls) == 6 * len(plain.model.network.repeated) > 0
    assert same_weights(weights_of(plain), weights_of(recomputed))
    assert not any("forward" in vars(part) for part in recomputed.model.modules())


@pytest.mark.parametrize("network", SIZES)
def test_bfloat16_is_nearly_the_same_and_only_while_training(network: str) -> None:
    plain, rounded = trained(network), trained(network, precision="bfloat16")
    assert rounded.progress.best == pytest.approx(plain.progress.best, rel=0.02)
    assert not same_weights(weights_of(plain), weights_of(rounded))
    assert all(tensor.dtype == torch.float32 for tensor in rounded.model.parameters())
    assert not set(speed.ASKED) & set(vars(rounded.model.network))


@pytest.mark.parametrize("option", ["recompute", "compile"])
def test_what_cannot_be_had_is_refused_before_the_first_step(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="dropout = 0"):
        small_trainer(replace(QUICK, **{option: True}))
    monkeypatch.setattr(type(small_trainer().model.network), "repeated", ())
    with pytest.raises(UserError, match="has no blocks"):
        small_trainer(replace(QUICK, **{option: True}))


def test_devices_without_bfloat16_and_machines_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no C++ compiler\nand a long list")

    monkeypatch.setattr(torch, "compile", missing)
    with pytest.raises(UserError, match=r"cannot be used here \(no C\+\+ compiler\)"):
        trained("residual_mlp", compile=True)
    monkeypatch.setattr(speed, "has_bfloat16", lambda device: False)
    with pytest.raises(UserError, match="not to be had on this device"):
        trained("residual_mlp", precision="bfloat16")


def test_every_block_is_compiled_while_training(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []

    def compile_(function: Any, *_: Any, **__: Any) -> Any:
        compiled.append(function)
        return function

    monkeypatch.setattr(torch, "compile", compile_)
    one = trained("unet", compile=True)
    assert len(compiled) == 1 + len(one.model.network.repeated)
    assert all(part._compiled_call_impl is None for part in one.model.modules())
    assert same_weights(weights_of(one), weights_of(trained("unet")))


@pytest.mark.parametrize("change", [{"precision": "float16"}, {"recompute": 1}, {"compile": "yes"}])
def test_values_that_are_none(change: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(change))):
        Options(**change)
