"""The energy of the energy head: a small MLP of a value and of what the network says about its variable.

It is bounded, |energy| < limit, so that the tails of a density tilted by it are those of the proposal, and its
normaliser is finite whatever the weights. The part that reads the latent features is computed once for all values.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import skip_init


class EnergyNetwork(nn.Module):
    """Two hidden layers of tanh; values enter as they are and relative to the proposal."""

    def __init__(self, latent: int, hidden: int, limit: float) -> None:
        super().__init__()
        self.limit = limit
        # Made without weights: torch would draw them from the random state of the whole process.
        self.read_value = skip_init(nn.Linear, 2, hidden, bias=False)
        self.read_latent = skip_init(nn.Linear, latent, hidden)
        self.middle = skip_init(nn.Linear, hidden, hidden)
        self.leave = skip_init(nn.Linear, hidden, 1, bias=False)  # a constant would cancel against the normaliser
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for layer in (self.read_value, self.read_latent, self.middle, self.leave):
                reach = 1 / math.sqrt(layer.in_features)
                for parameter in layer.parameters():
                    parameter.uniform_(-reach, reach, generator=generator)
            self.leave.weight.mul_(0.1)  # begins close to the proposal

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
