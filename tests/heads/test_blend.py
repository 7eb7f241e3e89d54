"""Blends of heads against sums done by hand."""

from __future__ import annotations

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
from anyorder.heads.blend import Blend
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


def gated(pair: tuple[Head, Head], temperatures: tuple[float, ...] = ()) -> Blend:
    size = pair[0].size + pair[1].size
    return Blend(pair, (0.3, 0.7), (0, pair[0].size), (size + 1, size), temperatures)


@pytest.mark.parametrize("pair", [name for name in PAIRS if name != "spiked"])
def test_with_gates_it_keeps_the_contract(pair: str) -> None:
    check_head(gated(PAIRS[pair]))


@pytest.mark.parametrize("pair", PAIRS)
def test_gates_are_added_to_the_logarithms_of_the_weights(pair: str) -> None:
    head = gated(PAIRS[pair])
    features = torch.randn(5, head.size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    first, second = PAIRS[pair]
    one, other = first(features[:, : first.size]), second(features[:, first.size : first.size + second.size])
    shares = torch.stack([0.3 * features[:, -1].exp(), 0.7 * features[:, -2].exp()])
    share = shares[0] / shares.sum(0)
    value = torch.tensor([0.0, 1.0, 2.0, 0.0, 3.0], dtype=torch.float64)
    together = head(features)
    expected = share * one.log_prob(value).exp() + (1 - share) * other.log_prob(value).exp()
    torch.testing.assert_close(together.log_prob(value).exp(), expected)
    torch.testing.assert_close(together.mean(), share * one.mean() + (1 - share) * other.mean())
    # What is merged for quantiles and entropies is the same distribution.
    levels = torch.linspace(0.05, 0.95, 7, dtype=torch.float64)[:, None]
    quantiles = together.quantile(levels)
    assert bool((together.cdf(quantiles) >= levels - 1e-9).all())
    assert bool((together.cdf(quantiles) - together.mass_at(quantiles) <= levels + 1e-9).all())


@pytest.mark.parametrize("pair", ["line", "lattice", "levels", "spiked"])
def test_entropy_with_gates_by_many_draws(pair: str) -> None:
    head = gated(PAIRS[pair])
    features = torch.randn(2, head.size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    many = head(features[:, None].expand(-1, 40_000, -1))
    nats = -many.log_prob(many.sample(torch.Generator().manual_seed(1)))
    error = nats.std(dim=1) / 200
    assert bool(((nats.mean(dim=1) - head(features).entropy()).abs() < 4 * error + 0.01).all())


def test_gates_of_zero_leave_the_weights_as_they_are() -> None:
    features = torch.randn(4, gated(PAIRS["line"]).size, dtype=torch.float64)
    features[:, -2:] = 0
    one, other = PAIRS["line"]
    fixed = Blend((one, other), (0.3, 0.7), (0, one.size))
    value = torch.linspace(-2, 2, 4, dtype=torch.float64)
    torch.testing.assert_close(gated(PAIRS["line"])(features).log_prob(value), fixed(features).log_prob(value))


def test_levels_are_tempered_member_by_member() -> None:
    head = gated(PAIRS["levels"], (2.0, 1.0))
    features = torch.randn(3, head.size, dtype=torch.float64)
    features[:, -2:] = 0
    expected = 0.3 * (features[:, :4] / 2).softmax(-1) + 0.7 * features[:, 4:8].softmax(-1)
    codes = torch.arange(4, dtype=torch.float64)[:, None]
    torch.testing.assert_close(head(features).log_prob(codes).exp().T, expected)


@pytest.mark.parametrize("extra", [((8,), ()), ((8, -1), ()), ((8, 9), (1.0,)), ((8, 9), (1.0, 0.0))])
def test_gates_and_temperatures_must_make_sense(extra: tuple[tuple[int, ...], tuple[float, ...]]) -> None:
    with pytest.raises(UserError, match=r"gates|temperatures"):
        Blend(PAIRS["levels"], (0.3, 0.7), (0, 4), *extra)


def test_without_gates_it_is_described_as_before() -> None:
    assert set(describe(blend(PAIRS["levels"]))) == {"name", "members", "weights", "starts"}
