"""The induced distribution against its exact law: every query, every order and every stop enumerated."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import comb, factorial
from typing import Literal

import pytest
import torch
from scipy import stats

from anyorder.errors import UserError
from anyorder.masking import (
    Bernoulli,
    Cardinality,
    Conditional,
    KnownContext,
    Masking,
    Mixture,
    Observed,
    Targets,
    Uniform,
)
from anyorder.protocols import Canonical, Hashed, Protocol, Random
from anyorder.query import Query
from anyorder.training.induced import Induced, Known, edge_weights

Set = frozenset[int]
Law = dict[tuple[Set, Set], float]
"""(evidence, asked) -> probability."""
Edges = dict[tuple[int, Set], float]
"""(next, known) -> probability."""

N = 4
DRAWS = 40_000
SUBSETS = [frozenset(c) for size in range(N + 1) for c in itertools.combinations(range(N), size)]
NOTHING: Set = frozenset()

CARD: Law = {(NOTHING, u): 1 / N / comb(N, len(u)) for u in SUBSETS if u}
BERNOULLI: Law = {(NOTHING, u): 0.3 ** len(u) * 0.7 ** (N - len(u)) for u in SUBSETS}
CONDITIONAL: Law = {(e, frozenset(range(N)) - e): 1 / N / comb(N, len(e)) for e in SUBSETS if len(e) < N}
SKEWED: Law = {(NOTHING, frozenset({0, 3})): 0.5, (NOTHING, NOTHING): 0.2, (NOTHING, frozenset({0, 1, 2, 3})): 0.3}
MIXED: Law = {query: 0.5 * CARD.get(query, 0) + 0.5 * CONDITIONAL.get(query, 0) for query in CARD | CONDITIONAL}

MASKINGS: dict[str, tuple[Masking, Law]] = {
    "cardinality": (Cardinality(), CARD),
    "bernoulli": (Bernoulli(0.3), BERNOULLI),
    "conditional": (Conditional(Cardinality(least=0, spare=1)), CONDITIONAL),
    "skewed": (Observed(((1, 0, 0, 1), (0, 0, 0, 0), (1, 1, 1, 1)), (5, 2, 3)), SKEWED),
    "mixed": (Mixture((Cardinality(), Conditional(Cardinality(least=0, spare=1))), (1, 1)), MIXED),
}


def orders(protocol: Protocol, asked: Set) -> Iterator[tuple[tuple[int, ...], float]]:
    """All orders in which the asked variables may be answered, with their probabilities."""
    if isinstance(protocol, Random):
        for order in itertools.permutations(sorted(asked)):
            yield order, 1 / factorial(len(asked))
    elif isinstance(protocol, Canonical) and protocol.order is not None:
        yield tuple(sorted(asked, key=protocol.order.index)), 1.0
    elif isinstance(protocol, Canonical):
        yield tuple(sorted(asked)), 1.0
    else:  # a fixed order per set that has no simpler description; test_protocols.py checks it
        mask = torch.tensor([[i in asked for i in range(N)]])
        yield tuple(protocol.chain(Query.marginal(mask)).order[0].tolist()), 1.0


def exact(law: Law, protocol: Protocol, reweight: bool, prefix: str, present: Set | None = None) -> Edges:
    """The distribution over edges, by definition."""
    edges: Counter[tuple[int, Set]] = Counter()
    for (evidence, asked), chance in law.items():
        if present is not None:
            evidence, asked = evidence & present, asked & present
        for order, share in orders(protocol, asked):
            for stop, target in enumerate(order):
                known = evidence | set(order[:stop])
                weight = 1.0 if prefix == "visits" else 1 / len(order)
                edges[target, known] += chance * share * weight * (1 + len(known) if reweight else 1)  # type: ignore[assignment]
    total = sum(edges.values())
    return {edge: weight / total for edge, weight in edges.items()}


def tally(drawn: Known) -> Counter[tuple[int, Set]]:
    codes = (drawn.known.long() << torch.arange(drawn.known.shape[1])).sum(dim=1).tolist()
    found = Counter(zip(drawn.next.tolist(), codes, strict=True))
    return Counter(
        {(target, frozenset(i for i in range(N) if code >> i & 1)): count for (target, code), count in found.items()}
    )


def follows(found: Counter[tuple[int, Set]], law: Edges) -> bool:
    if set(found) - set(law) or len(law) == 1:  # a chi-squared test of one cell says nothing
        return not set(found) - set(law)
    draws = sum(found.values())
    expected = [draws * chance for chance in law.values()]
    return bool(stats.chisquare([found[edge] for edge in law], expected).pvalue > 1e-3)


@pytest.mark.parametrize("prefix", ["uniform", "visits"])
@pytest.mark.parametrize("reweight", [False, True], ids=["plain", "reweighted"])
@pytest.mark.parametrize("protocol", [Random(), Canonical(), Canonical(order=(2, 0, 3, 1)), Hashed(3)], ids=repr)
@pytest.mark.parametrize("which", list(MASKINGS))
def test_draws_follow_the_enumerated_law(
    which: str, protocol: Protocol, reweight: bool, prefix: Literal["uniform", "visits"]
) -> None:
    masking, queries = MASKINGS[which]
    induced = Induced(masking, protocol, reweight=reweight, prefix=prefix)
    law = exact(queries, protocol, reweight, prefix)
    assert follows(tally(induced.draw(DRAWS, N, torch.Generator().manual_seed(0))), law)


CONTEXT, REST, WHOLE = (1, 4), (0, 2, 3, 5), N + 2


def without_context(drawn: Known) -> Known:
    """Edges about the rest alone, counted from 0."""
    assert bool(drawn.known[:, CONTEXT].all())
    place = torch.full((WHOLE + 1,), -1)
    place[list(REST)] = torch.arange(N)
    return Known(drawn.known[:, REST], place[drawn.next])


@pytest.mark.parametrize("prefix", ["uniform", "visits"])
@pytest.mark.parametrize("reweight", [False, True], ids=["plain", "reweighted"])
@pytest.mark.parametrize("protocol", [Random(), Canonical(), Canonical(order=(5, 1, 3, 4, 0, 2))], ids=repr)
@pytest.mark.parametrize("which", list(MASKINGS))
def test_known_context_leaves_the_law_about_the_rest_as_it_is(
    which: str, protocol: Protocol, reweight: bool, prefix: Literal["uniform", "visits"]
) -> None:
    masking, queries = MASKINGS[which]
    induced = Induced(KnownContext(masking, CONTEXT), protocol, reweight=reweight, prefix=prefix)
    among_rest: Protocol = protocol
    if isinstance(protocol, Canonical) and protocol.order is not None:
        among_rest = Canonical(order=tuple(REST.index(i) for i in protocol.order if i in REST))
    law = exact(queries, among_rest, reweight, prefix)
    drawn = induced.draw(DRAWS, WHOLE, torch.Generator().manual_seed(0))
    assert follows(tally(without_context(drawn)), law)
    assert induced.is_exact(WHOLE) == Induced(masking, among_rest, reweight=reweight, prefix=prefix).is_exact(N)


def test_holes_of_context_and_of_the_rest() -> None:
    observed = torch.tensor([[True, False, True, True, True, False]]).expand(DRAWS, -1)
    induced = Induced(KnownContext(Cardinality(), CONTEXT), Canonical(), reweight=True)
    drawn = induced.draw(DRAWS, WHOLE, torch.Generator().manual_seed(0), observed)
    assert not bool((drawn.known & ~observed).any())
    assert bool(drawn.known[:, 4].all())
    law = exact(CARD, Canonical(), True, "uniform", present=frozenset({0, 1, 2}))
    rest = torch.full((WHOLE + 1,), -1)
    rest[list(REST)] = torch.arange(N)
    assert follows(tally(Known(drawn.known[:, REST], rest[drawn.next])), law)


def test_edge_weights_beside_context_are_those_of_the_rest() -> None:
    order = Canonical(order=(5, 1, 3, 4, 0, 2))
    induced = Induced(KnownContext(Cardinality(), CONTEXT), order, reweight=False, prefix="visits")
    known = induced.draw(200, WHOLE, torch.Generator().manual_seed(1)).known
    found = edge_weights(known, order, CONTEXT)
    alone = edge_weights(known[:, REST], Canonical(order=(3, 2, 0, 1)))  # 5, 3, 0, 2 among the rest
    assert torch.equal(found[:, REST], alone) and not bool(found[:, CONTEXT].any())


def test_the_laws_differ_enough_for_the_test_above_to_fail() -> None:
    drawn = tally(Induced(Cardinality(), Canonical()).draw(DRAWS, N, torch.Generator().manual_seed(0)))
    assert follows(drawn, exact(CARD, Canonical(), True, "uniform"))
    assert not follows(drawn, exact(CARD, Canonical(), False, "uniform"))
    assert not follows(drawn, exact(CARD, Canonical(), True, "visits"))
    assert not follows(drawn, exact(CARD, Random(), True, "uniform"))


@pytest.mark.parametrize("prefix", ["uniform", "visits"])
@pytest.mark.parametrize("reweight", [False, True], ids=["plain", "reweighted"])
@pytest.mark.parametrize("which", ["cardinality", "conditional"])
def test_missing_cells_are_never_known_and_never_next(
    which: str, reweight: bool, prefix: Literal["uniform", "visits"]
) -> None:
    masking, queries = MASKINGS[which]
    patterns = [frozenset({0, 1, 3}), frozenset({2}), frozenset({1, 2})]
    rows = torch.tensor([[i in pattern for i in range(N)] for pattern in patterns] + [[False] * N])
    induced = Induced(masking, Canonical(), reweight=reweight, prefix=prefix)
    drawn = induced.draw(4 * DRAWS, N, torch.Generator().manual_seed(1), observed=rows.repeat(DRAWS, 1))
    for number, pattern in enumerate(patterns):
        part = Known(drawn.known[number::4], drawn.next[number::4])
        assert follows(tally(part), exact(queries, Canonical(), reweight, prefix, present=pattern))
    assert drawn.next[3::4].unique().tolist() == [-1]
    assert not drawn.known[3::4].any()


def test_exactness_is_known() -> None:
    card, conditional = MASKINGS["cardinality"][0], MASKINGS["conditional"][0]
    assert Induced(card, Canonical()).is_exact(N)
    assert Induced(card, Random(), prefix="visits").is_exact(N)
    assert Induced(Mixture((card, Uniform()), (1, 1)), Canonical()).is_exact(N)
    assert not Induced(conditional, Canonical()).is_exact(N)
    assert Induced(conditional, Canonical(), reweight=False).is_exact(N)
    assert not Induced(conditional, Canonical(), reweight=False, prefix="visits").is_exact(N)


def test_unsettled_rows_fall_back_to_importance_resampling() -> None:
    # One proposal a row is the plain law, with no reweighting left in it; a handful comes close to the reweighted one.
    masking, queries = MASKINGS["skewed"]
    induced = Induced(masking, Canonical(), prefix="visits", resample=1)
    first = tally(induced.draw(DRAWS, N, torch.Generator().manual_seed(2)))
    assert first.pop((-1, NOTHING)) / DRAWS == pytest.approx(0.2, abs=0.01)
    assert not follows(first, exact(queries, Canonical(), True, "visits"))
    several = tally(replace(induced, resample=30).draw(DRAWS, N, torch.Generator().manual_seed(2)))
    law = exact(queries, Canonical(), True, "visits")
    assert max(abs(several[edge] / DRAWS - chance) for edge, chance in law.items()) < 0.01


def test_small_weights_in_a_large_table_are_still_reweighted() -> None:
    # Weights 1 and 2 against a bound of 200: nearly no proposal is accepted, so resampling does the work.
    variables = 200
    patterns = tuple(tuple(int(i < size) for i in range(variables)) for size in (1, 3))
    induced = Induced(Observed(patterns, (1, 1)), Canonical(), resample=50)
    drawn = induced.draw(8000, variables, torch.Generator().manual_seed(0))
    sizes = drawn.known.sum(dim=1).bincount(minlength=3) / 8000
    # Stops 0 | 0, 1, 2 with weights 1 | 1/3, 2/3, 3/3.
    assert sizes.tolist() == pytest.approx([4 / 9, 2 / 9, 3 / 9], abs=0.02)


@pytest.mark.parametrize("masking", [Bernoulli(0), Observed(((0, 0, 0, 0),), (1,))], ids=["by size", "by acceptance"])
@pytest.mark.parametrize("reweight", [False, True])
def test_a_masking_that_asks_nothing_gives_no_edge(masking: Masking, reweight: bool) -> None:
    drawn = Induced(masking, Canonical(), reweight=reweight).draw(7, N, torch.Generator())
    assert drawn.next.tolist() == [-1] * 7
    assert not drawn.known.any()


def test_a_missing_target_cannot_be_asked() -> None:
    observed = torch.tensor([[True, True, False, True], [True, False, True, True]])
    drawn = Induced(Targets((2,)), Canonical(), resample=3).draw(2, N, torch.Generator(), observed=observed)
    assert drawn.next.tolist() == [-1, 2]
    assert drawn.known[1].tolist() == [True, False, False, True]


def test_seed_decides_and_no_rows_is_fine() -> None:
    for masking, _ in MASKINGS.values():
        induced = Induced(masking, Random())
        one, two = (induced.draw(99, N, torch.Generator().manual_seed(8)) for _ in range(2))
        assert torch.equal(one.known, two.known)
        assert torch.equal(one.next, two.next)
        assert induced.draw(0, N, torch.Generator()).known.shape == (0, N)


def test_mistakes_are_explained() -> None:
    with pytest.raises(UserError, match="'uniform' or 'visits', got 'edges'"):
        Induced(Uniform(), Random(), prefix="edges")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="from 1 up"):
        Induced(Uniform(), Random(), resample=0)
    with pytest.raises(ValueError, match="observed must be"):
        Induced(Uniform(), Random()).draw(3, N, torch.Generator(), observed=torch.ones(2, N, dtype=torch.bool))


@pytest.mark.parametrize("order", [None, (4, 2, 0, 5, 1, 3)], ids=["lexicographic", "given"])
def test_edge_weights_are_the_frequencies_of_enumerated_paths(order: tuple[int, ...] | None) -> None:
    six = 6
    place = list(range(six)) if order is None else [order.index(i) for i in range(six)]
    visits: Counter[tuple[int, Set]] = Counter()
    for size in range(1, six + 1):
        for u in itertools.combinations(range(six), size):
            path = sorted(u, key=place.__getitem__)
            for stop, target in enumerate(path):
                visits[target, frozenset(path[:stop])] += 1 / six / comb(six, size)  # type: ignore[assignment]
    masks = torch.tensor(list(itertools.product([False, True], repeat=six)))
    weights = edge_weights(masks, Canonical(order=order))
    for mask, row in zip(masks, weights.tolist(), strict=True):
        known = frozenset(mask.nonzero().squeeze(1).tolist())
        paths = [visits[target, known] for target in range(six)]
        total = sum(paths)
        assert row == pytest.approx([weight / total if total else 0.0 for weight in paths], abs=1e-6)
    last = place.index(six - 1)
    assert torch.equal(weights.sum(dim=1) == 0, masks[:, last])


def test_edge_weights_agree_with_the_edges_that_visits_draws() -> None:
    law = exact(CARD, Canonical(), reweight=False, prefix="visits")
    for known in SUBSETS:
        mask = torch.tensor([[i in known for i in range(N)]])
        share = sum(chance for (_, e), chance in law.items() if e == known)
        expected = [law.get((target, known), 0) / share if share else 0 for target in range(N)]
        assert edge_weights(mask, Canonical())[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_edge_weights_of_an_image_are_finite() -> None:
    known = torch.zeros(3, 3072, dtype=torch.bool)
    known[1, :1500] = True
    known[2, ::2] = True
    weights = edge_weights(known, Canonical(stride=32))
    assert torch.isfinite(weights).all()
    assert weights.sum(dim=1).tolist() == pytest.approx([1, 1, 1], abs=1e-4)
    assert not weights[known].any()
