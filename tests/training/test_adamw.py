"""AdamW takes the steps of torch's own, and does not import torch's compiler."""

from __future__ import annotations

import subprocess
import sys

import torch
from torch import nn

from anyorder.training.adamw import AdamW


def layers() -> nn.Module:
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1), nn.Linear(1, 1))
    generator = torch.Generator().manual_seed(0)
    for weight in model.parameters():
        weight.data.copy_(torch.randn(weight.shape, generator=generator))
    return model


def groups(model: nn.Module) -> list[dict[str, object]]:
    weights = list(model.parameters())
    return [{"params": weights[:2], "weight_decay": 0.3}, {"params": weights[2:], "weight_decay": 0.0}]


def test_its_steps_are_those_of_torch_bit_for_bit() -> None:
    ours, theirs = layers(), layers()
    betas = (0.8, 0.95)
    pair = AdamW(groups(ours), lr=0.1, betas=betas), torch.optim.AdamW(groups(theirs), betas=betas, fused=True)
    inputs = torch.randn(20, 5, generator=torch.Generator().manual_seed(1))
    for number in range(12):
        for model, one in zip((ours, theirs), pair, strict=True):
            for group in one.param_groups:
                group["lr"] = 0.1 / (1 + number)
            one.zero_grad()
            hidden = model[1](model[0](inputs))  # the last layer has no gradient at first
            (model[2](hidden) if number < 4 else model[3](model[2](hidden))).square().mean().backward()
            one.step()
        if number == 7:  # taken up again from what it keeps
            again = AdamW(groups(ours), lr=0.1, betas=betas)
            again.restore(pair[0].state)
            pair = again, pair[1]
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(mine, other)
    assert [int(own["step"]) for own in pair[0].state.values()] == [12, 12, 12, 12, 8, 8]


def test_it_does_not_import_the_compiler_of_torch() -> None:
    code = """
import sys, torch
from anyorder.training.adamw import AdamW
weight = torch.nn.Parameter(torch.ones(3))
one = AdamW([{"params": [weight], "weight_decay": 0.0}], lr=0.1)
weight.square().sum().backward()
one.step()
assert float(weight.max()) < 1
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
