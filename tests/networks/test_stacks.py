"""Networks of one kind that are asked together, against each of them alone, and draws along them against their law."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

import anyorder as ao
from anyorder.model import AnyOrderModel
from anyorder.networks import Network, networks
from anyorder.networks.blend import BlendNetwork, BlendWalk, OneQuestionWalk
from anyorder.networks.parts.stack import ROOM, Apart, Stack, recent, rows_by_network
from anyorder.query import Query
from anyorder.testing import mixed_layout, random_values, randomised

ROWS = 7


@pytest.fixture(scope="module")
def fitted() -> AnyOrderModel:
    """A table of numbers, whole numbers and levels, fitted by folds, so that every kind is there four times."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=120)
    frame = pd.DataFrame(
        {
            "x": x,
            "y": x**2 + generator.gamma(2.0, size=120),
            "n": generator.poisson(np.exp(0.5 * x)),
            "k": np.array(["a", "b", "c"])[np.digitize(x + generator.normal(size=120), [-0.5, 0.7])],
            "b": np.where(x > generator.normal(size=120), "yes", "no"),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few seconds are too few, and it says so
        return ao.fit(frame, minutes=0.1, seed=0, progress=False).core


def mlps(expert: bool) -> list[Network]:
    layout = mixed_layout()
    described = {"name": "residual_mlp", "width": 8, "blocks": 2, "expert": expert}
    found = []
    for seed in range(3):
        network = networks.build(described, layout=layout)
        generator = torch.Generator().manual_seed(seed)
        randomised(network, generator)
        network.prepare(random_values(layout, 40, generator), torch.rand(40, 5, generator=generator) < 0.8)
        found.append(network.eval())
    return found


def kinds(fitted: AnyOrderModel) -> Iterator[tuple[list[Network], Stack]]:
    assert isinstance(fitted.network, BlendNetwork)
    parts = fitted.network.inside
    for own, stack in fitted.network.stacks():
        yield [parts[number] for number in own], stack
    for expert in (False, True):
        yield (own := mlps(expert)), type(own[0]).stack(own)


@torch.no_grad()
def test_each_answers_as_it_does_alone(fitted: AnyOrderModel) -> None:
    seen = []
    for own, stack in kinds(fitted):
        seen.append(type(own[0]).name)
        assert len(own) > 1 and not isinstance(stack, Apart), seen
        layout, generator = own[0].layout, torch.Generator().manual_seed(1)
        values = random_values(layout, ROWS, generator)
        for _ in range(4):
            known = torch.rand(layout.variables, generator=generator) < 0.5
            everywhere = known.expand(ROWS, -1)
            other = torch.where(known, values, values + 1)  # what is not known must not be read
            for network, block in zip(own, stack.beside(other, known), strict=True):
                alone = network.beside(values, everywhere)
                torch.testing.assert_close(block[:, ~known], alone[:, ~known], rtol=1e-4, atol=1e-4)
            for target in (~known).nonzero()[:, 0].tolist():
                targets = torch.full((ROWS,), target)
                each = [network.at(values, everywhere, targets) for network in own]
                for block, alone in zip(stack.at(other, known, target), each, strict=True):
                    torch.testing.assert_close(block, alone, rtol=1e-4, atol=1e-4)
                chosen = torch.randint(len(own), (ROWS,), generator=generator)
                found = stack.at_own(other, known, target, chosen)
                size = layout.sizes[target]
                wanted = torch.stack([each[number][row, :size] for row, number in enumerate(chosen.tolist())])
                torch.testing.assert_close(found[:, :size], wanted, rtol=1e-4, atol=1e-4)
    assert {"residual_mlp", "linear", "boosted_trees"} <= set(seen)


def test_rows_are_rows_by_network() -> None:
    own = torch.tensor([2, 0, 2, 2, 0])
    rows, where = rows_by_network(own, 4)
    assert rows.shape == (4, 3)
    assert rows.flatten()[where].tolist() == [0, 1, 2, 3, 4]
    assert (where // 3).tolist() == own.tolist()


@torch.no_grad()
def test_draws_for_one_question_follow_the_law_of_the_blend(fitted: AnyOrderModel) -> None:
    count, network = 6000, fitted.network
    assert isinstance(network, BlendNetwork)
    known = torch.tensor([True, False, False, False, False])
    query = Query(known.expand(count, -1), ~known.expand(count, -1))
    chain = fitted.chain(query)
    values = torch.full((count, 5), 0.3, dtype=torch.float64)
    assert isinstance(network.walk(values, chain), OneQuestionWalk)
    quick = fitted.draw(values, chain, torch.Generator().manual_seed(0))
    walk = BlendWalk(network, [part.walk(values, chain) for part in network.inside], chain)
    generator = torch.Generator().manual_seed(1)
    for step in range(chain.steps):
        target = chain.order[:, step]
        walk.tell(walk.sample(fitted.heads, torch.arange(count), target, generator).double())
    slow = walk.walks[0].values  # type: ignore[attr-defined]  # what the walk of a mask network was told
    for name, column in zip(fitted.schema.names[1:], range(1, 5), strict=True):
        one, other = quick[:, column].numpy(), slow[:, column].numpy()
        if len(np.unique(one)) > 20:
            assert stats.ks_2samp(one, other).pvalue > 1e-4, name
        else:
            codes = np.unique(np.concatenate([one, other]))
            table = np.array([[(part == code).sum() + 1 for code in codes] for part in (one, other)])
            assert stats.chi2_contingency(table).pvalue > 1e-4, name


def test_rows_that_know_the_same_values_get_one_answer(fitted: AnyOrderModel) -> None:
    known = torch.tensor([True, False, True, False, False])
    values = torch.tensor([0.4, 9.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    with torch.no_grad():
        many = fitted.features_of(values.expand(5, -1), known.expand(5, -1), 1)
        one = fitted.features_of(values[None], known[None], 1)
    assert torch.equal(many, one.expand(5, -1))


@torch.no_grad()
def test_a_known_set_that_comes_back_is_answered_for_its_own_values(fitted: AnyOrderModel) -> None:
    for own, stack in kinds(fitted):
        layout, generator = own[0].layout, torch.Generator().manual_seed(2)
        sets = [torch.rand(layout.variables, generator=generator) < 0.5 for _ in range(3)]
        for known in (*sets, *sets):
            values = random_values(layout, ROWS, generator)
            target = int((~known).nonzero()[0, 0]) if not bool(known.all()) else 0
            for network, block in zip(own, stack.at(values, known, target), strict=True):
                alone = network.at(values, known.expand(ROWS, -1), torch.full((ROWS,), target))
                torch.testing.assert_close(block, alone, rtol=1e-4, atol=1e-4)


def test_what_is_kept_for_known_sets_stays_within_its_room() -> None:
    made = []

    def make(key: int) -> int:
        made.append(key)
        return -key

    few = recent(make, ROOM // 2)
    assert [few(key) for key in (1, 2, 1, 3, 1, 2)] == [-1, -2, -1, -3, -1, -2]
    assert made == [1, 2, 3, 2]
    assert recent(make, 10 * ROOM)(5) == -5
