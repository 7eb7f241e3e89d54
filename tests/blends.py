"""Blends of every kind of member whose law has a curve, with bounds and factors and on lattices."""

from __future__ import annotations

import numpy as np

from anyorder.heads.base import Head
from anyorder.heads.binned import Binned
from anyorder.heads.blend import Blend
from anyorder.heads.bounded import Bounded
from anyorder.heads.discretized_logistic_mixture import DiscretizedLogisticMixture
from anyorder.heads.gaussian_mixture import GaussianMixture
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp

WARP = Warp.normal_scores(np.random.default_rng(0).gamma(2.0, size=200))
LATTICE = Lattice(0.0, 1.0, None, Warp.affine(4.0, 2.0))
SHORT = Lattice(0.0, 1.0, 12, Warp.affine(4.0, 2.0))


def blend(members: list[Head], ends: tuple[float, ...] = (), beyond: tuple[float, ...] = ()) -> Blend:
    starts = np.cumsum([0, *(head.size for head in members)]).tolist()
    weights = np.random.default_rng(1).dirichlet(np.ones(len(members)))
    gates = tuple(starts[-1] + number for number in range(len(members)))
    return Blend(tuple(members), tuple(weights.tolist()), tuple(starts[:-1]), gates, ends=ends, beyond=beyond)


def numbers(low: float | None = None, high: float | None = None) -> list[Head]:
    mixtures = [GaussianMixture(4, reach=8.0), GaussianMixture(4, reach=8.0), GaussianMixture(2)]
    bins = [Binned((-1.0, 0.0, 1.0), WARP, blur=0.3), Binned((-0.5, 0.4), WARP, blur=0.3)]
    every: list[Head] = [*mixtures, *bins]
    return every if low is None and high is None else [Bounded(head, low, high, firm=False) for head in every]


def points(lattice: Lattice) -> list[Head]:
    each = [DiscretizedLogisticMixture(3, lattice=lattice) for _ in range(2)]
    return [*each, Binned((-1.0, 0.0, 1.0), None, lattice), Binned((-0.5, 0.5), None, lattice)]


HEADS = {
    "numbers": blend(numbers()),
    "numbers with factors": blend(numbers(), (-1.2, 1.4), (0.4, 3.0)),
    "bounded": blend(numbers(-1.0, 2.5)),
    "bounded with factors": blend(numbers(-1.0), (-0.8, 1.4), (2.0, 0.3)),
    "ends at the bounds": blend(numbers(-1.0, 2.0), (-1.5, 2.5), (2.0, 0.3)),
    "whole numbers": blend(points(LATTICE)),
    "whole numbers with factors": blend(points(LATTICE), (-1.25, 1.25), (0.5, 2.0)),
    "whole numbers with an end": blend(points(SHORT), (-1.75, 1.25), (0.5, 2.0)),
    "mixtures alone": blend(numbers()[:3], (-1.2, 1.4), (0.4, 3.0)),
    "histograms alone": blend(numbers()[3:], (-1.2, 1.4), (0.4, 3.0)),
}
