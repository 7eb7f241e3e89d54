"""The variational autoencoder (Kingma and Welling 2014), on rows with holes.

    log p(x_o)  >=  E_q(z | x_o) [ log p(x_o | z) + log p(z) - log q(z | x_o) ]    (the ELBO over the observed cells)

SFARM trains its VAE on complete rows and asks it about incomplete ones: so does ``Schedule(hide="none")``.
"""

from __future__ import annotations

from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from anyorder.baselines.latent import LatentModel


class VAE(LatentModel):
    """Maximises the mean of the log weights."""

    name: ClassVar[str] = "vae"

    def pooled(self, log_weights: Float[Tensor, "draws rows"]) -> Float[Tensor, " rows"]:
        return log_weights.mean(dim=0)
