"""A masking about the variables that are no context is that masking, and the context is known besides."""

from __future__ import annotations

import pytest
import torch

from anyorder.errors import UserError
from anyorder.masking import (
    Cardinality,
    Conditional,
    KnownContext,
    LeftToRight,
    Masking,
    Targets,
    Univariate,
    maskings,
)
from anyorder.protocols import Canonical, Hashed, Protocol, Random
from anyorder.query import PAD, Query
from anyorder.support.registry import describe

CONTEXT, REST = (0, 3), [1, 2, 4, 5]


@pytest.mark.parametrize("masking", [Cardinality(), Univariate(), Conditional(Cardinality(0, 1)), Targets((1, 3))])
def test_queries_are_those_of_the_masking_inside(masking: Masking) -> None:
    values = torch.zeros(500, 6)
    alone = masking.draw(500, 4, torch.Generator().manual_seed(3))
    wrapped = KnownContext(masking, CONTEXT)
    for query in (
        wrapped.draw(500, 6, torch.Generator().manual_seed(3)),
        wrapped.draw_for(values, torch.Generator().manual_seed(3)),
    ):
        assert torch.equal(query.evidence[:, REST], alone.evidence) and torch.equal(query.asked[:, REST], alone.asked)
        assert bool(query.evidence[:, CONTEXT].all()) and not bool(query.asked[:, CONTEXT].any())


def test_stages_are_those_of_the_masking_inside() -> None:
    inner = LeftToRight(2, 2)
    wrapped = KnownContext(inner, CONTEXT)
    assert wrapped.staged and wrapped.mode_names == inner.mode_names
    alone = inner.stage(300, 4, torch.Generator().manual_seed(0))
    found = wrapped.stage(300, 6, torch.Generator().manual_seed(0))
    assert torch.equal(found.known[:, REST], alone.known) and torch.equal(found.next[:, REST], alone.next)
    assert bool(found.known[:, CONTEXT].all()) and not bool(found.next[:, CONTEXT].any())


def test_it_can_be_described_and_refuses_nonsense() -> None:
    wrapped = KnownContext(Univariate(), CONTEXT)
    assert maskings.build(describe(wrapped)) == wrapped
    for context in ((), (1, 1), (-1,)):
        with pytest.raises(UserError):
            KnownContext(Cardinality(), context)
    with pytest.raises(UserError, match="no variable 7"):
        KnownContext(Cardinality(), (7,)).draw(2, 6, torch.Generator())
    with pytest.raises(UserError, match="must be a masking"):
        KnownContext("cardinality", CONTEXT)  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", [Canonical(), Canonical(stride=2), Random(), Hashed(1)], ids=repr)
def test_context_is_read_before_all_other_evidence(protocol: Protocol) -> None:
    generator = torch.Generator().manual_seed(0)
    query = KnownContext(Conditional(Cardinality(0, 1)), CONTEXT).draw(200, 6, generator)
    observed = torch.rand(200, 6, generator=generator) < 0.8  # holes of the context too
    query = query.among(observed)
    chain = protocol.chain(query, torch.Generator().manual_seed(1), CONTEXT)
    assert torch.equal(chain.evidence, query.evidence) and torch.equal(chain.asked, query.asked)
    for row, prefix in enumerate(chain.prefix.tolist()):
        read = [index for index in prefix if index != PAD]
        count = int(query.evidence[row, CONTEXT].sum())
        assert {*read[:count]} <= {*CONTEXT} and not {*read[count:]} & {*CONTEXT}
    # The rest is read as if there were no context.
    bare = protocol.chain(
        Query(query.evidence & ~torch.tensor([i in CONTEXT for i in range(6)]), query.asked),
        torch.Generator().manual_seed(1),
    )
    assert torch.equal(bare.order, chain.order)
    for mine, alone in zip(chain.prefix.tolist(), bare.prefix.tolist(), strict=True):
        assert [i for i in mine if i != PAD and i not in CONTEXT] == [i for i in alone if i != PAD]
