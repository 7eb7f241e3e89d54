"""Heads to run a test over, with features and points for each."""

from __future__ import annotations

import torch
from torch import Tensor

from anyorder.heads import Bernoulli, Categorical, DiscretizedLogisticMixture, Gaussian, GaussianMixture, Head
from anyorder.support.registry import describe
from anyorder.variables.lattice import Lattice
from anyorder.variables.warp import Warp

CURVED = Warp((-1.0, 0.5, 2.0, 6.0), (-1.5, -0.2, 0.7, 1.5), (0.5, 0.9, 0.4, 0.15))
FINITE = Lattice(-2.0, 0.5, 17, CURVED)
ENDLESS = Lattice(0.0, 1.0, None, CURVED)
FINE = Lattice(0.0, 1e-3, None, CURVED)
CONTINUOUS: list[Head] = [Gaussian(), GaussianMixture(1), GaussianMixture(4)]
DISCRETE: list[Head] = [
    Bernoulli(),
    Categorical(5),
    DiscretizedLogisticMixture(3, FINITE),
    DiscretizedLogisticMixture(3, ENDLESS),
]
ALL = [*CONTINUOUS, *DISCRETE, DiscretizedLogisticMixture(2, FINE)]
LOCATION_SCALE = [head for head in ALL if not head.levels]


def label(head: object) -> str:
    return f"{describe(head)['name']}-{getattr(head, 'size', '')}" if isinstance(head, Head) else str(head)


def features(head: Head, *shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    noise = torch.randn(*shape, head.size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (head.start().double() + 0.7 * noise).to(dtype)


def points(head: Head, dtype: torch.dtype = torch.float64) -> Tensor:
    """Every value a discrete head can take, all but a vanishing part of an endless lattice."""
    if head.levels:
        return torch.arange(head.levels, dtype=dtype)
    assert isinstance(head, DiscretizedLogisticMixture)
    count = head.lattice.count
    index = torch.arange(count) if count is not None else torch.arange(-400, 401)
    return head.lattice.at(index.double()).to(dtype)
