"""Draws from a generator of one's own: the same ones that a seed gives, for one thread, and nobody else's."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from anyorder.support.randomness import drawing_from

MAKERS: dict[str, Callable[[], Tensor]] = {
    "linear": lambda: nn.Linear(3, 4).weight,
    "convolution": lambda: nn.Conv2d(2, 4, 3).weight,
    "embedding": lambda: nn.Embedding(4, 5).weight,
    "recurrent": lambda: nn.LSTM(3, 4).weight_hh_l0,
    "attention": lambda: nn.MultiheadAttention(8, 2).in_proj_weight,
    "xavier": lambda: nn.init.xavier_normal_(torch.empty(3, 4)),
    "orthogonal": lambda: nn.init.orthogonal_(torch.empty(3, 4)),
    "truncated": lambda: nn.init.trunc_normal_(torch.empty(9)),
    "randn": lambda: torch.randn(5),
    "randn_like": lambda: torch.randn_like(torch.zeros(5)),
    "randint": lambda: torch.randint(9, (5,)),
    "randperm": lambda: torch.randperm(9),
    "bernoulli": lambda: torch.bernoulli(torch.full((9,), 0.5)),
    "multinomial": lambda: torch.multinomial(torch.ones(9), 4),
    "in place": lambda: torch.empty(5).exponential_(),
}


@pytest.mark.parametrize("made", MAKERS.values(), ids=MAKERS)
def test_a_generator_gives_what_its_seed_gives(made: Callable[[], Tensor]) -> None:
    before = torch.get_rng_state()
    with drawing_from(torch.Generator().manual_seed(5)):
        own = made()
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        assert torch.equal(own, made())


def test_who_names_a_generator_keeps_it() -> None:
    with drawing_from(torch.Generator().manual_seed(5)):
        drawn = torch.rand(3, generator=torch.Generator().manual_seed(6))
    assert torch.equal(drawn, torch.rand(3, generator=torch.Generator().manual_seed(6)))


def test_another_thread_does_not_see_it() -> None:
    generator = torch.Generator().manual_seed(5)
    with drawing_from(generator), torch.random.fork_rng(devices=[]):
        state = generator.get_state()
        thread = threading.Thread(target=lambda: torch.rand(3))
        thread.start()
        thread.join()
        assert torch.equal(generator.get_state(), state)
