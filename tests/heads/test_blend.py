"""Blends of heads against sums done by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from anyorder.errors import UserError
from anyorder.heads import (
    Binned,
    Bounded,
    Categorical,
    DiscretizedLogisticMixture,
    Gaussian,
    GaussianMixture,
    Head,
    Spiked,
    heads,
)
from anyorder.heads.blend import Blend, blend_weights
from anyorder.support.registry import describe
from anyorder.testing import check_head
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp

LATTICE = Lattice(0.0, 1.0, None, Warp.affine(4.0, 2.0))


PAIRS: dict[str, tuple[Head, Head]] = {
    "line": (GaussianMixture(3), Binned()),
    "lattice": (DiscretizedLogisticMixture(2, LATTICE), Binned(lattice=LATTICE)),
    "levels": (Categorical(4), Categorical(4)),
    "bounded": (Bounded(GaussianMixture(2), -1.0, None), Bounded(Binned(), -1.0, None)),
    "spiked": (Spiked((0.0,), GaussianMixture(2)), Spiked((0.0,), Binned())),
}


def blend(pair: tuple[Head, Head]) -> Blend:
    return Blend(pair, (0.3, 0.7), (0, pair[0].size + 1))


@pytest.mark.parametrize("pair", [name for name in PAIRS if name != "spiked"])
def test_keeps_the_contract(pair: str) -> None:
    check_head(blend(PAIRS[pair]))


@pytest.mark.parametrize("pair", PAIRS)
def test_is_the_weighted_sum_of_its_members(pair: str) -> None:
    head = blend(PAIRS[pair])
    features = torch.randn(5, head.size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    first, second = PAIRS[pair]
    one, other = first(features[:, : first.size]), second(features[:, first.size + 1 :])
    value = torch.tensor([0.0, 1.0, 2.0, 0.0, 3.0], dtype=torch.float64)
    together = head(features)
    expected = 0.3 * one.log_prob(value).exp() + 0.7 * other.log_prob(value).exp()
    torch.testing.assert_close(together.log_prob(value).exp(), expected)
    torch.testing.assert_close(together.cdf(value), 0.3 * one.cdf(value) + 0.7 * other.cdf(value))
    torch.testing.assert_close(together.mean(), 0.3 * one.mean() + 0.7 * other.mean())


@pytest.mark.parametrize("pair", PAIRS)
def test_quantiles_are_the_least_values_that_reach_the_level(pair: str) -> None:
    head = blend(PAIRS[pair])
    features = torch.randn(3, head.size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    distribution = head(features)
    levels = torch.linspace(0.001, 0.999, 301, dtype=torch.float64)[:, None]
    values = distribution.quantile(levels)
    assert bool((distribution.cdf(values) >= levels - 1e-9).all())
    below = distribution.cdf(values) - distribution.mass_at(values)
    assert bool((below <= levels + 1e-9).all())
    if pair == "spiked":  # every level of the jump leads to the atom itself, bit by bit
        atom = torch.zeros(3, dtype=torch.float64)
        high, mass = distribution.cdf(atom), distribution.mass_at(atom)
        middle = distribution.quantile(high - mass / 2)
        assert torch.equal(middle, atom)


def test_entropy_of_levels_by_hand() -> None:
    head = blend(PAIRS["levels"])
    features = torch.randn(3, head.size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mass = 0.3 * features[:, :4].softmax(-1) + 0.7 * features[:, 5:].softmax(-1)
    torch.testing.assert_close(head(features).entropy(), -(mass * mass.log()).sum(-1))


@pytest.mark.parametrize("pair", ["line", "bounded", "lattice", "spiked"])
def test_entropy_by_many_draws(pair: str) -> None:
    head = blend(PAIRS[pair])
    features = torch.randn(2, head.size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    many = head(features[:, None].expand(-1, 40_000, -1))
    nats = -many.log_prob(many.sample(torch.Generator().manual_seed(1)))
    error = nats.std(dim=1) / 200
    assert bool(((nats.mean(dim=1) - head(features).entropy()).abs() < 4 * error + 0.01).all())


def test_is_described_and_built_again() -> None:
    head = blend(PAIRS["lattice"])
    again = heads.build(describe(head))
    features = torch.randn(3, head.size, dtype=torch.float64)
    assert torch.equal(head(features).mean(), again(features).mean())


def test_weights_must_be_shares() -> None:
    with pytest.raises(UserError, match="add up to one"):
        Blend((Gaussian(), Gaussian()), (0.5, 0.6), (0, 2))


@pytest.mark.parametrize("start", [-1, 0.5, True, None])
def test_members_begin_at_whole_numbers(start: object) -> None:
    with pytest.raises(UserError, match="starts must be a whole number, 0 or more"):
        Blend((Gaussian(), Gaussian()), (0.5, 0.5), (0, start))  # type: ignore[arg-type]


def test_weights_find_the_mixture_that_made_the_cells() -> None:
    generator = np.random.default_rng(0)
    first = generator.random(20_000) < 0.3
    x = np.where(first, generator.normal(-1, 1, 20_000), generator.normal(2, 0.5, 20_000))
    log_probs = np.stack([-0.5 * (x + 1) ** 2, -0.5 * ((x - 2) / 0.5) ** 2 - np.log(0.5)])
    weights = blend_weights(log_probs, np.array([0.5, 0.5]), 1.0)
    np.testing.assert_allclose(weights, [0.3, 0.7], atol=0.01)
    # A strong prior holds them back.
    np.testing.assert_allclose(blend_weights(log_probs, np.array([0.9, 0.1]), 1e9), [0.9, 0.1], atol=1e-3)
