"""Every masking against its stated law: all queries over a few variables enumerated, draws compared by chi-squared."""

from __future__ import annotations

import gc
import itertools
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from math import comb
from pathlib import Path

import pytest
import torch
from scipy import stats

import anyorder.masking
from anyorder.errors import UserError
from anyorder.masking import (
    Bernoulli,
    Cardinality,
    Conditional,
    Masking,
    Mixture,
    Observed,
    Targets,
    Uniform,
    Univariate,
    maskings,
)
from anyorder.masking.cardinality import masks_of_size
from anyorder.support.registry import describe

Set = frozenset[int]
Law = dict[tuple[Set, Set], float]
"""(evidence, asked) -> probability."""

N = 4
DRAWS = 40_000
EVERYTHING = frozenset(range(N))
SUBSETS = [frozenset(c) for size in range(N + 1) for c in itertools.combinations(range(N), size)]


def marginal(law: Callable[[Set], float]) -> Law:
    return {(frozenset(), u): law(u) for u in SUBSETS if law(u) > 0}


def card(least: int = 1, spare: int = 0) -> Callable[[Set], float]:
    def law(u: Set) -> float:
        return 1 / (N - spare - least + 1) / comb(N, len(u)) if least <= len(u) <= N - spare else 0.0

    return law


def bernoulli(p: float) -> Callable[[Set], float]:
    return lambda u: p ** len(u) * (1 - p) ** (N - len(u))


def conditional(evidence: Callable[[Set], float], asks: Callable[[Set], float] | None = None) -> Law:
    law: Counter[tuple[Set, Set]] = Counter()
    for e in SUBSETS:
        for a in SUBSETS if asks else [EVERYTHING]:
            law[e, a - e] += evidence(e) * (asks(a) if asks else 1.0)  # type: ignore[assignment]
    return {query: chance for query, chance in law.items() if chance > 0}


def univariate(evidence: Callable[[Set], float]) -> Law:
    law: Law = {}
    for e in SUBSETS:
        rest = EVERYTHING - e
        for asked in [frozenset({i}) for i in rest] or [frozenset()]:
            law[e, asked] = evidence(e) / max(len(rest), 1)
    return {query: chance for query, chance in law.items() if chance > 0}


def mixture(*parts: tuple[float, Law]) -> Law:
    law: Counter[tuple[Set, Set]] = Counter()
    for weight, part in parts:
        for query, chance in part.items():
            law[query] += weight * chance  # type: ignore[assignment]
    return dict(law)


PATTERNS = ((1, 1, 0, 1), (0, 1, 0, 0), (True, True, True, True), (0, 0, 0, 1))
PATTERN_LAW = {
    (frozenset(), frozenset({0, 1, 3})): 0.3,
    (frozenset(), frozenset({1})): 0.5,
    (frozenset(), EVERYTHING): 0.2,
}

CASES: list[tuple[Masking, Law]] = [
    (Cardinality(), marginal(card())),
    (Cardinality(least=0, spare=1), marginal(card(0, 1))),
    (Cardinality(least=2, spare=2), marginal(card(2, 2))),
    (Bernoulli(0.3), marginal(bernoulli(0.3))),
    (Bernoulli(0), marginal(lambda u: float(not u))),
    (Bernoulli(1), marginal(lambda u: float(u == EVERYTHING))),
    (Uniform(), marginal(lambda u: 2.0**-N)),
    (Observed(PATTERNS, (3.0, 5, 2, 0)), PATTERN_LAW),
    (Targets((2, 0)), {(frozenset({1, 3}), frozenset({0, 2})): 1.0}),
    (Conditional(Cardinality(least=0, spare=1)), conditional(card(0, 1))),
    (Conditional(Cardinality(least=0, spare=1), Bernoulli(0.4)), conditional(card(0, 1), bernoulli(0.4))),
    # Only the asked set of the inner masking matters: here variables 0 and 2 are the evidence.
    (Conditional(Targets((0, 2))), {(frozenset({0, 2}), frozenset({1, 3})): 1.0}),
    (Univariate(), univariate(card(0, 1))),
    (Univariate(Uniform()), univariate(lambda e: 2.0**-N)),
    (
        Mixture((Cardinality(), Targets((1,)), Uniform()), (2.0, 1.0, 1.0)),
        mixture(
            (0.5, marginal(card())),
            (0.25, {(EVERYTHING - {1}, frozenset({1})): 1.0}),
            (0.25, marginal(lambda u: 2.0**-N)),
        ),
    ),
]


