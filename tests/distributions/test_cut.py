"""Distributions cut to a region, against sums over all their points and against quadrature of another kind."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import logistic, norm

from anyorder.distributions.base import Distribution
from anyorder.distributions.cut import Cut
from anyorder.distributions.region import Interval, Points
from anyorder.heads import Head
from anyorder.heads.binned import Binned
from anyorder.heads.blend import Blend
from anyorder.heads.bounded import Bounded
from anyorder.heads.discretized_logistic_mixture import DiscretizedLogisticMixture
from anyorder.heads.gaussian import Gaussian
from anyorder.heads.gaussian_mixture import GaussianMixture
from anyorder.heads.spiked import Spiked
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp

BATCH = 3
WHOLE = Lattice(0.0, 1.0, None, Warp.affine(10.0, 5.0))


def of(head: Head, seed: int = 0) -> Distribution:
    generator = torch.Generator().manual_seed(seed)
    features = 0.6 * torch.randn(BATCH, head.size, generator=generator, dtype=torch.float64)
    return head.double()(features)


def blended(*members: Head) -> Blend:
    starts = np.cumsum([0, *(head.size for head in members)])[:-1].tolist()
    return Blend(members, tuple([1 / len(members)] * len(members)), tuple(starts))


def lattice_heads() -> dict[str, Head]:
    spiked = Spiked((float(WHOLE.at(torch.tensor(12.0))),), DiscretizedLogisticMixture(2, WHOLE))
    return {
        "logistic": DiscretizedLogisticMixture(3, WHOLE),
        "binned": Binned(lattice=WHOLE),
        "spiked": spiked,
        "blend": blended(DiscretizedLogisticMixture(2, WHOLE), Binned(lattice=WHOLE)),
    }


@pytest.mark.parametrize("name", list(lattice_heads()))
@pytest.mark.parametrize("ends", [(7, 30), (12, None), (None, 4)])
def test_a_cut_lattice_is_summed(name: str, ends: tuple[int | None, int | None]) -> None:
    head = lattice_heads()[name]
    base = of(head)
    low, high = ends
    points = torch.arange(-3000 if low is None else low, 3000 if high is None else high + 1, dtype=torch.float64)
    z = WHOLE.at(points)
    mass = base.log_prob(z[:, None].expand(-1, BATCH)).exp()
    mass = mass / mass.sum(0)
    cut = Cut(base, _between(WHOLE, low, high))
    truth = (mass * z[:, None] ** 2).sum(0)
    assert cut.expect(lambda value: value**2).tolist() == pytest.approx(truth.tolist(), rel=1e-7)
    entropy = -(mass * mass.clamp(min=1e-300).log()).sum(0)
    assert cut.entropy().tolist() == pytest.approx(entropy.tolist(), abs=1e-7)


def _between(lattice: Lattice, low: int | None, high: int | None) -> Interval:
    def at(place: float | None, end: float) -> float:
        return end if place is None else float(lattice.at(torch.tensor(place, dtype=torch.float64)))

    before, upto = None if low is None else low - 0.5, None if high is None else high + 0.5
    ends = (at(low, -math.inf), at(high, math.inf), at(before, -math.inf), at(upto, math.inf))
    return Interval(*ends)


def test_a_lattice_too_long_to_list_is_summed_in_blocks() -> None:
    lattice = Lattice(0.0, 1.0, None, Warp.affine(10.0, 20_000.0))
    base = of(DiscretizedLogisticMixture(2, lattice), seed=2)
    cut = Cut(base, _between(lattice, 7, None))
    mean, entropy, whole = torch.zeros(BATCH), torch.zeros(BATCH), torch.zeros(BATCH)
    log_mass = cut.log_mass()
    for part in torch.arange(7, 2_000_000, dtype=torch.float64).split(200_000):
        z = lattice.at(part)[:, None]
        nats = base.log_prob(z) - log_mass
        whole = whole + nats.exp().sum(0)
        mean, entropy = mean + (nats.exp() * z).sum(0), entropy - (nats.exp() * nats).sum(0)
    assert whole.tolist() == pytest.approx([1.0] * BATCH, abs=1e-9)
    assert cut.mean().tolist() == pytest.approx(mean.tolist(), rel=2e-6)
    # Which of two neighbouring points ends a block is left to rounding, and moves the error within some 1e-6.
    assert cut.entropy().tolist() == pytest.approx(entropy.tolist(), abs=5e-6)


def spiked_heads() -> dict[str, Head]:
    mixture, binned = Spiked((-0.5, 0.25, 2.0), GaussianMixture(2)), Spiked((-0.5, 0.25, 2.0), Binned())
    return {
        "mixture": mixture,
        "bounded": Spiked((-0.5, 0.25, 2.0), Bounded(GaussianMixture(2), -1.2, 3.0)),
        "binned": binned,
        "blend": blended(mixture, binned),
        "no atoms": blended(GaussianMixture(2), Binned()),
    }


@pytest.mark.parametrize("name", list(spiked_heads()))
@pytest.mark.parametrize("ends", [(-1.0, 1.5), (-0.3, None)])
def test_atoms_inside_a_cut_count_whole(name: str, ends: tuple[float, float | None]) -> None:
    base = of(spiked_heads()[name], seed=1)
    low, high = ends[0], math.inf if ends[1] is None else ends[1]
    cut = Cut(base, Interval(low, high, low, high))
    places, log_mass = _measure(base, low, min(high, 40.0), () if name == "no atoms" else (-0.5, 0.25, 2.0))
    total = log_mass.exp().sum(0)
    second = (log_mass.exp() * places**2).sum(0) / total
    assert cut.expect(lambda z: z * z).tolist() == pytest.approx(second.tolist(), rel=2e-6)
    nats = base.log_prob(places.expand(-1, BATCH)).clamp(min=-1e3) - total.log()
    entropy = -(log_mass.exp() * nats).sum(0) / total
    assert cut.entropy().tolist() == pytest.approx(entropy.tolist(), abs=5e-6)


@pytest.mark.parametrize("name", ["blend", "no atoms"])
def test_the_entropy_of_a_blend_with_steps_and_atoms(name: str) -> None:
    base = of(spiked_heads()[name], seed=1)
    places, log_mass = _measure(base, -40.0, 40.0, () if name == "no atoms" else (-0.5, 0.25, 2.0))
    assert log_mass.exp().sum(0).tolist() == pytest.approx([1.0] * BATCH, abs=1e-8)
    nats = base.log_prob(places.expand(-1, BATCH)).clamp(min=-1e3)
    assert base.entropy().tolist() == pytest.approx((-(log_mass.exp() * nats).sum(0)).tolist(), abs=2e-5)


def _measure(
    base: Distribution, low: float, high: float, atoms: tuple[float, ...]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Places and log masses: fine Gauss-Legendre panels between all edges of the bins, and the atoms."""
    edges = [low, high, -1.5, -1.2, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 3.0, *np.arange(-40.0, 40.5, 0.125)]
    edges = np.unique([edge for edge in edges if low <= edge <= high])
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = np.diff(edges)[:, None] / 2
    places = torch.as_tensor((edges[:-1, None] + half * (1 + nodes)).ravel())[:, None]
    log_mass = base.log_prob(places.expand(-1, BATCH)) + torch.as_tensor((half * weights).ravel()).log()[:, None]
    inside = torch.tensor([atom for atom in atoms if low <= atom <= high], dtype=torch.float64)[:, None]
    return torch.cat([places, inside]), torch.cat([log_mass, base.log_prob(inside.expand(-1, BATCH))])


