"""Factors on what lies beyond the ends, against sums, integrals and draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.cut import Cut
from anyorder.distributions.region import Interval
from anyorder.errors import UserError
from anyorder.heads import (
    Binned,
    Bounded,
    Categorical,
    DiscretizedLogisticMixture,
    GaussianMixture,
    Head,
    Spiked,
    heads,
)
from anyorder.heads.bank import HeadBank
from anyorder.heads.blend import Blend
from anyorder.support.registry import describe
from anyorder.testing import check_head
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp

LATTICE = Lattice(0.0, 1.0, None, Warp.affine(4.0, 2.0))
# The last two members are alike, so that they are folded into one.
MEMBERS: dict[str, tuple[Head, ...]] = {
    "line": (Binned(), GaussianMixture(3), GaussianMixture(3)),
    "lattice": (Binned(lattice=LATTICE), *(DiscretizedLogisticMixture(2, LATTICE) for _ in range(2))),
    "bounded": (Bounded(Binned(), -1.0, None), *(Bounded(GaussianMixture(2), -1.0, None) for _ in range(2))),
    "spiked": (Spiked((0.0,), Binned()), *(Spiked((0.0,), GaussianMixture(2)) for _ in range(2))),
    "alone": (GaussianMixture(3),),
    "folded": (Bounded(GaussianMixture(2), -1.0, None), Bounded(GaussianMixture(2), -1.0, None)),
}
SHARES = {1: (1.0,), 2: (0.4, 0.6), 3: (0.3, 0.5, 0.2)}
ENDS = (-0.75, 0.75)  # on the lattice, half way between two points
FACTORS = ((0.1, 2.5), (0.001, 1.0), (1.0, 0.3))


def blend(members: tuple[Head, ...], factors: tuple[float, float] | None) -> Blend:
    starts = np.cumsum([0, *(head.size for head in members)]).tolist()
    gates = tuple(starts[-1] + number for number in range(len(members)))
    extra = () if factors is None else (0.0, 0, ENDS, factors)
    return Blend(members, SHARES[len(members)], tuple(starts[:-1]), gates, *extra)


def features_of(head: Head, rows: int = 4) -> Tensor:
    return torch.randn(rows, head.size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def factor(value: Tensor, factors: tuple[float, float]) -> Tensor:
    below, above = (torch.tensor(one, dtype=torch.float64) for one in factors)
    return torch.where(value < ENDS[0], below, torch.where(value > ENDS[1], above, 1.0))


def points_of(law: Distribution) -> tuple[Tensor, Tensor]:
    """Values and weights of a sum over a lattice, or of a fine rule on a line that is split at the ends."""
    if law.discrete:
        points = LATTICE.at(torch.arange(-400, 400, dtype=torch.float64))[:, None]
        return points, torch.ones_like(points)
    nodes, weights = np.polynomial.legendre.leggauss(8)
    edges = np.unique(np.concatenate([np.linspace(-200, 200, 40_001), ENDS]))
    half = np.diff(edges)[:, None] / 2
    values = (edges[:-1, None] + half * (1 + nodes)).ravel()
    return torch.tensor(values)[:, None], torch.tensor((half * weights).ravel())[:, None]


@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("kind", MEMBERS)
def test_is_the_sum_of_members_that_are_changed_one_by_one(kind: str, factors: tuple[float, float]) -> None:
    members = MEMBERS[kind]
    head = blend(members, factors)
    features = features_of(head)
    law = head(features)
    value = torch.tensor([[-2.0], [-0.5], [0.0], [0.5], [1.5], [3.0]], dtype=torch.float64)
    weights = head.weights_for(features).exp()
    expected = torch.zeros(len(value), len(features), dtype=torch.float64)
    for number, (member, start) in enumerate(zip(members, head.starts, strict=True)):
        own = member(features[:, start : start + member.size])
        points, rule = points_of(own)
        density = (own.log_prob(points).exp() * rule) * factor(points, factors)
        total = density.sum(0)
        for atom in (0.0,) if kind == "spiked" else ():
            total = total + own.mass_at(torch.full((1, 1), atom, dtype=torch.float64))[0]
        expected += weights[:, number] * own.log_prob(value).exp() * factor(value, factors) / total
    torch.testing.assert_close(law.log_prob(value).exp(), expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("kind", MEMBERS)
def test_probabilities_means_and_entropies_are_those_of_the_density(kind: str, factors: tuple[float, float]) -> None:
    head = blend(MEMBERS[kind], factors)
    law = head(features_of(head))
    points, rule = points_of(law)
    log_density = law.log_prob(points).double()
    mass = (rule * log_density.exp()).masked_fill(log_density == -math.inf, 0.0)
    atom = torch.zeros(1, len(law.log_prob(points)[0]), dtype=torch.float64)
    jump = law.mass_at(atom)[0] if kind == "spiked" else torch.zeros(1, dtype=torch.float64)
    torch.testing.assert_close(mass.sum(0) + jump, torch.ones_like(mass[0]), rtol=0, atol=1e-7)
    for at in (-1.25, -0.75, 0.25, 0.75, 2.25):
        reached = (mass * (points <= at)).sum(0) + jump * (at >= 0)
        torch.testing.assert_close(law.cdf(torch.full_like(atom, at))[0], reached, rtol=0, atol=1e-6)
    for low, high in ((-2.25, -1.25), (-1.25, 0.25), (0.25, 0.5), (0.25, 3.25), (1.25, 3.25), (-9.75, 9.75)):
        held = (mass * ((points >= low) & (points <= high))).sum(0) + jump * (low <= 0 <= high)
        between = law.log_between(torch.full_like(atom, low), torch.full_like(atom, high))[0].exp()
        torch.testing.assert_close(between, held, rtol=1e-5, atol=1e-9)
    for low, high in (ENDS, (-1.25, 1.25)):
        beyond = torch.stack([(mass * (points < low)).sum(0), (mass * (points > high)).sum(0)])
        torch.testing.assert_close(law.outside(low, high), beyond, rtol=0, atol=1e-7)
    mean = (mass * points).sum(0)
    torch.testing.assert_close(law.mean(), mean, rtol=0, atol=1e-5)
    smooth = (mass * (points / 2).tanh()).sum(0)
    torch.testing.assert_close(law.expect(lambda x: (x / 2).tanh()), smooth, rtol=0, atol=1e-5)
    surprise = -(mass * log_density.clamp(min=-1e9)).sum(0) - torch.special.xlogy(jump, jump)
    torch.testing.assert_close(law.entropy(), surprise, rtol=0, atol=2e-3)
    cut = Cut(law, Interval(-1.25, 1.25, -1.25, 1.25))
    inside = (points >= -1.25) & (points <= 1.25)
    torch.testing.assert_close(
        cut.mean(), (mass * points * inside).sum(0) / ((mass * inside).sum(0) + jump), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("kind", MEMBERS)
def test_quantiles_are_the_least_values_that_reach_the_level(kind: str, factors: tuple[float, float]) -> None:
    head = blend(MEMBERS[kind], factors)
    law = head(features_of(head))
    levels = torch.cat([torch.linspace(0.001, 0.999, 301), torch.tensor([1e-6, 1 - 1e-6])]).double()[:, None]
    values = law.quantile(levels)
    assert bool((law.cdf(values) >= levels - 1e-9).all())
    assert bool((law.cdf(values) - law.mass_at(values) <= levels + 1e-9).all())
    low, high = law.bracket(levels)
    assert bool((low <= values + 1e-9).all() and (values <= high + 1e-9).all())


@pytest.mark.parametrize("kind", [kind for kind in MEMBERS if kind != "spiked"])
def test_keeps_the_contract(kind: str) -> None:
    check_head(blend(MEMBERS[kind], (0.2, 2.0)))


def agrees(drawn: Tensor, law: Distribution) -> float:
    """The p-value of draws of one distribution."""
    if not law.discrete:
        at_atom = law.mass_at(torch.zeros(1, 1, dtype=torch.float64)) > 0
        value = drawn[drawn != 0] if bool(at_atom) else drawn
        hole = float(law.mass_at(torch.zeros(1, 1, dtype=torch.float64)))
        level = law.cdf(value.double()[:, None])[:, 0] - hole * (value > 0)
        return float(stats.kstest((level / (1 - hole)).numpy(), "uniform").pvalue)
    index = LATTICE.index(drawn.double()).clamp(-2, 12).long()
    counts = torch.bincount(index + 2, minlength=15).double()
    edges = LATTICE.at(torch.arange(-2, 12, dtype=torch.float64))[:, None]
    reached = torch.cat([torch.zeros(1), law.cdf(edges)[:, 0], torch.ones(1)]).double()
    share = reached.diff()
    kept = share * len(drawn) > 1
    wanted = share[kept] / share[kept].sum() * counts[kept].sum()
    return float(stats.chisquare(counts[kept].numpy(), wanted.numpy()).pvalue)


@pytest.mark.parametrize("factors", [(0.1, 2.5), (3.0, 0.3)])
@pytest.mark.parametrize("kind", MEMBERS)
def test_draws_follow_the_cdf_of_the_blend_and_of_its_members(kind: str, factors: tuple[float, float]) -> None:
    head = blend(MEMBERS[kind], factors)
    bank = HeadBank([head])
    features = features_of(head, 1)
    law, count = head(features), 20_000
    many = features.expand(count, -1)
    generator = torch.Generator().manual_seed(1)
    assert agrees(head(many).sample(generator), law) > 1e-3
    # Each from one member: all rows of one question, and one member after the other.
    member = bank.members_of(0, count, generator, features)
    starts = torch.tensor(head.starts)[member][:, None] + torch.arange(max(one.size for one in head.members))
    own = many.gather(1, starts.clamp(max=head.size - 1))
    assert agrees(bank.sample_members(0, member, own, generator), law) > 1e-3
    variable = torch.zeros(count, dtype=torch.long)
    member = bank.member_at(variable, generator, many)
    drawn = torch.zeros(count, dtype=torch.float64)
    for number in range(len(head.members)):
        here = (member == number).nonzero()[:, 0]
        said = bank.sample_member_at(number, own_features(head, number, many[here]), variable[here], generator)
        drawn[here] = said.double()
    assert agrees(drawn, law) > 1e-3


def own_features(head: Blend, number: int, features: Tensor) -> Tensor:
    return features[:, head.starts[number] :]


def test_factors_of_one_change_nothing() -> None:
    members = MEMBERS["line"]
    plain, changed = blend(members, None), blend(members, (1.0, 1.0))
    features, value = features_of(plain), torch.linspace(-2, 2, 4, dtype=torch.float64)
    torch.testing.assert_close(plain(features).log_prob(value), changed(features).log_prob(value))


def test_is_described_and_built_again() -> None:
    head = blend(MEMBERS["line"], (0.1, 2.5))
    again = heads.build(describe(head))
    features = features_of(head)
    value = torch.linspace(-2, 2, 4, dtype=torch.float64)
    assert torch.equal(head(features).log_prob(value), again(features).log_prob(value))
    assert not {"ends", "beyond"} & set(describe(blend(MEMBERS["line"], None)))


def test_some_of_the_members_keep_the_factors() -> None:
    head = blend(MEMBERS["line"], (0.1, 2.5))
    one = head.only([1], [member.size for member in head.members])
    assert (one.ends, one.beyond) == (head.ends, head.beyond)


@pytest.mark.parametrize(
    ("ends", "factors"),
    [
        *[((0.0,), (1.0, 1.0)), ((0.0, 1.0), ()), ((1.0, 0.0), (1.0, 1.0)), ((0.0, math.inf), (1.0, 1.0))],
        *[((0.0, 1.0), (0.0, 1.0)), ((0.0, 1.0), (1.0, math.nan)), (("a", "b"), (1.0, 1.0))],
    ],
)
def test_ends_and_factors_must_make_sense(ends: object, factors: object) -> None:
    with pytest.raises(UserError, match="ends"):
        Blend((GaussianMixture(2),), (1.0,), (0,), (), 0.0, 0, ends, factors)  # type: ignore[arg-type]


def test_levels_have_no_ends() -> None:
    with pytest.raises(UserError, match="blend of numbers"):
        Blend((Categorical(3),), (1.0,), (0,), (), 0.0, 0, (0.0, 1.0), (1.0, 0.5))
