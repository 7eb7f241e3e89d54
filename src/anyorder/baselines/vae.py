"""The variational autoencoder (Kingma and Welling 2014), on rows with holes.

    log p(x_o)  >=  E_q(z | x_o) [ log p(x_o | z) + log p(z) - log q(z | x_o) ]    (the ELBO over the observed cells)

SFARM trains its VAE on complete rows and asks it about incomplete ones: so does ``Schedule(hide="none")``.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.baselines.latent import LatentModel


class VAE(LatentModel):
    """Maximises the mean of the log weights."""

    name: ClassVar[str] = "vae"

    def bound(
        self,
        values: Float[Tensor, "rows variables"],
        observed: Bool[Tensor, "rows variables"],
        draws: int,
        generator: torch.Generator,
    ) -> Float[Tensor, " rows"]:
        return self.log_weights(values, observed, draws, generator).mean(dim=0)