def test_the_entropy_of_a_set_for_a_whole_batch() -> None:
    base = of(DiscretizedLogisticMixture(2, WHOLE))
    values = tuple(float(WHOLE.at(torch.tensor(float(k)))) for k in (3, 8, 9, 11))
    mass = base.log_prob(torch.tensor(values, dtype=torch.float64)[:, None]).exp()
    mass = mass / mass.sum(0)
    found = Cut(base, Points(values)).entropy()
    assert found.tolist() == pytest.approx((-(mass * mass.log()).sum(0)).tolist(), abs=1e-12)


@pytest.mark.parametrize("far", [3.0, 6.0, 8.0, 12.0, 36.0])
def test_upper_tails_keep_their_digits(far: float) -> None:
    """The mass, quantiles, cdf and mean of a normal beyond so many deviations, down to 1e-284."""
    scale = math.exp(-0.2)
    law = Gaussian()(torch.tensor([[0.3, -0.2], [5.0, 0.4]], dtype=torch.float64))
    start = 0.3 + far * scale
    region = Interval(start, math.inf, start, math.inf)
    assert float(region.log_mass(law)[0]) == pytest.approx(norm.logsf(far), abs=1e-11)
    assert float(region.log_mass(law)[1]) == pytest.approx(norm.logsf((start - 5.0) / math.exp(0.4)), abs=1e-11)
    cut, levels = Cut(law, region), np.array([1e-6, 0.1, 0.5, 0.999])
    places = 0.3 + scale * norm.isf(norm.sf(far) * (1 - levels))
    found = cut.quantile(torch.as_tensor(levels)[:, None])[:, 0].numpy()
    np.testing.assert_allclose(found, places, rtol=1e-9 if far == 3 else 1e-13)
    np.testing.assert_allclose(cut.cdf(torch.as_tensor(places)[:, None])[:, 0].numpy(), levels, rtol=1e-6)
    assert float(cut.mean()[0]) == pytest.approx(0.3 + scale * math.exp(norm.logpdf(far) - norm.logsf(far)), abs=1e-6)


