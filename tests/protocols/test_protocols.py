"""Protocols: every chain a permutation of its query, orders total, laws of the orders by enumeration."""

from __future__ import annotations

import gc
import itertools
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from math import factorial
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import anyorder.protocols
from anyorder.errors import UserError
from anyorder.protocols import AnyEvidence, Canonical, Hashed, Pixelwise, Protocol, Random, protocols
from anyorder.protocols.hashed import mix
from anyorder.query import PAD, Query
from anyorder.support.registry import describe
from anyorder.testing import check_protocol

FIVE = 5
ALL: list[Protocol] = [
    Random(),
    Canonical(),
    Canonical(stride=2),
    Canonical(stride=9),
    Canonical(order=(3, 0, 4, 1, 2)),
    Hashed(),
    Hashed(seed=-7),
    AnyEvidence(),
    AnyEvidence(share=0.5, stride=2),
]


def every_query() -> Query:
    """All 3^5 ways to make each of five variables evidence, asked or neither."""
    role = torch.tensor(list(itertools.product(range(3), repeat=FIVE)))
    return Query(role == 1, role == 2)


def real(row: list[int]) -> list[int]:
    return [entry for entry in row if entry != PAD]


@pytest.mark.parametrize("protocol", ALL, ids=repr)
def test_every_chain_is_a_permutation_of_its_query_evidence_first(protocol: Protocol) -> None:
    query = every_query()
    chain = protocol.chain(query, torch.Generator().manual_seed(0))
    for evidence, asked, prefix, order in zip(
        query.evidence, query.asked, chain.prefix.tolist(), chain.order.tolist(), strict=True
    ):
        known, wanted = evidence.nonzero().squeeze(1).tolist(), asked.nonzero().squeeze(1).tolist()
        assert prefix[: len(prefix) - len(known)] == [PAD] * (len(prefix) - len(known))
        assert order[len(wanted) :] == [PAD] * (len(order) - len(wanted))
        assert sorted(real(prefix)) == known
        assert sorted(real(order)) == wanted


@pytest.mark.parametrize("protocol", [p for p in ALL if not p.random], ids=repr)
def test_fixed_protocols_need_no_generator_and_do_not_care_about_the_batch(protocol: Protocol) -> None:
    query = every_query()
    together = protocol.chain(query)
    for row in range(0, query.batch, 17):
        alone = protocol.chain(query.rows(slice(row, row + 1)))
        assert real(alone.prefix[0].tolist()) == real(together.prefix[row].tolist())
        assert real(alone.order[0].tolist()) == real(together.order[row].tolist())


@pytest.mark.parametrize("protocol", ALL, ids=repr)
def test_survives_json(protocol: Protocol) -> None:
    assert protocols.build(json.loads(json.dumps(describe(protocol)))) == protocol


def orders_of(protocol: Protocol, query: Query, seed: int = 0) -> Counter[tuple[int, ...]]:
    chain = protocol.chain(query, torch.Generator().manual_seed(seed))
    return Counter(tuple(row) for row in chain.order.tolist())


def test_random_orders_are_uniform_over_permutations() -> None:
    asked = torch.tensor([[True, False, True, True, True]]).expand(24_000, -1)
    found = orders_of(Random(), Query.marginal(asked))
    assert set(found) <= set(itertools.permutations((0, 2, 3, 4)))
    assert len(found) == 24
    assert stats.chisquare(list(found.values())).pvalue > 1e-3


def test_random_is_decided_by_its_generator() -> None:
    query = every_query()
    assert orders_of(Random(), query, 1) == orders_of(Random(), query, 1)
    assert orders_of(Random(), query, 1) != orders_of(Random(), query, 2)
    with pytest.raises(UserError, match="generator"):
        Random().chain(query)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_so_large_a_share_reads_its_evidence_in_random_order_and_all_answer_in_canonical_order(share: float) -> None:
    """Every order of four known variables by enumeration: ``share / 24``, and the canonical one what is left."""
    evidence = torch.tensor([[True, False, True, True, True, False]]).expand(24_000, -1)
    chain = AnyEvidence(share=share).chain(Query(evidence, ~evidence), torch.Generator().manual_seed(0))
    assert bool((chain.order == torch.tensor([1, 5])).all())
    found = Counter(map(tuple, chain.prefix.tolist()))
    law = dict.fromkeys(itertools.permutations((0, 2, 3, 4)), share / 24)
    law[0, 2, 3, 4] += 1 - share
    assert set(found) <= {order for order, prob in law.items() if prob}
    there = [order for order, prob in law.items() if prob]
    expected = [24_000 * law[order] for order in there]
    assert len(there) == 1 or stats.chisquare([found[order] for order in there], expected).pvalue > 1e-3


