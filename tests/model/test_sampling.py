"""The drawing loop: every sampler against the law that it should follow, and what is known left as it is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from anyorder.model.few_steps import ByConfidence, InGroups, grouped
from anyorder.model.likelihood import log_prob
from anyorder.model.sampling import Sampler, draws, one_by_one, scored_draws
from anyorder.model.speculative import Drafted
from anyorder.protocols import Canonical, Protocol, Random
from anyorder.query import Chain, Query

from models import categorical_model, joint_table, random_joint_model
from peaked_models import DRAWS, N, exact, follows, peaked, query

SAMPLERS: dict[str, Sampler] = {
    "one by one": one_by_one,
    "in groups of one": InGroups(),
    "surest first": ByConfidence(),
    "drafted": Drafted(2),
}
ASKED = [0, 2, 3]


@pytest.mark.parametrize("protocol", [Canonical(), Random()], ids=["canonical", "random"])
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
def test_one_variable_a_call_follows_a_coherent_model(sampler: Sampler, protocol: Protocol) -> None:
    """The conditionals of one joint table agree, so no order, not even one that depends on the values, matters."""
    model, table = random_joint_model(protocol), joint_table()
    rows = 3000
    values, known = torch.full((rows, 3), 2.0, dtype=torch.float64), torch.zeros(rows, 3, dtype=torch.bool)
    known[:, 1] = True
    drawn = draws(model, values, Query(known, ~known), seed=1, sampler=sampler)
    law = table[:, 2] / table[:, 2].sum()
    assert follows(drawn, [0, 2], law.reshape(-1))
    assert not follows(drawn, [0, 2], np.outer(law.sum(axis=1), law.sum(axis=0)).reshape(-1))  # they do depend


@pytest.mark.parametrize("name", ["one by one", "in groups of one", "drafted"])
@pytest.mark.parametrize("network", ["chain", "mask"])
def test_samplers_of_the_models_own_law_follow_its_chain(network: str, name: str) -> None:
    model = peaked(network)
    values, question = query({1: 2}, ASKED, DRAWS)
    drawn = draws(model, values, question, seed=2, sampler=SAMPLERS[name])
    assert follows(drawn, ASKED, exact(model, {1: 2}, ASKED))


def test_random_orders_are_the_mixture_of_all_orders() -> None:
    every = []
    for order in itertools.permutations(ASKED):
        rest = tuple(variable for variable in range(N) if variable not in ASKED)
        every.append(exact(peaked("mask", Canonical(order=(*rest, *order))), {1: 2}, ASKED))
    values, question = query({1: 2}, ASKED, DRAWS)
    drawn = draws(peaked("mask", Random()), values, question, seed=3)
    assert follows(drawn, ASKED, np.mean(every, axis=0))
    assert not all(follows(drawn, ASKED, one) for one in every)


@pytest.mark.parametrize("sampler", [*SAMPLERS.values(), InGroups(2)], ids=[*SAMPLERS, "in two calls"])
@pytest.mark.parametrize("protocol", [Canonical(), Random()], ids=["canonical", "random"])
def test_only_what_is_asked_is_drawn_and_the_seed_decides(sampler: Sampler, protocol: Protocol) -> None:
    model = peaked("mask", protocol)
    generator = torch.Generator().manual_seed(0)
    known = torch.rand(60, N, generator=generator) < 0.4
    asked = ~known & (torch.rand(60, N, generator=generator) < 0.7)
    values = torch.randint(3, (60, N), generator=generator).float()
    question = Query(known, asked)
    before = values.clone()
    one, again, other = (draws(model, values, question, seed=seed, sampler=sampler) for seed in (1, 1, 2))
    assert torch.equal(values, before)
    np.testing.assert_array_equal(one, again)
    assert (one != other)[asked.numpy()].any()
    np.testing.assert_array_equal(one[~asked.numpy()], values.numpy()[~asked.numpy()])
    # What is neither known nor asked is not read.
    elsewhere = values.where(known, 1.0)
    np.testing.assert_array_equal(
        draws(model, elsewhere, question, seed=1, sampler=sampler)[asked.numpy()], one[asked.numpy()]
    )


def test_orders_follow_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    model, seen = peaked("chain", Random()), []
    draw = model.draw

    def watched(values: torch.Tensor, chain: Chain, generator: torch.Generator) -> torch.Tensor:
        seen.append(chain.order)
        return draw(values, chain, generator)

    monkeypatch.setattr(model, "draw", watched)
    values, question = query({1: 2}, ASKED, 20)
    for seed in (1, 1, 2):
        draws(model, values, question, seed=seed)
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], seen[2])
    assert len({tuple(order) for order in seen[0].tolist()}) > 1  # every row has an order of its own


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("network", ["chain", "mask"])
def test_scores_of_draws_are_the_likelihood_of_what_was_drawn(network: str, greedy: bool) -> None:
    model = peaked(network)
    values, question = query({1: 2}, ASKED, 40)
    drawn, nats = scored_draws(model, values, question, torch.Generator().manual_seed(0), greedy=greedy)
    np.testing.assert_allclose(nats.sum(dim=1), log_prob(model, drawn.float(), question), atol=1e-5)
    assert bool((nats[:, [1, 4]] == 0).all())
    assert bool((nats[:, ASKED] < 0).all())
    assert torch.equal(drawn[:, [1, 4]], values[:, [1, 4]].double())
    # Each at its own variable: in the canonical order the first asked one knows the evidence alone.
    with torch.no_grad():
        first = model.log_prob_beside(drawn.float(), question.evidence)[:, 0].double()
    torch.testing.assert_close(nats[:, 0], first, rtol=0, atol=1e-5)
    if greedy:
        assert len({tuple(row) for row in drawn.tolist()}) == 1
        probs = exact(model, {1: 2}, [0])
        assert int(drawn[0, 0]) == int(probs.argmax())


def test_scores_under_random_orders_are_those_of_the_joint_table() -> None:
    model, table = random_joint_model(Random()), joint_table()
    values, everything = torch.zeros(50, 3, dtype=torch.float64), torch.ones(50, 3, dtype=torch.bool)
    drawn, nats = scored_draws(model, values, Query.marginal(everything), torch.Generator().manual_seed(4))
    truth = np.log(table)[tuple(drawn.long().numpy().T)]
    np.testing.assert_allclose(nats.sum(dim=1), truth, atol=1e-6)


def test_nothing_asked_is_nothing_drawn() -> None:
    model = categorical_model({"name": "residual_mlp", "width": 8, "blocks": 1}, steps=1)
    values = torch.tensor([[1.0, 2.0, 0.0, 3.0]])
    known = torch.ones(1, 4, dtype=torch.bool)
    for sampler in (one_by_one, InGroups(2), ByConfidence(2)):
        np.testing.assert_array_equal(draws(model, values, Query(known, ~known), sampler=sampler), values.numpy())
    chain, starts = grouped(model.chain(Query(known, ~known)), None, channels=2)
    assert (chain.steps, starts) == (0, (0,))
