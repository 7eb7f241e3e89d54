"""The energy of the energy heads: an MLP of a value and of what the network says about its variable.

It is bounded, |energy| < limit, so that the tails of a density tilted by it are those of the proposal, and its
normaliser is finite whatever the weights. The part that reads the latent features is computed once for all values.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import silu
from torch.nn.utils import skip_init


class EnergyFunction(nn.Module, ABC):
    """The energy of values, given the latent features of each element."""

    limit: float
    leave: nn.Linear
    """The last layer."""

    @property
    def dtype(self) -> torch.dtype:
        """The precision in which energies are computed."""
        return self.leave.weight.dtype

    @abstractmethod
    def forward(
        self,
        values: Float[Tensor, "*batch points"],
        relative: Float[Tensor, "*batch points"],
        latent: Float[Tensor, "*batch latent"],
    ) -> Float[Tensor, "*batch points"]:
        """The energy at several points of each element; ``relative`` are the same in units of the proposal."""

    def _draw_weights(self) -> None:
        """Small uniform weights from a generator of its own, the last layer's smaller still."""
        generator = torch.Generator().manual_seed(0)
        layers = [layer for layer in self.modules() if isinstance(layer, nn.Linear)]
        with torch.no_grad():
            for layer in layers:
                reach = 1 / math.sqrt(layer.in_features)
                for parameter in layer.parameters():
                    parameter.uniform_(-reach, reach, generator=generator)
            layers[-1].weight.mul_(0.1)  # begins close to the proposal, or to an even density


class EnergyNetwork(EnergyFunction):
    """Two hidden layers of tanh; values enter as they are and relative to the proposal."""

    def __init__(self, latent: int, hidden: int, limit: float) -> None:
        super().__init__()
        self.limit = limit
        # Made without weights: torch would draw them from the random state of the whole process.
        self.read_value = skip_init(nn.Linear, 2, hidden, bias=False)
        self.read_latent = skip_init(nn.Linear, latent, hidden)
        self.middle = skip_init(nn.Linear, hidden, hidden)
        self.leave = skip_init(nn.Linear, hidden, 1, bias=False)  # a constant would cancel against the normaliser
        self._draw_weights()

    def forward(
        self,
        values: Float[Tensor, "*batch points"],
        relative: Float[Tensor, "*batch points"],
        latent: Float[Tensor, "*batch latent"],
    ) -> Float[Tensor, "*batch points"]:
        """The energy at several points of each element."""
        pair = torch.stack([values, relative], dim=-1)
        hidden = self.read_value(pair) + self.read_latent(latent)[..., None, :]
        hidden = self.middle(hidden.tanh()).tanh()
        raw: Tensor = self.leave(hidden)[..., 0]
        return self.limit * torch.tanh(raw / self.limit)


class ResidualEnergyNetwork(EnergyFunction):
    """A fully connected residual network, as in ACE: a layer in, some blocks of two layers, a layer out.

    Its bends are smooth, since quadrature is slow to settle on kinks.
    """

    def __init__(self, latent: int, hidden: int, blocks: int, limit: float) -> None:
        super().__init__()
        self.limit = limit
        self.read_value = skip_init(nn.Linear, 1, hidden, bias=False)
        self.read_latent = skip_init(nn.Linear, latent, hidden)
        self.first = nn.ModuleList(skip_init(nn.Linear, hidden, hidden) for _ in range(blocks))
        self.second = nn.ModuleList(skip_init(nn.Linear, hidden, hidden) for _ in range(blocks))
        self.leave = skip_init(nn.Linear, hidden, 1, bias=False)
        self._draw_weights()

    def forward(
        self,
        values: Float[Tensor, "*batch points"],
        relative: Float[Tensor, "*batch points"],
        latent: Float[Tensor, "*batch latent"],
    ) -> Float[Tensor, "*batch points"]:
        """The values enter as they are."""
        hidden = self.read_value(values[..., None]) + self.read_latent(latent)[..., None, :]
        for first, second in zip(self.first, self.second, strict=True):
            hidden = hidden + second(silu(first(silu(hidden))))
        raw: Tensor = self.leave(silu(hidden))[..., 0]
        return self.limit * torch.tanh(raw / self.limit)
