"""Blends whose members were made one, against the blends themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from anyorder.heads import Bernoulli, Binned, Bounded, Categorical, Energy, GaussianMixture, Head, Spiked
from anyorder.heads.binned import BinnedDistribution
from anyorder.heads.blend import Blend
from anyorder.heads.blended import BlendDistribution
from anyorder.heads.discretized_logistic_mixture import DiscretizedLogisticMixture
from anyorder.heads.merging import folded, with_fewest
from anyorder.testing import check_head
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp

LATTICE = Lattice(0.0, 1.0, None, Warp.affine(0.0, 1.5))
VALUES = np.random.default_rng(0).gamma(2.0, size=300) - 1.0
BENT = Warp.normal_scores(VALUES)
EDGES = ((-0.5, 0.25, 1.5), (-0.7, 0.25, 0.8), (0.1,))


def histograms(kind: str) -> list[Head]:
    """Three whose edges differ, but for one that two of them share."""
    soft, kind = "soft" in kind, kind.removeprefix("soft ")
    if kind == "lattice":
        points = [Binned.fit(LATTICE.at(torch.arange(9.0)).numpy(), bins, lattice=LATTICE) for bins in (3, 4, 5)]
        return [Bounded(head.blurred(0.7) if soft else head, 0.0, None) for head in points]
    blurs = (0.4, 1.0, 0.0) if soft else (0.0, 0.0, 0.0)
    bare: list[Head] = [
        Binned(edges, BENT if kind == "bent" else None, blur=blur) for edges, blur in zip(EDGES, blurs, strict=True)
    ]
    if kind == "bounded":
        return [Bounded(head, -0.6, 2.0) for head in bare]
    if kind == "spiked":
        return [Spiked((0.0, 1.0), head) for head in bare]
    return bare


WEIGHTS = (0.2, 0.3, 0.5)


def blended(members: list[Head], weights: tuple[float, ...] = WEIGHTS) -> tuple[Blend, torch.Tensor]:
    starts = np.cumsum([0, *(head.size for head in members)])
    head = Blend(tuple(members), weights, tuple(starts[:-1].tolist()))
    features = 2 * torch.randn(6, head.size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return head, features


KINDS = ["line", "bent", "bounded", "spiked", "lattice"]


@pytest.mark.parametrize("kind", [*KINDS, *(f"soft {kind}" for kind in KINDS)])
def test_is_the_mixture_of_its_members(kind: str) -> None:
    members = histograms(kind)
    head, features = blended(members)
    blend = head(features)
    together = blend.merged
    assert not isinstance(together, BlendDistribution)
    parts = [
        member(features[:, start : start + member.size]) for member, start in zip(members, head.starts, strict=True)
    ]
    inside = [-0.59, -0.5, 0.0, 0.1, 0.25, 0.3, 1.0, 1.9]
    places = LATTICE.at(torch.arange(8.0)) if "lattice" in kind else torch.tensor(inside)
    places = places.double()[:, None]

    def mean(what: str, *arguments: torch.Tensor) -> torch.Tensor:
        each = [getattr(part, what)(*arguments) for part in parts]
        return sum((weight * one for weight, one in zip(WEIGHTS, each, strict=True)), torch.zeros(()))

    density = [weight * part.log_prob(places).exp() for weight, part in zip(WEIGHTS, parts, strict=True)]
    torch.testing.assert_close(together.log_prob(places).exp(), torch.stack(density).sum(0), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(together.cdf(places), mean("cdf", places), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(together.mean(), mean("mean"), rtol=1e-6, atol=1e-6)

    levels = torch.linspace(0.01, 0.99, 25, dtype=torch.float64)[:, None]
    found = blend.quantile(levels)
    assert bool((mean("cdf", found) >= levels - 1e-9).all())
    assert bool((mean("cdf", found) - mean("mass_at", found) <= levels + 1e-9).all())
    many = head(features[:2, None].expand(-1, 4000, -1))
    surprise = -many.log_prob(many.sample(torch.Generator().manual_seed(1)))
    error = surprise.std(dim=1) / 4000**0.5
    assert bool(((blend.entropy()[:2] - surprise.mean(dim=1)).abs() < 4.5 * error + 1e-3).all())


@pytest.mark.parametrize("kind", ["line", "bent", "bounded", "lattice", "soft bent", "soft bounded"])
def test_keeps_the_contract(kind: str) -> None:
    check_head(blended(histograms(kind))[0])


def test_others_stay_as_they_are() -> None:
    members = [*histograms("line"), GaussianMixture(2), *histograms("bent")[:1]]
    head, features = blended(members, (0.1, 0.2, 0.3, 0.3, 0.1))
    together = head(features).merged
    assert isinstance(together, BlendDistribution)
    assert len(together.members) == 3  # another warp is another shape
    torch.testing.assert_close(together.log_weights.exp(), torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64))
    assert together.merged is together


def test_edges_that_hardly_differ_are_one() -> None:
    warp = Warp.affine(-3.0, 1.0)
    edges = ((-0.5, 0.1), (-0.7, float(np.nextafter(0.1, 1.0))))
    head, features = blended([Binned(own, warp) for own in edges], (0.4, 0.6))
    blend = head(features)
    assert isinstance(blend.merged, BinnedDistribution)
    assert blend.merged.bins.kinks == pytest.approx((-0.7, -0.5, 0.1), abs=1e-12)
    assert bool(blend.entropy().isfinite().all())
    torch.testing.assert_close(blend.merged.mean(), blend.mean())


def test_what_is_kept_loses_no_gradient() -> None:
    head, features = blended(histograms("line"))
    distribution = head(features.requires_grad_())
    with torch.no_grad():
        distribution.quantile(torch.tensor(0.5, dtype=torch.float64))
    distribution.entropy().sum().backward()
    assert features.grad is not None
    assert bool((features.grad != 0).any(dim=0).all())


def test_bins_are_joined_once_and_kept_by_the_head() -> None:
    head, features = blended(histograms("line"))
    first = head(features).merged
    assert first.bins is head(features[:2]).merged.bins
    assert len(head._joins) == 1


def test_a_far_lower_tail_keeps_its_digits() -> None:
    head = Binned((-1.0, 1.0))
    rare = head(torch.tensor([np.log(1e-20), 0.0, 0.0], dtype=torch.float64))
    places = torch.tensor([-30.0, -1.0 - 1e-9, -1.0, -1.0 + 1e-9], dtype=torch.float64)
    below = torch.full_like(places, -torch.inf)
    torch.testing.assert_close(rare.cdf(places).log(), rare.log_between(below, places))
    assert bool((rare.cdf(places).diff() >= 0).all())
    assert bool(rare.cdf(torch.tensor([torch.nan], dtype=torch.float64)).isnan().all())


@pytest.mark.parametrize("lattice", [None, Lattice(0.0, 1.0, None, Warp.affine(3.0, 2.0))], ids=["line", "lattice"])
def test_mixtures_of_one_family_become_one(lattice: Lattice | None) -> None:
    generator = torch.Generator().manual_seed(0)
    members = []
    for components in (3, 1, 4):
        head = GaussianMixture(components) if lattice is None else DiscretizedLogisticMixture(components, lattice)
        members.append(head(torch.randn(5, head.size, generator=generator, dtype=torch.float64)))
    log_weights = torch.randn(5, 3, generator=generator, dtype=torch.float64).log_softmax(-1)
    (merged,), left = with_fewest(members, log_weights, {})
    assert merged.logits.shape[-1] == 8
    torch.testing.assert_close(left, torch.zeros(5, 1, dtype=torch.float64))
    points = (
        torch.linspace(-3, 3, 7, dtype=torch.float64)[:, None]
        if lattice is None
        else lattice.at(torch.arange(7.0))[:, None]
    )
    weights = log_weights.exp()
    for name in ("cdf", "log_prob"):
        each = torch.stack([getattr(member, name)(points) for member in members], dim=-1)
        right = (each * weights).sum(-1) if name == "cdf" else (each + log_weights).logsumexp(-1)
        torch.testing.assert_close(getattr(merged, name)(points), right)


def test_a_bracket_holds_the_quantile() -> None:
    generator = torch.Generator().manual_seed(1)
    lattice = Lattice(0.0, 1.0, 40, Warp.affine(3.0, 2.0))
    level = torch.tensor([0.0, 1e-9, 0.05, 0.5, 0.95, 1 - 1e-9, 1.0, torch.nan], dtype=torch.float64)[:, None]
    values = torch.randn(200, generator=generator, dtype=torch.float64).numpy()
    heads = [
        GaussianMixture(4),
        DiscretizedLogisticMixture(4, lattice),
        Binned.fit(values, 8),
        Binned.fit(values, 8, lattice=lattice),
    ]
    for head in heads:
        law = head(2 * torch.randn(6, head.size, generator=generator, dtype=torch.float64))
        low, high, found = (end.clamp(-1e9, 1e9) for end in (*law.bracket(level), law.quantile(level)))
        assert bool((low.isnan() == found.isnan()).all())
        sure = ~found.isnan()
        slack = 1e-9 * found.abs().clamp(min=1)
        assert bool(((low - slack <= found) & (found <= high + slack))[sure].all()), head.name


FAMILIES: dict[str, Head] = {
    "gaussians": GaussianMixture(3),
    "cut gaussians": Bounded(GaussianMixture(3), -0.6, 1.2),
    "atoms": Spiked((0.0, 1.0), Bounded(GaussianMixture(2), -0.6, None)),
    "logistics": Bounded(DiscretizedLogisticMixture(2, LATTICE), 0.0, None),
    "levels": Categorical(4),
    "yes and no": Bernoulli(),
}


@pytest.mark.parametrize("kind", FAMILIES)
def test_equal_heads_are_folded_into_their_mixture(kind: str) -> None:
    head = FAMILIES[kind]
    features = torch.randn(6, 3, head.size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    log_weights = torch.tensor(WEIGHTS, dtype=torch.float64).log().expand(6, -1)
    together = folded(head(features), log_weights)
    assert together is not None and together.shape == (6,)
    values = torch.tensor([0.0, 1.0, 0.37, 2.0], dtype=torch.float64)[:, None]
    if together.discrete and not head.levels:
        values = LATTICE.at(torch.arange(4.0).double())[:, None]
    elif head.levels:
        values = torch.arange(float(head.levels), dtype=torch.float64)[:, None]
    each = torch.stack([head(features[:, member]).log_prob(values) for member in range(3)], dim=-1)
    expected = (each + log_weights).logsumexp(-1)
    torch.testing.assert_close(together.log_prob(values), expected, rtol=1e-9, atol=1e-9)
    reached = torch.stack([head(features[:, member]).cdf(values) for member in range(3)], dim=-1)
    torch.testing.assert_close(together.cdf(values), (reached * log_weights.exp()).sum(-1), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("low", "high"), [(-0.6, 1.2), (0.2, np.inf), (-np.inf, 0.1)])
def test_draws_and_means_inside_are_those_of_the_cut_mixture(low: float, high: float) -> None:
    features = torch.randn(9, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    law = GaussianMixture(3)(features.expand(20_000, -1))
    drawn = law.sample_within(low, high, torch.Generator().manual_seed(0))
    assert drawn.min() >= low and drawn.max() <= high
    cut = Bounded(GaussianMixture(3), *(None if np.isinf(end) else end for end in (low, high)))(features[None])
    assert stats.kstest(drawn.numpy(), lambda at: cut.cdf(torch.as_tensor(at)).numpy()).pvalue > 1e-4
    found = cut.expect(torch.sin)
    grid = torch.linspace(max(low, -40.0), min(high, 40.0), 400_001, dtype=torch.float64)
    exact = torch.trapezoid((cut.log_prob(grid[:, None])[:, 0].exp() * grid.sin()), grid)
    torch.testing.assert_close(found[0], exact, rtol=0, atol=1e-4)


def member_laws(members: list[Head]) -> None:
    """What rows of all members say together is what each member says of its own."""
    head, _ = blended(members, (1 / len(members),) * len(members))
    width = max(one.size for one in members)
    features = torch.randn(12, width, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    member = torch.tensor([2, 0, 1, 1, 2, 0, 2, 2, 1, 0, 0, 1])
    seen = torch.zeros(12, dtype=torch.bool)
    for rows, law in head.by_member(member, features):
        seen[rows] = True
        for position, row in enumerate(rows.tolist()):
            alone = head.member(int(member[row]), features[row : row + 1])
            value = alone.quantile(torch.tensor([0.3], dtype=torch.float64))
            together, apart = law.log_prob(value.expand(len(rows)))[position], alone.log_prob(value)[0]
            torch.testing.assert_close(together, apart, rtol=1e-6, atol=1e-6)
            level = law.cdf(value.expand(len(rows)))[position]
            torch.testing.assert_close(level, alone.cdf(value)[0], rtol=0, atol=1e-6)
    assert bool(seen.all())


@pytest.mark.parametrize("kind", [*KINDS, *(f"soft {kind}" for kind in KINDS)])
def test_rows_of_several_histograms_are_one_batch(kind: str) -> None:
    members = histograms(kind)
    member_laws(members)
    head, features = blended(members)
    for member in range(3):  # also where some of them have no rows, there is one set of joined bins
        head.by_member(torch.full((6,), member), features)
    assert len(head._joins) == 1
    assert len(head.by_member(torch.arange(6) % 3, features)) == 1


def test_heads_with_weights_of_their_own_are_not_taken_for_each_other() -> None:
    members: list[Head] = []
    for seed in range(3):
        members.append(Energy())
        generator = torch.Generator().manual_seed(seed)
        for weight in members[-1].parameters():
            weight.data = torch.randn(weight.shape, generator=generator) / 2
    with torch.no_grad():
        member_laws(members)


@pytest.mark.parametrize("bounds", [(None, None), (-1.0, 2.5)])
def test_means_in_bent_units_are_those_of_a_fine_grid(bounds: tuple[float | None, float | None]) -> None:
    head, generator = Bounded(GaussianMixture(10), *bounds), torch.Generator().manual_seed(0)
    if bounds == (None, None):
        head = GaussianMixture(10)  # type: ignore[assignment]  # without bounds it is the family itself
    units = Warp.normal_scores(np.exp(np.random.default_rng(1).normal(size=300)))
    for _ in range(10):
        law = head(torch.randn(1, head.size, generator=generator, dtype=torch.float64) / 2)
        low, high = (30.0 * sign if end is None else end for sign, end in zip((-1, 1), bounds, strict=True))
        grid = torch.linspace(low, high, 400_001, dtype=torch.float64)
        density = law.log_prob(grid[:, None])[:, 0].exp()
        exact = torch.trapezoid(density * units.inverse(grid).clamp(-50, 50), grid)
        found = law.expect(lambda z: units.inverse(z).clamp(-50, 50))[0]
        torch.testing.assert_close(found, exact, rtol=0, atol=5e-3)


def test_the_lower_tail_of_a_cut_law_keeps_its_digits() -> None:
    features = torch.tensor([[0.0, 0.0, 0.0]])
    with torch.no_grad():
        law = Bounded(GaussianMixture(1), 2.0, None)(features)
        value = torch.tensor([2.0 + 1e-6], dtype=torch.float64)
        exact = stats.norm.pdf(2.0) * 1e-6 / stats.norm.sf(2.0)
        assert float(law.cdf(value)[0]) == pytest.approx(exact, rel=1e-3)


def test_rows_of_mixtures_of_several_sizes_are_one_batch() -> None:
    lattice = Lattice(0.0, 1.0, None, Warp.affine(4.0, 2.0))
    for bounds in (False, True):
        members: list[Head] = [GaussianMixture(size) for size in (2, 5, 3)]
        member_laws([Bounded(head, -1.0) for head in members] if bounds else members)
    whole: list[Head] = [DiscretizedLogisticMixture(size, lattice=lattice) for size in (2, 5, 3)]
    member_laws(whole)
    head, features = blended(whole)
    assert len(head.by_member(torch.arange(6) % 3, features)) == 1


def test_draws_between_ends_of_each_element() -> None:
    features = torch.randn(9, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    reaches = [(-np.inf, -0.4), (-0.4, 0.9), (0.9, np.inf)]
    for head in (GaussianMixture(3), Bounded(GaussianMixture(3), -1.0, 2.0)):
        law = head(features.expand(30_000, -1))
        low, high = (torch.tensor([reach[end] for reach in reaches]).repeat(10_000).double() for end in (0, 1))
        drawn = law.sample_within(low, high, torch.Generator().manual_seed(0))
        for side, (least, most) in enumerate(reaches):
            own = drawn[side::3]
            one = head(features[None])
            below, upto = one.cdf(torch.tensor([[least], [most]], dtype=torch.float64))[:, 0].tolist()
            assert own.min() >= least and own.max() <= most
            at = ((one.cdf(own[:, None])[:, 0] - below) / (upto - below)).numpy()
            assert stats.kstest(at, "uniform").pvalue > 1e-4
