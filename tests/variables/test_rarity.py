"""The probability of all that is no more probable than a value, against integrals, sums and draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from anyorder.heads import Categorical, DiscretizedLogisticMixture, GaussianMixture
from anyorder.heads.bounded import Bounded
from anyorder.heads.spiked import Spiked
from anyorder.variables.codecs import LatticeCodec, LevelCodec, LineCodec, SpikedCodec
from anyorder.variables.schema import Kind, Variable
from anyorder.variables.warp import Warp

MODES = [0.3, -0.2, -1.5, 1.0, math.log(0.2), math.log(0.7)]
WEIGHTS = np.exp([0.3, -0.2]) / np.exp([0.3, -0.2]).sum()


def _law(head: object, features: list[float], cells: int) -> object:
    return head(torch.tensor(features, dtype=torch.float64).expand(cells, -1))  # type: ignore[operator]


def _skewed() -> Warp:
    return Warp.normal_scores(np.random.default_rng(0).lognormal(0.0, 1.0, 300))


@pytest.mark.parametrize("warp", [Warp.affine(4.0, 2.0), _skewed()], ids=["straight", "bent"])
def test_two_modes_and_the_gap_between_them_on_a_line(warp: Warp) -> None:
    """By a fine sum over the units of the data, in which a bent map has other modes than in model units."""
    codec = LineCodec(Variable("x", Kind.CONTINUOUS), warp)
    z = np.array([-2.0, -1.4, -1.0, -0.4, 0.8, 2.5, 3.2])
    found = codec.rarity(_law(GaussianMixture(2), MODES, len(z)), torch.as_tensor(z))  # type: ignore[arg-type]
    grid = np.linspace(-4.0, 6.0, 400_001)
    density = (WEIGHTS * stats.norm.pdf(grid[:, None], [-1.5, 1.0], [0.2, 0.7])).sum(axis=1)
    own = (WEIGHTS * stats.norm.pdf(z[:, None], [-1.5, 1.0], [0.2, 0.7])).sum(axis=1)
    slope, at = (np.exp(codec.log_slope(points)) for points in (grid, z))
    mass = density * (grid[1] - grid[0])
    expected = [mass[density * slope <= height].sum() for height in own * at]
    np.testing.assert_allclose(found, expected, atol=2e-5)
    if not warp.bends:
        above = mass[grid > z[3]].sum()
        assert found[3] < 0.05 < 2 * min(above, 1 - above)  # in the gap: by its tails it would not be rare


def test_draws_of_a_law_are_as_rare_as_is_uniform() -> None:
    codec = LineCodec(Variable("x", Kind.CONTINUOUS, bounds=(0.0, None)), _skewed())
    low, high = codec.ends
    head = Bounded(GaussianMixture(2), low, high, firm=False)
    law = _law(head, MODES, 2000)
    drawn = law.sample(torch.Generator().manual_seed(1))  # type: ignore[attr-defined]
    rare = codec.rarity(law, drawn.double())  # type: ignore[arg-type]
    for level in (0.01, 0.05, 0.2, 0.5, 0.8):
        assert (rare <= level).mean() == pytest.approx(level, abs=3 * math.sqrt(level * (1 - level) / 2000))


@pytest.mark.parametrize(("scale", "tolerance"), [(3.0, 1e-6), (400.0, 5e-3)])
def test_points_of_a_lattice_are_summed(scale: float, tolerance: float) -> None:
    """Neighbours exactly; of hundreds of points, those between the ones looked at by interpolation."""
    variable = Variable("n", Kind.INTEGER, dtype="int64")
    codec = LatticeCodec(variable, Warp.affine(5.0, scale), 0, 12)
    head = DiscretizedLogisticMixture(2, codec.lattice)
    features = [0.2, 0.0, -0.8, 1.0, math.log(0.2), math.log(0.4)]
    points = np.arange(-20 * int(scale), 20 * int(scale))
    each = torch.as_tensor(codec.from_measure(points.astype(float)))
    mass = _law(head, features, len(points)).log_prob(each).exp().numpy()  # type: ignore[attr-defined]
    assert mass.sum() == pytest.approx(1.0, abs=1e-6)
    x = np.rint(5 + scale * np.array([-2.0, -0.8, 0.1, 1.2, 3.0]))
    law = _law(head, features, len(x))
    found = codec.rarity(law, torch.as_tensor(codec.from_measure(x)))  # type: ignore[arg-type]
    expected = [mass[mass <= mass[points == value] * (1 + 1e-9)].sum() for value in x]
    np.testing.assert_allclose(found, expected, atol=tolerance)


def test_atoms_are_more_probable_than_what_is_beside_them() -> None:
    variable = Variable("x", Kind.SPIKED, atoms=(0.0, 2.0))
    codec = SpikedCodec(variable, LineCodec(variable, Warp.affine(0.0, 1.0)))
    head = Spiked(codec.atoms, GaussianMixture(1))
    x = np.array([0.0, 2.0, 1.0, -1.5])
    law = _law(head, [1.0, 2.0, 0.0, 0.5, 0.0], len(x))
    held = law.atom_probs()[0].numpy()  # type: ignore[attr-defined]
    lesser, greater = sorted(held)
    found = codec.rarity(law, torch.as_tensor(x))  # type: ignore[arg-type]
    assert found[int(held.argmax())] == pytest.approx(1.0, abs=1e-9)
    assert found[int(held.argmin())] == pytest.approx(1 - greater, abs=1e-9)
    rest = 1 - lesser - greater
    np.testing.assert_allclose(found[2:], rest * 2 * stats.norm.sf([0.5, 2.0]), atol=1e-6)


@pytest.mark.parametrize("kind", [Kind.CATEGORICAL, Kind.ORDINAL])
def test_levels_no_more_probable_are_added_up(kind: Kind) -> None:
    codec = LevelCodec(Variable("c", kind, levels=("a", "b", "c", "d"), dtype="str"))
    law = _law(Categorical(4), np.log([0.2, 0.4, 0.2, 0.2]).tolist(), 4)
    np.testing.assert_allclose(codec.rarity(law, torch.arange(4.0)), [0.6, 1.0, 0.6, 0.6])  # type: ignore[arg-type]
