"""Few-step sampling: the predicted cost against enumeration, the budget against trying all of them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from anyorder.errors import UserError
from anyorder.model import few_steps
from anyorder.model.few_steps import (
    call_starts,
    cheapest,
    cheapest_in_random_order,
    draw_by_confidence,
    draw_in_groups,
    even,
    surprise_matrix,
)
from anyorder.protocols import Canonical, Protocol, Random
from anyorder.query import Query

from peaked_models import DRAWS, N, peaked, query


def costs(loss: np.ndarray, starts: tuple[int, ...]) -> float:
    ends = (*starts[1:], len(loss))
    return sum(loss[i, t] - loss[t, t] for i, j in zip(starts, ends, strict=True) for t in range(i, j))


@pytest.mark.parametrize("calls", [1, 2, 3, 5, 6])
def test_the_budget_is_the_best_of_all(calls: int) -> None:
    generator = np.random.default_rng(calls)
    loss = np.triu(np.sort(generator.random((6, 6)), axis=0)[::-1])
    budget = cheapest(loss, calls)
    ways = [(0, *rest) for rest in itertools.combinations(range(1, 6), calls - 1)]
    assert budget.nats == pytest.approx(min(costs(loss, way) for way in ways))
    assert costs(loss, budget.starts) == pytest.approx(budget.nats)
    assert budget.calls == calls


@pytest.mark.parametrize("calls", [1, 2, 3, 5, 7])
def test_a_surprise_by_how_many_are_known_is_a_matrix_with_equal_rows(calls: int) -> None:
    surprise = np.sort(np.random.default_rng(calls).random(7))[::-1]
    loss = np.where(np.arange(7)[:, None] <= np.arange(7), surprise[:, None], np.inf)
    found, wanted = cheapest_in_random_order(surprise, calls), cheapest(loss, calls)
    assert found.nats == pytest.approx(wanted.nats, abs=1e-12)
    assert costs(loss, found.starts) == pytest.approx(wanted.nats, abs=1e-12)
    assert (found.steps, found.calls) == (7, calls)
    assert call_starts(calls, 5, 2, tuple(surprise)) == (
        cheapest_in_random_order(surprise[2:], calls).starts if calls < 5 else even(5, 5)
    )


def test_a_long_curve_is_searched_on_a_coarser_grid() -> None:
    surprise = 3 / (1 + np.arange(5000) / 40)
    found = cheapest_in_random_order(surprise, 8)
    assert found.calls == 8 and found.starts[0] == 0 and all(start % 5 == 0 for start in found.starts)
    assert found.starts == tuple(sorted(set(found.starts)))
    # Near the best: a little more than a finer search on each side of every start could still gain.
    own = np.concatenate([[0.0], np.cumsum(surprise)])

    def cost(starts: tuple[int, ...]) -> float:
        ends = (*starts[1:], 5000)
        return sum((end - start) * surprise[start] for start, end in zip(starts, ends, strict=True)) - own[-1]

    assert cost(found.starts) == pytest.approx(found.nats)
    for number in range(1, 8):
        for shift in (-1, 1):
            moved = (*found.starts[:number], found.starts[number] + shift, *found.starts[number + 1 :])
            assert cost(moved) > found.nats - 1.0
    assert found.nats < cost(even(5000, 8)) / 2


def test_confidence_asks_for_the_entropy_of_unknown_variables_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    model, asked_for = peaked("mask"), []
    entropy_at = model.heads.entropy_at
    monkeypatch.setattr(
        model.heads,
        "entropy_at",
        lambda features, target: (asked_for.append(len(target)), entropy_at(features, target))[1],
    )
    values, questions = query({0: 1.0, 2: 2.0}, [1, 3], 4)
    draw_by_confidence(model, values, questions, None, torch.Generator().manual_seed(0))
    assert asked_for == [8, 4]  # four rows of two unknown ones, then of one


def test_as_many_calls_as_steps_cost_nothing() -> None:
    budget = cheapest(np.triu(np.ones((4, 4)) * np.arange(4, 0, -1)[:, None]), 9)
    assert budget.starts == (0, 1, 2, 3)
    assert budget.nats == pytest.approx(0.0)
    with pytest.raises(UserError, match="calls must be"):
        cheapest(np.ones((2, 2)), 0)
    assert even(10, 3) == (0, 3, 7)


@pytest.mark.parametrize("network", ["chain", "mask"])
def test_the_predicted_cost_is_the_divergence_from_the_model(network: str) -> None:
    # KL(model || drawn in groups) = sum of what each group costs, with the mean taken over the model itself.
    model = peaked(network)
    ways = torch.tensor(list(itertools.product(range(3), repeat=N)), dtype=torch.float32)
    everything = Query.marginal(torch.ones(ways.shape, dtype=torch.bool))
    chain = model.chain(everything)
    with torch.no_grad():
        steps = model.step_log_prob(ways, chain).double()
    weight = steps.sum(dim=1).exp()
    # The model's own distribution as held-out rows: many draws, each way as often as it is probable.
    starts = (0, 2, 3)
    grouped = torch.zeros(len(ways), dtype=torch.float64)
    for start, end in zip(starts, (*starts[1:], N), strict=True):
        known = chain.known_before(start)
        with torch.no_grad():
            features = model.network.beside(ways.where(known, 0.0), known, chain.order[:, :start])
            nats = model.heads.log_prob_beside(features, ways).double()
        grouped += nats.gather(1, chain.order[:, start:end]).sum(dim=1)
    assert float(grouped.exp().sum()) == pytest.approx(1.0, abs=1e-5)
    divergence = float((weight * (steps.sum(dim=1) - grouped)).sum())
    generator = torch.Generator().manual_seed(0)
    rows = ways[torch.multinomial(weight, 40_000, replacement=True, generator=generator)]
    loss = surprise_matrix(model, rows)
    assert costs(loss, starts) == pytest.approx(divergence, abs=0.01)
    assert divergence > 0.03
    # And the draws do follow the grouped distribution.
    values, questions = query({}, list(range(N)), DRAWS)
    drawn = draw_in_groups(model, values, model.chain(questions), starts, generator)
    number = sum(drawn[:, position].long() * 3**power for power, position in enumerate(reversed(range(N))))
    found = np.bincount(number.numpy(), minlength=len(ways)) / DRAWS
    probs = grouped.exp().numpy()
    assert np.abs(found - probs).max() < 4 * math.sqrt(probs.max() / DRAWS)
    assert np.abs(found - probs).sum() / 2 < np.abs(found - weight.numpy()).sum() / 2


def test_one_at_a_time_is_the_model_itself() -> None:
    model = peaked("chain")
    values = torch.randint(3, (50, N), generator=torch.Generator().manual_seed(0)).float()
    loss = surprise_matrix(model, values)
    assert bool(np.isinf(loss[1, 0]))
    with torch.no_grad():
        steps = model.step_log_prob(values, model.chain(Query.marginal(torch.ones(50, N, dtype=torch.bool))))
    np.testing.assert_allclose(np.diagonal(loss), -steps.double().mean(dim=0).numpy(), atol=1e-5)


def test_rows_of_different_length_in_random_order() -> None:
    model = peaked("chain", Random())
    generator = torch.Generator().manual_seed(3)
    known = torch.rand(60, N, generator=generator) < 0.4
    asked = ~known & (torch.rand(60, N, generator=generator) < 0.8)
    values = torch.randint(3, (60, N), generator=generator).float()
    chain = model.chain(Query(known, asked), generator)
    drawn = draw_in_groups(model, values, chain, (0, 2), generator)
    assert torch.equal(drawn[known], values[known])
    assert bool((drawn[~known & ~asked] == 0).all())
    with pytest.raises(UserError, match="rising"):
        draw_in_groups(model, values, chain, (1, 2), generator)


@pytest.mark.parametrize("network", ["chain", "mask"])
def test_confidence_order_draws_the_surest_first(network: str) -> None:
    model = peaked(network)
    rows = 4000
    values, questions = query({1: 2}, [0, 2, 3], rows)
    generator = torch.Generator().manual_seed(0)
    drawn = draw_by_confidence(model, values, questions, None, generator)
    assert torch.equal(drawn[:, 1], values[:, 1])
    assert bool((drawn[:, 4] == 0).all())  # neither known nor asked
    # The first one drawn is the one of least entropy, the same in all rows, and follows its own distribution.
    known = questions.evidence[:1]
    with torch.no_grad():
        features = model.one_pass(values[:1].where(known, 0.0), known)
    asked = torch.tensor([0, 2, 3])
    first = int(asked[model.heads.entropy_at(features[0, asked], asked).argmin()])
    probs = model.heads.of(first)(features[0, first]).probs().double().numpy()
    counts = np.bincount(drawn[:, first].long().numpy(), minlength=3)
    assert np.abs(counts / rows - probs).max() < 4 * math.sqrt(0.25 / rows)


def test_a_budget_for_longer_chains_is_cut() -> None:
    budget = cheapest(np.triu(np.ones((6, 6)) * np.arange(6, 0, -1)[:, None]), 4)
    assert call_starts(budget, 3) == tuple(start for start in budget.starts if start < 3)
    known = budget.starts[1]  # so much of its way is behind
    assert call_starts(budget, 6 - known, known) == tuple(start - known for start in budget.starts[1:])
    assert call_starts(2, 5) == (0, 2)
    assert call_starts(None, 3) == (0, 1, 2)
    assert call_starts(9, 3) == (0, 1, 2)
    with pytest.raises(UserError, match="1 or more"):
        call_starts(0, 3)


def test_confidence_order_in_one_call_is_side_by_side() -> None:
    model = peaked("chain")
    values, questions = query({}, [0, 1, 2, 3, 4], 3000)
    drawn = draw_by_confidence(model, values, questions, 1, torch.Generator().manual_seed(0))
    known = questions.evidence[:1]
    with torch.no_grad():
        probs = model.heads.of(0)(model.one_pass(values[:1], known)).probs()[0].numpy()
    for position in range(N):
        found = np.bincount(drawn[:, position].long().numpy(), minlength=3) / 3000
        assert np.abs(found - probs[position]).max() < 4 * math.sqrt(0.25 / 3000)
    with pytest.raises(UserError, match="calls must be"):
        draw_by_confidence(model, values, questions, 0)


@pytest.mark.parametrize("protocol", [Canonical(), Random()])
def test_the_surprise_is_measured_in_parts_that_fit_into_memory(
    monkeypatch: pytest.MonkeyPatch, protocol: Protocol
) -> None:
    model = peaked("chain", protocol)
    values = torch.randint(3, (50, N), generator=torch.Generator().manual_seed(0)).float()
    whole = surprise_matrix(model, values, seed=4)
    monkeypatch.setattr(few_steps, "row_chunks", lambda model, rows: (slice(at, at + 7) for at in range(0, rows, 7)))
    beside, sizes = model.network.beside, []

    def watched(values: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        sizes.append(len(values))
        return beside(values, *rest)

    monkeypatch.setattr(model.network, "beside", watched)
    np.testing.assert_allclose(surprise_matrix(model, values, seed=4), whole, rtol=1e-6)
    assert max(sizes) == 7