def tally(masking: Masking, draws: int = DRAWS, seed: int = 0) -> Counter[tuple[Set, Set]]:
    query = masking.draw(draws, N, torch.Generator().manual_seed(seed))
    assert query.asked.shape == (draws, N)
    code = query.evidence.long() + 2 * query.asked.long()
    rows, counts = code.unique(dim=0, return_counts=True)
    sets = [
        (frozenset(i for i in range(N) if row[i] == 1), frozenset(i for i in range(N) if row[i] == 2))
        for row in rows.tolist()
    ]
    return Counter(dict(zip(sets, counts.tolist(), strict=True)))


@pytest.mark.parametrize("masking, law", CASES, ids=lambda case: repr(case)[:60] if isinstance(case, Masking) else "")
def test_draws_follow_the_stated_law(masking: Masking, law: Law) -> None:
    assert sum(law.values()) == pytest.approx(1)
    found = tally(masking)
    assert set(found) <= set(law)
    if len(law) > 1:
        observed = [found[query] for query in law]
        expected = [DRAWS * chance for chance in law.values()]
        assert stats.chisquare(observed, expected).pvalue > 1e-3


@pytest.mark.parametrize("masking, law", CASES, ids=lambda case: repr(case)[:60] if isinstance(case, Masking) else "")
def test_cardinalities_are_the_law_of_the_size_where_only_the_size_matters(masking: Masking, law: Law) -> None:
    sizes = masking.cardinalities(N)
    chance_of = {u: law.get((frozenset(), u), 0.0) for u in SUBSETS}
    exchangeable = sum(chance_of.values()) == pytest.approx(1) and all(
        chance_of[u] == pytest.approx(chance_of[v]) for u in SUBSETS for v in SUBSETS if len(u) == len(v)
    )
    if sizes is None:
        assert not exchangeable
    else:
        assert exchangeable
        expected = [sum(chance for u, chance in chance_of.items() if len(u) == size) for size in range(N + 1)]
        assert sizes.tolist() == pytest.approx(expected, abs=1e-12)


def test_a_mixture_of_exchangeable_maskings_is_exchangeable() -> None:
    sizes = Mixture((Cardinality(), Bernoulli(0.25)), (3.0, 1.0)).cardinalities(N)
    assert sizes is not None
    expected = [0.75 * (k > 0) / N + 0.25 * comb(N, k) * 0.25**k * 0.75 ** (N - k) for k in range(N + 1)]
    assert sizes.tolist() == pytest.approx(expected, abs=1e-12)


def test_binomial_sizes_of_an_image_do_not_overflow() -> None:
    sizes = Bernoulli(0.3).cardinalities(3072)
    assert sizes.numpy() == pytest.approx(stats.binom.pmf(range(3073), 3072, 0.3), rel=1e-8, abs=1e-300)


def test_masks_of_size_are_uniform_among_the_sets_of_that_size() -> None:
    sizes = torch.arange(N + 1).repeat_interleave(6000)
    masks = masks_of_size(sizes, N, torch.Generator().manual_seed(3))
    assert torch.equal(masks.sum(dim=1), sizes)
    for size in range(1, N):
        codes = (masks[sizes == size].long() << torch.arange(N)).sum(dim=1)
        counts = codes.bincount(minlength=2**N)
        found = [int(counts[sum(1 << i for i in u)]) for u in SUBSETS if len(u) == size]
        assert stats.chisquare(found).pvalue > 1e-3


