"""Queries, chains and steps against plain Python lists and sets."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from anyorder.query import PAD, Chain, Query, lowest, members, ordered, random_subset

# Rows of 0 (neither), 1 (evidence), 2 (asked), with a sort key beside each.
cells = st.integers(1, 7).flatmap(
    lambda variables: st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(-3, 3)), min_size=variables, max_size=variables),
        min_size=1,
        max_size=5,
    )
)


def read(rows: list[list[tuple[int, int]]]) -> tuple[Query, torch.Tensor]:
    role = torch.tensor([[cell[0] for cell in row] for row in rows])
    key = torch.tensor([[cell[1] for cell in row] for row in rows])
    return Query(role == 1, role == 2), key


def chain_of(rows: list[list[tuple[int, int]]]) -> Chain:
    query, key = read(rows)
    return Chain(ordered(query.evidence, key, pad_left=True), ordered(query.asked, key), query.variables)


def listed(row: list[tuple[int, int]], role: int) -> list[int]:
    """Variables of one role by ascending key, ties by index: Python's sort is stable."""
    return sorted((i for i, cell in enumerate(row) if cell[0] == role), key=lambda i: row[i][1])


@given(cells)
def test_ordered_sorts_the_members_and_pads_one_side(rows: list[list[tuple[int, int]]]) -> None:
    query, key = read(rows)
    left, right = ordered(query.evidence, key, pad_left=True), ordered(query.asked, key)
    for role, found in ((1, left), (2, right)):
        assert found.shape[1] == max(len(listed(row, role)) for row in rows)
    for row, before, after in zip(rows, left.tolist(), right.tolist(), strict=True):
        evidence, asked = listed(row, 1), listed(row, 2)
        assert before == [PAD] * (len(before) - len(evidence)) + evidence
        assert after == asked + [PAD] * (len(after) - len(asked))


@given(cells)
def test_chain_gives_its_query_back(rows: list[list[tuple[int, int]]]) -> None:
    query, _ = read(rows)
    chain = chain_of(rows)
    assert torch.equal(chain.evidence, query.evidence)
    assert torch.equal(chain.asked, query.asked)
    assert chain.counted.sum(dim=1).tolist() == [len(listed(row, 2)) for row in rows]


@given(cells, st.integers(1, 9))
def test_unroll_lists_every_edge_once_with_what_is_known_before_it(
    rows: list[list[tuple[int, int]]], edges: int
) -> None:
    expected = []
    for number, row in enumerate(rows):
        known = set(listed(row, 1))
        for position, target in enumerate(listed(row, 2)):
            expected.append((number, position, target, frozenset(known)))
            known.add(target)
    found = []
    for step in chain_of(rows).unroll(edges):
        assert 1 <= len(step.row) <= edges
        for row, position, target, known_mask in zip(
            step.row.tolist(), step.position.tolist(), step.target.tolist(), step.known, strict=True
        ):
            found.append((row, position, target, frozenset(known_mask.nonzero().squeeze(1).tolist())))
    assert sorted(found, key=lambda edge: edge[:2]) == expected


@given(cells)
def test_known_before_grows_by_the_order(rows: list[list[tuple[int, int]]]) -> None:
    chain = chain_of(rows)
    for step in range(chain.steps + 1):
        for row, known in zip(rows, chain.known_before(step), strict=True):
            expected = set(listed(row, 1)) | set(listed(row, 2)[:step])
            assert set(known.nonzero().squeeze(1).tolist()) == expected


@given(cells)
def test_whole_counts_the_evidence_first(rows: list[list[tuple[int, int]]]) -> None:
    whole = chain_of(rows).whole()
    assert not whole.evidence.any()
    for row, order in zip(rows, whole.order.tolist(), strict=True):
        path = listed(row, 1) + listed(row, 2)
        assert order == path + [PAD] * (len(order) - len(path))


def test_among_drops_missing_cells_from_both_sets() -> None:
    query = Query(torch.tensor([[True, True, False, False]]), torch.tensor([[False, False, True, True]]))
    left = query.among(torch.tensor([[True, False, True, False]]))
    assert left.evidence.tolist() == [[True, False, False, False]]
    assert left.asked.tolist() == [[False, False, True, False]]