def test_canonical_lexicographic_answers_ascending() -> None:
    query = every_query()
    for row in Canonical().chain(query).order.tolist():
        assert real(row) == sorted(real(row))


def test_canonical_given_order() -> None:
    place = {3: 0, 0: 1, 4: 2, 1: 3, 2: 4}
    for row in Canonical(order=(3, 0, 4, 1, 2)).chain(every_query()).order.tolist():
        assert real(row) == sorted(real(row), key=place.__getitem__)


@given(st.integers(1, 300), st.integers(1, 40))
def test_canonical_strided_has_a_distinct_key_for_every_variable(variables: int, stride: int) -> None:
    everything = torch.ones(1, variables, dtype=torch.bool)
    protocol = Canonical(stride=stride)
    keys = protocol.keys(everything, None)
    assert sorted(keys[0].tolist()) == list(range(variables))
    # 0, k, 2k, ..., 1, k + 1, ...: by the remainder first, then by the variable itself.
    expected = sorted(range(variables), key=lambda i: (i % stride, i))
    assert protocol.chain(Query.marginal(everything)).order[0].tolist() == expected


def test_canonical_stride_of_the_papers_text() -> None:
    # MAC's released code leaves only 10 different keys here, and an unstable sort to break the ties.
    keys = Canonical(stride=25).keys(torch.ones(1, 250, dtype=torch.bool), None)
    assert len(set(keys[0].tolist())) == 250


def test_canonical_chains_share_their_prefixes() -> None:
    # Answering u by canonical order passes through what answering u without its greatest element passes through.
    protocol = Canonical(stride=2)
    for row in every_query().asked.unique(dim=0):
        order = real(protocol.chain(Query.marginal(row[None])).order[0].tolist())
        if order:
            smaller = row.clone()
            smaller[order[-1]] = False
            assert real(protocol.chain(Query.marginal(smaller[None])).order[0].tolist()) == order[:-1]


def reference_mix(word: int) -> int:
    """SplitMix64's finaliser in Python's unbounded integers."""
    word &= 2**64 - 1
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
    return word ^ (word >> 31)


@given(st.integers(-(2**63), 2**63 - 1))
def test_mix_is_splitmix64_whatever_the_sign(word: int) -> None:
    assert int(mix(torch.tensor(word))) % 2**64 == reference_mix(word)


def test_splitmix64_known_answer() -> None:
    # The first outputs of the published generator, seed 1234567.
    golden = 0x9E3779B97F4A7C15
    assert [reference_mix(1234567 + k * golden) for k in (1, 2)] == [6457827717110365317, 3203168211198807973]


def hashed_in_python(members: list[int], seed: int) -> list[int]:
    golden = 0x9E3779B97F4A7C15
    start = reference_mix(seed)
    total = sum(reference_mix(start + (i + 1) * golden) for i in members)

    def key(i: int) -> int:
        word = reference_mix(total + (i + 1) * golden)
        return word - 2**64 if word >= 2**63 else word

    return sorted(members, key=key)


@pytest.mark.parametrize("seed", [0, 12345, -1])
def test_hashed_is_the_same_everywhere(seed: int) -> None:
    masks = torch.rand(40, 70, generator=torch.Generator().manual_seed(1)) < 0.5
    chain = Hashed(seed).chain(Query.marginal(masks))
    for mask, order in zip(masks, chain.order.tolist(), strict=True):
        assert real(order) == hashed_in_python(mask.nonzero().squeeze(1).tolist(), seed)


