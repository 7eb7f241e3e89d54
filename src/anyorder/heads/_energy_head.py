"""What the energy heads share: features for the energy and for its proposal, and how the density is normalised.

``latent`` features that the energy reads come first, then three for each of the proposal's ``components``.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.errors import UserError, nearest
from anyorder.heads._energy_distribution import EnergyDistribution
from anyorder.heads._energy_network import EnergyFunction
from anyorder.heads._mixture import bounded, broad
from anyorder.heads.base import Head
from anyorder.heads.gaussian_mixture import GaussianMixtureDistribution

MOST_DRAWS = 1_000_000  # of the importance normaliser: a thousand times what it needs
NORMALISERS = ("quadrature", "importance")


class EnergyHead(Head):
    """A head with an energy and a mixture proposal. A final one gives these options their defaults and a network."""

    alone: ClassVar[bool] = False
    """Whether the proposal is no factor of the density, and only says where to look."""

    components: int
    latent: int
    hidden: int
    limit: float
    normaliser: str
    draws: int
    evaluation_draws: int

    network: EnergyFunction
    passes: Tensor

    def __post_init__(self) -> None:
        if self.normaliser not in NORMALISERS:
            raise UserError(f"unknown normaliser {self.normaliser!r}; {nearest(self.normaliser, NORMALISERS)}")
        for option in ("components", "latent", "hidden", "limit", "draws", "evaluation_draws"):
            self._check_positive(option)
        if max(self.draws, self.evaluation_draws) > MOST_DRAWS:
            most = max(self.draws, self.evaluation_draws)
            raise UserError(f"an energy head takes {MOST_DRAWS} draws at most, got {most}")
        self.register_buffer("passes", torch.zeros((), dtype=torch.int64))  # fresh draws in every pass of training

    def _check_positive(self, option: str) -> None:
        if not getattr(self, option) > 0:
            raise UserError(f"an energy head needs {option} above 0, got {getattr(self, option)!r}")

    @property
    def size(self) -> int:
        return self.latent + 3 * self.components

    @property
    def locations(self) -> tuple[int, ...]:
        return tuple(range(self.latent + self.components, self.latent + 2 * self.components))

    @property
    def log_scales(self) -> tuple[int, ...]:
        return tuple(range(self.latent + 2 * self.components, self.size))

    def forward(self, features: Float[Tensor, "*batch size"]) -> EnergyDistribution:
        latent, mixture = features.split([self.latent, 3 * self.components], dim=-1)
        logits, means, log_scales = mixture.chunk(3, dim=-1)
        proposal = GaussianMixtureDistribution(logits, means, bounded(log_scales))
        draws = 0
        if self.normaliser == "importance":
            draws = self.draws if self.training else self.evaluation_draws
            if self.training:
                self.passes += 1
        seed = int(self.passes) if self.training else 0
        fine = not self.training
        return EnergyDistribution(proposal, latent, self.network, draws, seed, fine=fine, alone=self.alone)

    def start(self) -> Float[Tensor, " size"]:
        return torch.cat([torch.zeros(self.latent), broad(self.components, deviation=1.0)])
