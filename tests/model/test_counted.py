"""A network and counts together: normalised whatever the weights, no unknown value is read, drafts are exact."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from anyorder.data.text import Alphabet
from anyorder.errors import UserError
from anyorder.modalities.texts.core import text_model
from anyorder.model import AnyOrderModel
from anyorder.model.speculative import speculate
from anyorder.networks import networks
from anyorder.networks.counted import Counted, nearby, nearby_along
from anyorder.networks.counts import Counts
from anyorder.networks.parts.lookahead import BesideLookahead
from anyorder.protocols import Canonical
from anyorder.query import Query
from anyorder.support.registry import describe
from anyorder.testing import check_no_leak
from anyorder.training.mixing import learn_mixing
from markov_text import corpus

from peaked_models import NETWORKS, SYMBOLS, N, exact, follows, peaked, query


def counted(kind: str = "chain", seed: int = 0) -> AnyOrderModel:
    """A peaked network with counts, under weights that depend on everything they may depend on."""
    model = peaked(kind)
    layout = model.network.layout
    network = Counted.of(layout, model.network, Counts.of(layout, corpus(), 3))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.weights.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    heads = [model.heads.of(variable) for variable in range(N)]
    return AnyOrderModel(model.encoding, network, heads, Canonical()).eval()


@pytest.mark.parametrize("kind", NETWORKS)
def test_every_chain_is_normalised(kind: str) -> None:
    model = counted(kind)
    for evidence, asked in (({}, [0, 1, 2, 3, 4]), ({1: 2, 4: 0}, [0, 2, 3]), ({4: 1}, [1, 2])):
        assert exact(model, evidence, asked).sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("kind", NETWORKS)
def test_nothing_unknown_is_read_and_all_ways_agree(kind: str) -> None:
    model = counted(kind).double()
    check_no_leak(model.network)
    generator = torch.Generator().manual_seed(1)
    known = torch.rand(8, N, generator=generator) < 0.5
    values = torch.randint(3, (8, N), generator=generator).double()
    chain = model.chain(Query(known, ~known))
    with torch.no_grad():
        along, walk = model.network.along(values, chain), model.network.walk(values, chain)
        for step in range(chain.steps):
            here = chain.order[:, step] >= 0
            torch.testing.assert_close(walk.features()[here], along[here, step], rtol=0, atol=1e-9)
            walk.tell(values.gather(1, chain.order[:, step : step + 1].clamp(min=0))[:, 0])


def test_it_is_described_and_built_again() -> None:
    network = counted().network
    again = networks.build(describe(network), layout=network.layout)
    again.load_state_dict(network.state_dict())
    values, known = torch.zeros(1, N), torch.zeros(1, N, dtype=torch.bool)
    assert torch.equal(again.beside(values, known), network.beside(values, known))
    with pytest.raises(UserError, match="the network first"):
        Counted(network.layout, describe(network)["members"][::-1])


def test_neighbours_are_counted_until_the_first_that_is_unknown() -> None:
    known = torch.tensor([[True, False, True, True, False, True, True, True]])
    near = nearby(known, torch.tensor([[4, 1]]))
    assert (8 * near[0, :, :2]).tolist() == [[2, 3], [1, 2]]
    assert near[0, 0, 2] == pytest.approx(6 / 8)
    chain = Canonical().chain(Query(known, ~known))
    assert (8 * nearby_along(chain)[0, :, :2]).tolist() == [[1, 2], [4, 3]]  # by then position 1 is known


@pytest.mark.parametrize(
    ("evidence", "asked", "draws"), [({}, [0, 1, 2, 3, 4], 12_000), ({4: 0, 0: 1}, [1, 2, 3], 2_000)]
)
def test_drafts_by_counts_follow_the_chain(evidence: dict[int, int], asked: list[int], draws: int) -> None:
    model = counted()
    values, questions = query(evidence, asked, draws)
    found = speculate(model, values, model.chain(questions), torch.Generator().manual_seed(2), drafts=3)
    assert follows(found.values.numpy(), asked, exact(model, evidence, asked))
    assert bool((found.drawn == len(asked)).all() and (found.calls <= found.drawn).all())
    assert float(found.calls.double().mean()) < 0.8 * len(asked)


def test_looking_ahead_is_looking_beside() -> None:
    network = {"name": "causal_transformer", "width": 16, "blocks": 2, "heads": 2, "positions": "rotary"}
    plain = text_model(Alphabet(SYMBOLS), 20, network, Canonical(), seed=0)
    layout = plain.network.layout
    own = Counted.of(layout, plain.network, Counts.of(layout, corpus(), 4)).double().eval()
    generator = torch.Generator().manual_seed(5)
    known = torch.rand(4, 20, generator=generator) < torch.tensor([0.0, 0.2, 0.5, 0.8])[:, None]
    values = torch.randint(3, (4, 20), generator=generator).double()
    chain = Canonical().chain(Query(known, ~known))
    with torch.no_grad():
        ours, theirs = own.look_ahead(values, chain), BesideLookahead(own, values, chain)
        for _ in range(6):
            guesses = torch.randint(3, (4, 3), generator=generator).double()
            found, wanted = ours.look(guesses, 2), theirs.look(guesses, 2)
            real = ours.upcoming(5)[:, torch.arange(4)[:, None] + torch.arange(2)] >= 0
            torch.testing.assert_close(found[real], wanted[real], rtol=0, atol=1e-9)
            right, value = torch.randint(3, (4,), generator=generator), torch.randint(3, (4,), generator=generator)
            ours.settle(right, value.double())
            theirs.settle(right, value.double())


def test_mixing_is_learned_from_held_out_text() -> None:
    """Where the network knows nothing, the mixture ends where the counts are; both scores are of texts kept back."""
    model = counted()
    text = corpus(4000, seed=0)[400:]
    rows = torch.from_numpy(text[: len(text) // N * N].reshape(-1, N)[:64]).float()
    chain = Canonical().chain(Query.marginal(torch.ones(len(rows), N, dtype=torch.bool)))
    network = model.network
    assert isinstance(network, Counted)
    scores = learn_mixing(network, rows, chain, seconds=5.0, seed=0)
    assert scores["together"] >= max(scores["network"], scores["counts"])
    assert scores["counts"] > scores["network"]


@pytest.mark.parametrize("texts", [1, 2, 3, 5])
def test_a_handful_of_texts_is_enough_to_mix(texts: int) -> None:
    network = counted().network
    assert isinstance(network, Counted)
    rows = torch.from_numpy(corpus(texts * N, seed=1).reshape(texts, N)).float()
    chain = Canonical().chain(Query.marginal(torch.ones(texts, N, dtype=torch.bool)))
    scores = learn_mixing(network, rows, chain, seed=0)
    assert all(np.isfinite(score) for score in scores.values())
    assert scores["together"] >= max(scores["network"], scores["counts"]) - 1e-6