def test_hashed_orders_of_different_masks_look_uniform_and_unrelated() -> None:
    # All masks of 16 variables that hold 0, 1, 2, 3: in what order do those four come?
    rest = (torch.arange(2**12)[:, None] >> torch.arange(12)) & 1
    masks = torch.cat([torch.ones(2**12, 4, dtype=torch.bool), rest.bool()], dim=1)
    chain = Hashed(seed=5).chain(Query.marginal(masks))
    seen = [tuple(i for i in order if 0 <= i < 4) for order in chain.order.tolist()]
    counts = Counter(seen)
    assert len(counts) == factorial(4)
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3
    # Neighbours on the lattice (one variable more or less) agree as often as strangers do: once in 24.
    agree = sum(seen[code] == seen[code ^ 1] for code in range(0, 2**12, 2))
    assert stats.binomtest(agree, 2**11, 1 / 24).pvalue > 1e-3
    other = Hashed(seed=6).chain(Query.marginal(masks))
    again = [tuple(i for i in order if 0 <= i < 4) for order in other.order.tolist()]
    agree = sum(one == two for one, two in zip(seen, again, strict=True))
    assert stats.binomtest(agree, 2**12, 1 / 24).pvalue > 1e-3


@pytest.mark.parametrize(
    "make, fault",
    [
        (lambda: Canonical(order=(0, 2)), "every index 0..1 exactly once"),
        (lambda: Canonical(order=(0, 0, 1)), "exactly once"),
        (lambda: Canonical(order=(1, 0)), "2 variables, the data 5"),
        (lambda: Canonical(stride=0), "from 1 up"),
        (lambda: Canonical(order=(0, 1), stride=2), "not both"),
        (lambda: AnyEvidence(share=1.5), "from 0 to 1, got 1.5"),
        (lambda: AnyEvidence(stride=0), "from 1 up"),
        (lambda: Hashed(seed=0.5), "whole number"),  # type: ignore[arg-type]
        (lambda: protocols.build({"name": "canonicl"}), "did you mean 'canonical'"),
    ],
)
def test_mistakes_are_explained(make: Callable[[], Protocol], fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        make().chain(every_query())


DROPPED = """
from dataclasses import dataclass
from typing import ClassVar
import torch
from anyorder.protocols.base import Protocol

@dataclass(frozen=True)
class Descending(Protocol):
    name: ClassVar[str] = "descending"

    def keys(self, mask, generator):
        return -torch.arange(mask.shape[1]).expand_as(mask)
"""


@pytest.fixture
def dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file that lies in the package while the test lasts, and leaves nothing behind."""
    (tmp_path / "dropped_protocol.py").write_text(DROPPED)
    monkeypatch.setattr(anyorder.protocols, "__path__", [*anyorder.protocols.__path__, str(tmp_path)])
    yield
    sys.modules.pop("anyorder.protocols.dropped_protocol", None)
    vars(anyorder.protocols).pop("dropped_protocol", None)
    gc.collect()  # the class is its base's subclass until it is really gone


@pytest.mark.usefixtures("dropped")
def test_a_new_protocol_is_one_new_file() -> None:
    chain = protocols.build({"name": "descending"}).chain(Query.marginal(torch.tensor([[True, False, True, True]])))
    assert chain.order.tolist() == [[3, 2, 0]]
    assert "descending" in protocols.names()


def test_every_protocol_is_registered_and_a_dropped_one_is_gone() -> None:
    assert protocols.names() == ["any_evidence", "canonical", "hashed", "pixelwise", "random"]


def test_pixelwise_keeps_the_channels_of_a_pixel_together() -> None:
    protocol = Pixelwise(3)
    check_protocol(protocol, variables=6)
    chain = protocol.chain(Query.marginal(torch.ones(6000, 9, dtype=torch.bool)), torch.Generator().manual_seed(0))
    pixels = chain.order.view(-1, 3, 3)
    assert bool((pixels % 3 == torch.arange(3)).all())
    assert bool((pixels // 3 == pixels[..., :1] // 3).all())
    orders = torch.bincount((pixels[:, :, 0] // 3 * torch.tensor([9, 3, 1])).sum(dim=1))
    assert stats.chisquare(orders[orders > 0].numpy()).pvalue > 1e-3
    assert int((orders > 0).sum()) == 6
    with pytest.raises(UserError, match="whole number of pixels"):
        protocol.chain(Query.marginal(torch.ones(1, 8, dtype=torch.bool)), torch.Generator())
    with pytest.raises(UserError, match="give a generator"):
        protocol.chain(Query.marginal(torch.ones(1, 9, dtype=torch.bool)))
    with pytest.raises(UserError, match="from 1 up"):
        Pixelwise(0)
