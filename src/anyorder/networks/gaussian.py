r"""The multivariate Gaussian as a network: every conditional in closed form.

$$\mu_{i|e} = \mu_i + \Sigma_{ie}\Sigma_{ee}^{-1}(x_e - \mu_e), \qquad
\sigma^2_{i|e} = \Sigma_{ii} - \Sigma_{ie}\Sigma_{ee}^{-1}\Sigma_{ei}.$$

It is an exact oracle (every query can be checked), a baseline that needs no training, and the
expert beside a residual MLP on tables with many columns and few rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.networks.base import MaskNetwork

# A conditional variance never falls below this share of the marginal one, lest rounding make it negative.
LEAST_VARIANCE = 1e-6


def conditional_moments(
    mean: Float[Tensor, " variables"],
    covariance: Float[Tensor, "variables variables"],
    values: Float[Tensor, "batch variables"],
    known: Bool[Tensor, "batch variables"],
) -> tuple[Float[Tensor, "batch variables"], Float[Tensor, "batch variables"]]:
    """Mean and standard deviation of every variable given each row's known set (a known one given itself)."""
    inside = known.to(covariance.dtype)
    # The covariance of the known block, with an identity for the rest: one Cholesky for ragged sets.
    block = covariance * inside[:, :, None] * inside[:, None, :] + torch.diag_embed(1 - inside)
    factor = torch.linalg.cholesky(block)
    centred = (values.to(covariance.dtype) - mean).where(known, 0.0)
    right = torch.cat([covariance * inside[:, :, None], centred[:, :, None]], dim=2)
    solved = torch.linalg.solve_triangular(factor, right, upper=False)
    cross, residual = solved[:, :, :-1], solved[:, :, -1:]
    location = mean + (cross * residual).sum(dim=1)
    marginal = covariance.diagonal()
    variance = (marginal - cross.square().sum(dim=1)).maximum(LEAST_VARIANCE * marginal)
    return location, variance.sqrt()


def fit_moments(
    values: Float[Tensor, "rows variables"],
    observed: Bool[Tensor, "rows variables"],
    *,
    most_rows: int = 20_000,
    rounds: int = 30,
) -> tuple[Float[Tensor, " variables"], Float[Tensor, "variables variables"]]:
    """Mean and covariance by maximum likelihood under missing cells (EM), with a little shrinkage.

    The covariance is pulled towards its diagonal by variables / (rows + variables) / 5, so that it stays
    well-conditioned on short tables.
    """
    values, observed = values[:most_rows].double(), observed[:most_rows]
    rows, variables = values.shape
    count = observed.sum(dim=0).clamp(min=1)
    mean = values.where(observed, 0.0).sum(dim=0) / count
    spread = (values - mean).where(observed, 0.0).square().sum(dim=0) / count + 1e-6
    covariance = spread.diag()
    shrink = variables / (rows + variables) / 5
    for _ in range(1 if bool(observed.all()) else rounds):
        filled, uncertainty = _expected(mean, covariance, values, observed)
        mean = filled.mean(dim=0)
        centred = filled - mean
        covariance = (centred.T @ centred + uncertainty) / rows
        covariance = (1 - shrink) * covariance + (shrink * covariance.diagonal() + 1e-6).diag()
    return mean, covariance


def _expected(mean: Tensor, covariance: Tensor, values: Tensor, observed: Tensor) -> tuple[Tensor, Tensor]:
    """The E step: filled values, and the sum over rows of the covariance of what was filled."""
    filled = values.clone()
    uncertainty = torch.zeros_like(covariance)
    patterns, pattern_of = observed.unique(dim=0, return_inverse=True)
    for index, pattern in enumerate(patterns):
        rows = (pattern_of == index).nonzero()[:, 0]
        absent = (~pattern).nonzero()[:, 0]
        present = pattern.nonzero()[:, 0]
        if len(absent) == 0:
            continue
        gain = torch.linalg.solve(covariance[present][:, present], covariance[present][:, absent])
        filled[rows[:, None], absent] = mean[absent] + (values[rows][:, present] - mean[present]) @ gain
        left = covariance[absent][:, absent] - covariance[absent][:, present] @ gain
        uncertainty[absent[:, None], absent] += len(rows) * left
    return filled, uncertainty


@dataclass(eq=False)
class GaussianNetwork(MaskNetwork):
    """A closed-form Gaussian over real variables, answering with features of the Gaussian head."""

    name: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        variables = self.layout.variables
        self.mean: Tensor
        self.covariance: Tensor
        self.register_buffer("mean", torch.zeros(variables, dtype=torch.float64))
        self.register_buffer("covariance", torch.eye(variables, dtype=torch.float64))

    def set_moments(self, mean: Float[Tensor, " variables"], covariance: Float[Tensor, "variables variables"]) -> None:
        """Use these moments, as from :func:`fit_moments`."""
        self.mean.copy_(mean)
        self.covariance.copy_(covariance)

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        location, deviation = conditional_moments(self.mean, self.covariance, values, known)
        return torch.stack([location, deviation.log()], dim=-1).to(values.dtype)
