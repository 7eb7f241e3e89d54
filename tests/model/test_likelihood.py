"""The likelihood loop over orders: fixed by the seed, and equal to what enumeration of the orders says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from anyorder.errors import UserError
from anyorder.model.likelihood import log_prob, log_probs, order_protocols
from anyorder.model.sampling import draws
from anyorder.protocols import Canonical, Hashed, Protocol, Random
from anyorder.query import Query

from models import joint_table, random_joint_model
from peaked_models import N, peaked, query

ASKED = [0, 2, 3]
EVIDENCE = {1: 2}


def orders_of(protocols: list[Protocol]) -> list[tuple[int, ...]]:
    assert all(isinstance(protocol, Canonical) for protocol in protocols)
    return [tuple(protocol.order) for protocol in protocols]  # type: ignore[attr-defined]


def along_every_order(network: str, rows: int) -> tuple[torch.Tensor, Query, np.ndarray]:
    """Values of the asked variables, the question, and log p of each along each order [orders, values]."""
    ways = torch.tensor(list(itertools.product(range(3), repeat=len(ASKED))), dtype=torch.float32)
    values, question = query(EVIDENCE, ASKED, len(ways))
    values[:, ASKED] = ways
    every = []
    for order in itertools.permutations(ASKED):
        rest = tuple(variable for variable in range(N) if variable not in ASKED)
        model = peaked(network, Canonical(order=(*rest, *order)))
        with torch.no_grad():
            every.append(model.step_log_prob(values, model.chain(question)).double().sum(dim=1).numpy())
    return values[:rows], question.rows(slice(rows)), np.stack(every)[:, :rows]


def test_orders_of_a_random_protocol_are_fixed_by_the_seed() -> None:
    model = peaked("mask", Random())
    found = orders_of(order_protocols(model, 6, seed=3))
    assert found == orders_of(order_protocols(model, 6, seed=3))
    assert found[:4] == orders_of(order_protocols(model, 4, seed=3))  # more orders only add to the list
    assert found != orders_of(order_protocols(model, 6, seed=4))
    assert len(set(found)) > 1
    assert all(sorted(order) == list(range(N)) for order in found)


def test_orders_of_a_random_protocol_are_all_alike() -> None:
    found = orders_of(order_protocols(random_joint_model(Random()), 1200))
    counts = np.array([found.count(order) for order in itertools.permutations(range(3))])
    assert counts.sum() == 1200
    assert np.abs(counts - 200).max() < 4 * np.sqrt(1200 * 5 / 36)


@pytest.mark.parametrize("protocol", [Canonical(), Hashed()], ids=["canonical", "hashed"])
def test_a_model_with_an_order_of_its_own_is_asked_in_that_one_first(protocol: Protocol) -> None:
    model = peaked("mask", protocol)
    found = order_protocols(model, 4, seed=1)
    assert found[0] is protocol
    assert len(set(orders_of(found[1:]))) > 1
    assert not any(one.random for one in found)


@pytest.mark.parametrize("network", ["chain", "mask"])
def test_each_order_is_that_of_the_list(network: str) -> None:
    values, question, every = along_every_order(network, rows=27)
    np.testing.assert_allclose(np.exp(every).sum(axis=1), 1.0, atol=1e-5)
    assert np.ptp(every, axis=0).max() > 0.1  # the model disagrees with itself, so that a wrong order shows
    model = peaked(network, Random())
    nats = log_probs(model, values, question, orders=5, seed=2)
    permutations = list(itertools.permutations(ASKED))
    for row, order in zip(nats, orders_of(order_protocols(model, 5, seed=2)), strict=True):
        walked = tuple(variable for variable in order if variable in ASKED)
        np.testing.assert_allclose(row, every[permutations.index(walked)], atol=1e-5)
    mean = log_prob(model, values, question, orders=5, seed=2)
    np.testing.assert_allclose(np.exp(mean), np.exp(nats).mean(axis=0), rtol=1e-10)


def test_many_orders_come_near_the_mean_over_all() -> None:
    values, question, every = along_every_order("mask", rows=6)
    orders = 400
    found = np.exp(log_prob(peaked("mask", Random()), values, question, orders=orders, seed=5))
    truth, spread = np.exp(every).mean(axis=0), np.exp(every).std(axis=0)
    assert (np.abs(found - truth) < 4 * spread / np.sqrt(orders) + 1e-6).all()
    assert (spread > 0.01).any()


def test_a_coherent_model_says_the_same_along_every_order() -> None:
    model, table = random_joint_model(Random()), joint_table()
    values = torch.tensor(list(itertools.product(range(3), repeat=3)), dtype=torch.float64)
    known = torch.zeros(values.shape, dtype=torch.bool)
    known[:, 1] = True
    nats = log_probs(model, values, Query(known, ~known), orders=4, seed=1)
    truth = np.log(table / table.sum(axis=(0, 2), keepdims=True)).reshape(-1)
    np.testing.assert_allclose(nats, np.broadcast_to(truth, nats.shape), atol=1e-6)


def test_senseless_orders_and_seeds_are_refused() -> None:
    model = random_joint_model(Random())
    values, everything = torch.zeros(1, 3), torch.ones(1, 3, dtype=torch.bool)
    for wrong in ({"orders": 0}, {"seed": -1}, {"orders": 1.5}):
        with pytest.raises(UserError, match=r"orders|seed"):
            log_probs(model, values, Query.marginal(everything), **wrong)  # type: ignore[arg-type]


def test_orders_of_a_table_come_with_their_opposites() -> None:
    model = random_joint_model(Canonical(order=(2, 0, 1)))
    found = order_protocols(model, 6, seed=3)
    orders = [tuple(one.sequence(3)) for one in found if isinstance(one, Canonical)]
    assert orders[0] == (2, 0, 1)
    assert [order[::-1] for order in orders[::2]] == orders[1::2]
    assert order_protocols(model, 5, seed=3) == found[:5]


def test_draws_and_likelihood_are_of_one_density() -> None:
    """A model that contradicts itself: draws along both orders follow their mean, and not one of them."""
    values, question, _ = along_every_order("mask", rows=27)
    model = peaked("mask", Canonical())
    one, both = (np.exp(log_prob(model, values, question, orders=orders)) for orders in (1, 2))
    assert both.sum() == pytest.approx(1, abs=1e-5)
    count = 20_000
    drawn = draws(
        model,
        values[:1].expand(count, -1),
        Query(*(part[:1].expand(count, -1) for part in (question.evidence, question.asked))),
        orders=2,
    )
    code = drawn[:, ASKED] @ 3 ** np.arange(len(ASKED))[::-1]
    seen = np.bincount(code.astype(int), minlength=27)

    def chi_squared(expected: np.ndarray) -> float:
        return float(((seen - count * expected) ** 2 / (count * expected)).sum())

    assert chi_squared(both) < 60  # 26 degrees of freedom
    assert chi_squared(one) > 100