@pytest.mark.parametrize("masking", [case[0] for case in CASES], ids=lambda masking: repr(masking)[:60])
def test_same_seed_same_queries_and_no_rows_is_fine(masking: Masking) -> None:
    one, two = (masking.draw(50, N, torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(one.asked, two.asked)
    assert torch.equal(one.evidence, two.evidence)
    assert masking.draw(0, N, torch.Generator()).asked.shape == (0, N)


@pytest.mark.parametrize("masking", [case[0] for case in CASES], ids=lambda masking: repr(masking)[:60])
def test_survives_json(masking: Masking) -> None:
    assert maskings.build(json.loads(json.dumps(describe(masking)))) == masking


def test_observed_counts_the_patterns_of_a_table() -> None:
    table = torch.tensor([[1, 0, 1]] * 2 + [[0, 0, 1]] + [[1, 1, 1]] * 4 + [[0, 1, 1]]).bool()
    assert Observed.from_observed(table) == Observed(((1, 1, 1), (1, 0, 1), (0, 0, 1), (0, 1, 1)), (4.0, 2.0, 1.0, 1.0))
    # Of the two patterns seen once the earlier row wins, though it does not sort first.
    later = table[[7, 2, 0, 1, 3, 4]]
    assert Observed.from_observed(later, most=3).patterns == ((1, 0, 1), (1, 1, 1), (0, 1, 1))


@pytest.mark.parametrize(
    "make, fault",
    [
        (lambda: Bernoulli(1.5), "0 to 1, got 1.5"),
        (lambda: Bernoulli(float("nan")), "0 to 1"),
        (lambda: Bernoulli("half"), "0 to 1, got 'half'"),  # type: ignore[arg-type]
        (lambda: Cardinality(least=-1), "least"),
        (lambda: Cardinality(spare=0.5), "spare"),  # type: ignore[arg-type]
        (lambda: Cardinality(least=3, spare=2), "least=3 and 4 variables minus spare=2"),
        (lambda: Targets(()), "at least one"),
        (lambda: Targets((1, 1)), "none twice"),
        (lambda: Targets((-1,)), "from 0 up"),
        (lambda: Targets((4,)), "target 4 does not exist.*last one is 3"),
        (lambda: Observed((), ()), "at least one pattern"),
        (lambda: Observed(((1, 0), (1,)), (1.0, 1.0)), "same number"),
        (lambda: Observed(((1, 2),), (1.0,)), "0 .missing. and 1"),
        (lambda: Observed(((1, 0),), (-1.0,)), "none below 0"),
        (lambda: Observed(((1, 0),), (1.0,)), "2 variables, the data 4"),
        (lambda: Mixture((Uniform(),), (0.0,)), "at least one above 0"),
        (lambda: Mixture((Uniform(),), (1.0, 2.0)), "1 maskings and 2 weights"),
        (lambda: Mixture(("uniform",), (1.0,)), "not a masking"),  # type: ignore[arg-type]
        (lambda: Conditional("uniform"), "must be a masking"),  # type: ignore[arg-type]
        (lambda: Conditional(Uniform(), "uniform"), "masking or None"),  # type: ignore[arg-type]
        (lambda: Observed.from_observed(torch.zeros(0, 3, dtype=torch.bool)), "at least one row"),
        (lambda: maskings.build({"name": "bernouli"}), "did you mean 'bernoulli'"),
        (lambda: maskings.build({"name": "bernoulli", "probabilty": 0.5}), "did you mean 'probability'"),
    ],
)
def test_mistakes_are_explained(make: Callable[[], Masking], fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        make().draw(2, N, torch.Generator())


DROPPED = """
from dataclasses import dataclass
from typing import ClassVar
import torch
from anyorder.masking.base import Masking
from anyorder.query import Query

@dataclass(frozen=True)
class First(Masking):
    name: ClassVar[str] = "first-few"
    count: int

    def draw(self, batch, variables, generator):
        return Query.marginal((torch.arange(variables) < self.count).expand(batch, -1))
"""


@pytest.fixture
def dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file that lies in the package while the test lasts, and leaves nothing behind."""
    (tmp_path / "dropped_masking.py").write_text(DROPPED)
    monkeypatch.setattr(anyorder.masking, "__path__", [*anyorder.masking.__path__, str(tmp_path)])
    yield
    sys.modules.pop("anyorder.masking.dropped_masking", None)
    vars(anyorder.masking).pop("dropped_masking", None)
    gc.collect()  # the class is its base's subclass until it is really gone


@pytest.mark.usefixtures("dropped")
def test_a_new_masking_is_one_new_file() -> None:
    built = maskings.build({"name": "conditional", "evidence": {"name": "first-few", "count": 2}})
    query = built.draw(1, N, torch.Generator())
    assert query.evidence.tolist() == [[True, True, False, False]]
    assert query.asked.tolist() == [[False, False, True, True]]
    assert "first-few" in maskings.names()


def test_every_masking_is_registered_and_a_dropped_one_is_gone() -> None:
    tables = [
        "bernoulli",
        "cardinality",
        "conditional",
        "known_context",
        "mixture",
        "observed",
        "targets",
        "uniform",
        "univariate",
    ]
    texts = ["spans", "stretch", "suffix", "words"]
    modes = ["random_pixels", "left_to_right", "right_to_left", "top_down", "bottom_up"]
    expected = sorted([*tables, *texts, *modes, "interior_patch", "exterior_patch", "modes"])
    assert maskings.names() == expected
