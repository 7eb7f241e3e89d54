"""Modules without first weights: nothing is drawn, and only where it was asked for."""

from __future__ import annotations

import threading

import torch
from torch import nn

from anyorder.support.unset import WeightsUnset


def layers() -> nn.Module:
    made = nn.ModuleList([nn.Linear(3, 4), nn.Conv2d(2, 3, 3), nn.Embedding(5, 2), nn.LayerNorm(3)])
    made.extra = nn.Parameter(torch.randn(2, 2) * 0.3)
    nn.init.normal_(made.extra, std=0.5)
    return made


def test_nothing_is_drawn() -> None:
    state = torch.random.get_rng_state()
    with WeightsUnset():
        unset = layers()
    assert torch.equal(torch.random.get_rng_state(), state)
    drawn = layers()
    assert not torch.equal(torch.random.get_rng_state(), state)
    unset.load_state_dict(drawn.state_dict())
    for one, other in zip(unset.parameters(), drawn.parameters(), strict=True):
        assert one.requires_grad
        assert torch.equal(one, other)
    torch.random.set_rng_state(state)


def test_what_has_a_generator_is_drawn() -> None:
    with WeightsUnset():
        inside = torch.randn(5, generator=torch.Generator().manual_seed(1))
        filled = torch.zeros(5).uniform_(generator=torch.Generator().manual_seed(1))
    assert torch.equal(inside, torch.randn(5, generator=torch.Generator().manual_seed(1)))
    assert torch.equal(filled, torch.rand(5, generator=torch.Generator().manual_seed(1)))


def test_other_threads_draw() -> None:
    drawn: list[torch.Tensor] = []
    with WeightsUnset():
        worker = threading.Thread(target=lambda: drawn.append(torch.zeros(50).normal_()))
        worker.start()
        worker.join()
    assert drawn[0].abs().min() > 0
