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


def test_no_way_of_drawing_moves_the_global_state() -> None:
    chances, weights = torch.full((4,), 0.5), torch.ones(3, 4)
    state = torch.random.get_rng_state()
    with WeightsUnset():
        assert sorted(torch.randperm(6).tolist()) == list(range(6))
        assert torch.randint(5, (3,)).shape == torch.randint_like(chances, 5)[:3].shape
        assert torch.rand_like(weights).shape == torch.randn_like(weights).shape == (3, 4)
        assert torch.normal(weights, 1.0).shape == torch.poisson(weights).shape == (3, 4)
        assert torch.bernoulli(chances).shape == chances.bernoulli().shape == (4,)
        assert torch.multinomial(weights, 2).shape == weights.multinomial(2).shape == (3, 2)
        for fill in ("bernoulli_", "cauchy_", "exponential_", "log_normal_", "normal_", "random_", "uniform_"):
            tensor = torch.ones(3)
            assert getattr(tensor, fill)() is tensor
        torch.ones(3).geometric_(0.5)
        nn.init.trunc_normal_(weights)
        nn.init.xavier_uniform_(weights)
        nn.init.orthogonal_(weights)
    assert torch.equal(torch.random.get_rng_state(), state)
