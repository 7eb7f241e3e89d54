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


def gated(pair: tuple[Head, Head], sharpness: float = 0.0) -> Blend:
    size = pair[0].size + pair[1].size
    return Blend(pair, (0.3, 0.7), (0, pair[0].size), (size + 1, size), sharpness, size + 2 if sharpness else 0)


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


@pytest.mark.parametrize("sharpness", [0.8, -0.8])
def test_a_power_of_the_mixture_of_levels_by_hand(sharpness: float) -> None:
    head = gated(PAIRS["levels"], sharpness)
    check_head(head)
    features = torch.randn(3, head.size, dtype=torch.float64)
    features[:, -3:-1] = 0
    features[:, -1] = torch.tensor([-0.5, 0.0, 0.5])  # nothing, half and all of the others known
    mixed = 0.3 * features[:, :4].softmax(-1) + 0.7 * features[:, 4:8].softmax(-1)
    power = mixed ** torch.tensor([0.0, sharpness / 2, sharpness], dtype=torch.float64).exp()[:, None]
    codes = torch.arange(4, dtype=torch.float64)[:, None]
    torch.testing.assert_close(head(features).log_prob(codes).exp().T, power / power.sum(-1, keepdim=True))


@pytest.mark.parametrize(
    ("pair", "extra"),
    [("levels", ((8,),)), ("levels", ((8, -1),)), ("levels", ((8, 9), 4.0, 10)), ("line", ((8, 9), 0.5, 10))],
)
def test_gates_and_sharpness_must_make_sense(pair: str, extra: tuple[object, ...]) -> None:
    with pytest.raises(UserError, match=r"gates|sharpness"):
        Blend(PAIRS[pair], (0.3, 0.7), (0, 4), *extra)  # type: ignore[arg-type]


def test_without_gates_it_is_described_as_before() -> None:
    assert set(describe(blend(PAIRS["levels"]))) == {"name", "members", "weights", "starts"}


def test_a_blend_may_hold_a_sharpened_one() -> None:
    inner = gated(PAIRS["levels"], 1.0)
    features = torch.randn(3, inner.size, dtype=torch.float64)
    codes = torch.arange(4, dtype=torch.float64)[:, None]
    once = inner(features).log_prob(codes).T.exp()
    outer = Blend((inner, Categorical(4)), (0.5, 0.5), (0, inner.size))
    wide = torch.cat([features, torch.zeros(3, 4, dtype=torch.float64)], dim=1)
    torch.testing.assert_close(outer(wide).log_prob(codes).exp().T, 0.5 * once + 0.5 / 4)
