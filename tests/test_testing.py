"""The contract checks pass what is right and catch what is wrong."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from anyorder.heads import Bernoulli, Categorical, DiscretizedLogisticMixture, Gaussian, GaussianMixture, Head
from anyorder.heads.gaussian import GaussianDistribution
from anyorder.protocols import Canonical, Hashed, Protocol, Random
from anyorder.query import Chain, Query
from anyorder.testing import check_head, check_protocol
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp

LATTICE = Lattice(0.0, 1.0, None, Warp.affine(10.0, 4.0))


@pytest.mark.parametrize(
    "head",
    [Bernoulli(), Categorical(5), Gaussian(), GaussianMixture(3), DiscretizedLogisticMixture(3, LATTICE)],
    ids=lambda head: head.name,
)
def test_heads(head: Head) -> None:
    check_head(head)


@pytest.mark.parametrize("protocol", [Canonical(), Canonical(stride=4), Random(), Hashed()], ids=repr)
def test_protocols(protocol: Protocol) -> None:
    check_protocol(protocol)


class TooMuch(GaussianDistribution):
    def log_prob(self, value):  # type: ignore[no-untyped-def]
        return super().log_prob(value) + 0.01


@dataclass(eq=False)
class Unnormalised(Gaussian):
    def forward(self, features):  # type: ignore[no-untyped-def]
        return TooMuch(features[..., 0], features[..., 1])


def test_an_unnormalised_head_is_caught() -> None:
    with pytest.raises(AssertionError, match="add up to"):
        check_head(Unnormalised())


@dataclass(frozen=True)
class Forgetful(Canonical):
    def chain(self, query: Query, generator: torch.Generator | None = None) -> Chain:
        chain = super().chain(query, generator)
        return Chain(chain.prefix, chain.order[:, :-1], chain.variables)


def test_a_protocol_that_forgets_a_variable_is_caught() -> None:
    with pytest.raises(AssertionError, match="not the asked set"):
        check_protocol(Forgetful())
