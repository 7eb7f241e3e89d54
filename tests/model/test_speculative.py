"""Speculative sampling against enumeration: the same distribution as one at a time, and never more calls."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from anyorder.data.text import Alphabet
from anyorder.errors import UserError
from anyorder.modalities.texts.core import text_model
from anyorder.model.speculative import speculate
from anyorder.networks.parts.lookahead import BesideLookahead
from anyorder.protocols import Canonical, Random
from anyorder.query import Query

from peaked_models import DRAWS, NETWORKS, SYMBOLS, N, exact, follows, peaked, query


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(
    ("evidence", "asked", "drafts"), [({}, [0, 1, 2, 3, 4], 3), ({1: 2}, [0, 2, 3], 2), ({4: 0, 0: 1}, [1, 2, 3], 8)]
)
def test_draws_follow_the_chain(network: str, evidence: dict[int, int], asked: list[int], drafts: int) -> None:
    model = peaked(network)
    probs = exact(model, evidence, asked)
    assert probs.sum() == pytest.approx(1.0, abs=1e-5)
    values, questions = query(evidence, asked, DRAWS)
    found = speculate(model, values, model.chain(questions), torch.Generator().manual_seed(2), drafts=drafts)
    for place, code in evidence.items():
        assert bool((found.values[:, place] == code).all())
    assert follows(found.values.numpy(), asked, probs)
    # Drafting independently would not pass: the variables do depend on each other.
    assert not np.allclose(
        probs, np.prod(np.meshgrid(*_margins(probs, len(asked)), indexing="ij"), axis=0).ravel(), atol=0.01
    )
    assert bool((found.calls <= found.drawn).all())
    assert bool((found.drawn == len(asked)).all())


def _margins(probs: np.ndarray, variables: int) -> list[np.ndarray]:
    cube = probs.reshape((len(SYMBOLS),) * variables)
    return [cube.sum(axis=tuple(other for other in range(variables) if other != axis)) for axis in range(variables)]


def test_rows_of_different_length_and_random_orders() -> None:
    model = peaked("chain", Random())
    generator = torch.Generator().manual_seed(3)
    known = torch.rand(200, N, generator=generator) < 0.4
    asked = ~known & (torch.rand(200, N, generator=generator) < 0.8)
    values = torch.randint(3, (200, N), generator=generator).float()
    chain = model.chain(Query(known, asked), generator)
    found = speculate(model, values, chain, generator, drafts=2)
    assert torch.equal(found.values[known], values[known])
    assert torch.equal(found.drawn, asked.sum(dim=1))
    assert bool((found.calls <= found.drawn).all())
    assert bool((found.values[~known & ~asked] == 0).all())


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_looking_ahead_with_a_cache_is_looking_beside(positions: str) -> None:
    # Long enough that wrong guesses fill the cache and it is packed; rows with and without evidence.
    network = {"name": "causal_transformer", "width": 16, "blocks": 2, "heads": 2, "positions": positions}
    model = text_model(Alphabet(SYMBOLS), 30, network, Canonical(), seed=0).double().eval()
    generator = torch.Generator().manual_seed(5)
    known = torch.rand(6, 30, generator=generator) < torch.tensor([0.0, 0.0, 0.1, 0.3, 0.5, 0.9])[:, None]
    values = torch.randint(3, (6, 30), generator=generator).double()
    chain = model.chain(Query(known, ~known))
    with torch.no_grad():
        cached, plain = model.network.look_ahead(values, chain), BesideLookahead(model.network, values, chain)
        packed = False
        for _ in range(25):
            guesses = torch.randint(3, (6, 4), generator=generator).double()
            ours, theirs = cached.look(guesses, 3), plain.look(guesses, 3)
            steps = torch.arange(5)[:, None] + torch.arange(3)
            real = cached.upcoming(7)[:, steps] >= 0
            torch.testing.assert_close(ours[real], theirs[real], rtol=0, atol=1e-10)
            right = torch.randint(2, (6,), generator=generator)
            value = torch.randint(3, (6,), generator=generator).double()
            before = cached.shown.shape[1]
            cached.settle(right, value)
            plain.settle(right, value)
            packed |= cached.shown.shape[1] < before
    assert packed


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("evidence", [{}, {1: 2, 4: 0}])
def test_calls_are_passes_of_the_network(
    network: str, evidence: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = peaked(network)
    passes = 0
    name = "run" if "chain" in network else "beside"
    whole = getattr(type(model.network), name)

    def counted(*given: object, **more: object) -> object:
        nonlocal passes
        passes += 1
        return whole(*given, **more)

    monkeypatch.setattr(type(model.network), name, counted)
    for seed in range(5):
        passes = 0
        values, questions = query(evidence, [place for place in range(N) if place not in evidence], 1)
        found = speculate(model, values, model.chain(questions), torch.Generator().manual_seed(seed), drafts=2)
        assert passes == int(found.calls[0]) <= int(found.drawn[0])


def test_what_it_cannot_do_is_refused() -> None:
    model = peaked("chain")
    values, questions = query({}, [0, 1], 1)
    with pytest.raises(UserError, match="1 draft"):
        speculate(model, values, model.chain(questions), drafts=0)