def test_wrapped_upper_tails_keep_their_digits() -> None:
    """P(X > x) of a normal cut at 20 and of one with an atom at 9.5, and of whole numbers, each by its closed form."""
    features = torch.tensor([[0.3, -0.2]], dtype=torch.float64)
    line = norm(0.3, math.exp(-0.2))
    above = Interval(8.5, math.inf, 8.5, math.inf)
    assert line.sf(8.5) < 1e-20
    bounded = Bounded(Gaussian(), -1.0, 20.0)(features)
    whole = line.sf(-1.0) - line.sf(20.0)
    assert float(above.log_mass(bounded)) == pytest.approx(line.logsf(8.5) - math.log(whole), abs=1e-9)
    assert float(Interval(25.0, math.inf, 25.0, math.inf).log_mass(bounded)) == -math.inf
    weight = 1 / (1 + math.exp(50.0))
    spiked = Spiked((9.5,), Gaussian())(torch.cat([torch.tensor([[-50.0]], dtype=torch.float64), features], dim=-1))
    assert float(above.log_mass(spiked).exp()) == pytest.approx((1 - weight) * line.sf(8.5) + weight, rel=1e-9)
    counts = DiscretizedLogisticMixture(1, WHOLE)(torch.tensor([[0.0, 0.0, -1.0]], dtype=torch.float64))
    law = logistic(10 + 5 * float(counts.means[0, 0]), 5 * math.exp(float(counts.log_scales[0, 0])))
    region = _between(WHOLE, 120, None)
    assert law.sf(119.5) < 1e-20
    assert float(region.log_mass(counts)) == pytest.approx(law.logsf(119.5), abs=1e-6)
    levels = np.linspace(0.01, 0.99, 50)
    drawn = WHOLE.index(region.draw(counts, torch.as_tensor(levels)[:, None])[:, 0]).numpy()
    reached = 1 - law.sf(np.arange(120, 400) + 0.5) / law.sf(119.5)
    np.testing.assert_array_equal(drawn, 120 + np.searchsorted(reached, levels))