def test_rows_picks_queries_and_chains() -> None:
    evidence = torch.tensor([[True, False], [False, False]])
    asked = torch.tensor([[False, True], [True, True]])
    picked = Query(evidence, asked).rows(torch.tensor([1]))
    assert (picked.evidence.tolist(), picked.asked.tolist()) == ([[False, False]], [[True, True]])
    chain = Chain(torch.tensor([[0], [PAD]]), torch.tensor([[1, PAD], [1, 0]]), 2)
    assert chain.rows(slice(1, 2)).order.tolist() == [[1, 0]]
    assert chain.rows(slice(0, 1)).prefix.tolist() == [[0]]


def test_marginal_has_no_evidence() -> None:
    query = Query.marginal(torch.tensor([[True, False, True]]))
    assert (query.batch, query.variables) == (1, 3)
    assert not query.evidence.any()


def test_nothing_at_all_is_a_chain_too() -> None:
    nothing = Query.marginal(torch.zeros(0, 3, dtype=torch.bool))
    assert ordered(nothing.asked, torch.zeros(0, 3)).shape == (0, 0)
    idle = torch.zeros(2, 3, dtype=torch.bool)
    order = ordered(idle, torch.zeros(2, 3))
    assert order.shape == (2, 0)
    assert list(Chain(order, order, 3).unroll(4)) == []
    assert not members(order, 3).any()


@pytest.mark.parametrize(
    "evidence, asked, fault",
    [
        (torch.zeros(1, 2), torch.zeros(1, 2, dtype=torch.bool), "boolean"),
        (torch.zeros(2, dtype=torch.bool), torch.zeros(2, dtype=torch.bool), r"\[batch, variables\]"),
        (torch.zeros(1, 2, dtype=torch.bool), torch.zeros(1, 3, dtype=torch.bool), "differ in shape"),
        (torch.ones(1, 2, dtype=torch.bool), torch.ones(1, 2, dtype=torch.bool), "both evidence and asked"),
    ],
)
def test_bad_masks_are_refused(evidence: torch.Tensor, asked: torch.Tensor, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Query(evidence, asked)


@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_random_subsets_are_uniform_among_the_allowed(kind: str) -> None:
    rows, allowed = 30_000, torch.tensor([True, True, False, True, True])
    generator = np.random.default_rng(0) if kind == "numpy" else torch.Generator().manual_seed(0)
    drawn = random_subset(allowed.expand(rows, 5), torch.full((rows,), 2), generator)
    assert not bool(drawn[:, 2].any()) and bool((drawn.sum(dim=1) == 2).all())
    codes = (drawn.long() * torch.tensor([1, 2, 4, 8, 16])).sum(dim=1)
    counts = codes.unique(return_counts=True)[1].numpy()
    assert len(counts) == 6  # all pairs of four
    assert stats.chisquare(counts).pvalue > 1e-3


def test_random_subsets_follow_the_ranks_of_the_generators_noise() -> None:
    # The stream of draws is part of what a seed promises: one number in float64 for every cell, in reading order.
    among = torch.rand(50, 9, generator=torch.Generator().manual_seed(1)) < 0.7
    size = torch.randint(0, 12, (50,), generator=torch.Generator().manual_seed(2))
    noise = np.where(among.numpy(), np.random.default_rng(3).random((50, 9)), 2.0)
    expected = (noise.argsort(axis=1).argsort(axis=1) < size.numpy()[:, None]) & among.numpy()
    assert np.array_equal(random_subset(among, size, np.random.default_rng(3)).numpy(), expected)
    draws = torch.rand(50, 9, generator=torch.Generator().manual_seed(3), dtype=torch.float64).where(among, 2.0)
    ranks = draws.argsort(dim=1).argsort(dim=1)
    same = random_subset(among, size, torch.Generator().manual_seed(3))
    assert torch.equal(same, (ranks < size[:, None]) & among)


def test_the_lowest_break_ties_by_index_and_stop_at_what_there_is() -> None:
    key = torch.tensor([[3.0, 1.0, 1.0, 0.0], [2.0, 2.0, 2.0, 2.0], [5.0, 4.0, 3.0, 2.0]])
    among = torch.tensor([[True, True, True, False], [True] * 4, [True, False, False, True]])
    found = lowest(key, torch.tensor([1, 2, 3]), among)
    assert found.tolist() == [[False, True, False, False], [True, True, False, False], [True, False, False, True]]
