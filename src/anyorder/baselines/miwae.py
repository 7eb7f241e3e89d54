"""MIWAE (Mattei and Frellsen 2019): the importance-weighted bound over the observed cells.

    log p(x_o)  >=  E [ log 1/K sum_k p(x_o, z_k) / q(z_k | x_o) ],    z_1 .. z_K ~ q(z | x_o)

It grows with K and reaches log p(x_o) in the limit; with K = 1 it is the ELBO. Cells that are missing at random leave
the product and need no other treatment. Their paper decodes to Student's t (``observation="student"``).
"""

from __future__ import annotations

import math
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from anyorder.baselines.latent import LatentModel


class MIWAE(LatentModel):
    """Maximises the log of the mean weight."""

    name: ClassVar[str] = "miwae"

    def pooled(self, log_weights: Float[Tensor, "draws rows"]) -> Float[Tensor, " rows"]:
        return log_weights.logsumexp(dim=0) - math.log(len(log_weights))
