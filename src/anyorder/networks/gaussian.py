r"""The multivariate Gaussian as a network: every conditional in closed form.

$$\mu_{i|e} = \mu_i + \Sigma_{ie}\Sigma_{ee}^{-1}(x_e - \mu_e), \qquad
\sigma^2_{i|e} = \Sigma_{ii} - \Sigma_{ie}\Sigma_{ee}^{-1}\Sigma_{ei}.$$

It is an exact oracle (every query can be checked), a baseline that needs no training, and the
expert beside a residual MLP on tables with many columns and few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.networks.base import NUMBERS_AT_ONCE, MaskNetwork

# A conditional variance never falls below this share of the marginal one, lest rounding make it negative.
LEAST_VARIANCE = 1e-6
LEAST_EIGENVALUE = 1e-12  # of a correlation matrix: below, whether it can be factored depends on the order of its rows
WORK = 2_000_000_000  # rows x variables^3 of one round of EM
CONVERGED = 1e-4
MANY, FEW = 1024, 256  # rows from which on it pays to look for those that know the same, and sets up to which it does


def conditional_moments(
    mean: Float[Tensor, " variables"],
    covariance: Float[Tensor, "variables variables"],
    values: Float[Tensor, "batch variables"],
    known: Bool[Tensor, "batch variables"],
) -> tuple[Float[Tensor, "batch variables"], Float[Tensor, "batch variables"]]:
    """Mean and standard deviation of every variable given each row's known set (a known one given itself).

    Draws of one case, or a table asked the same question, have few different sets: one factor does for all rows of one.
    """
    if len(known) >= MANY:
        sets, which, counts = known.unique(dim=0, return_inverse=True, return_counts=True)
        if 8 * len(sets) <= len(known) and len(sets) <= FEW:
            rows = which.argsort(stable=True).split(counts.tolist())
            return _moments_by_set(mean, covariance, values, sets, rows)
    location, cross = conditional_cross(mean, covariance, values, known)
    marginal = covariance.diagonal()
    variance = (marginal - cross.square().sum(dim=1)).maximum(LEAST_VARIANCE * marginal)
    return location, variance.sqrt()


def check_covariance(covariance: Float[Tensor, "variables variables"]) -> None:
    """Refuse what is no covariance, such as a file may hold: with it, some conditionals could not be computed."""
    if covariance.is_meta:
        return
    deviation = covariance.diagonal().sqrt()
    correlation = covariance / deviation / deviation[:, None]
    least = LEAST_EIGENVALUE * torch.eye(len(covariance), dtype=covariance.dtype, device=covariance.device)
    failed = int(torch.linalg.cholesky_ex(correlation.nan_to_num(nan=-1.0) - least).info)
    if failed or not torch.allclose(correlation, correlation.T):
        raise UserError("the covariance of a Gaussian must be symmetric and positive definite")


def _moments_by_set(
    mean: Tensor, covariance: Tensor, values: Tensor, sets: Tensor, members: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """The moments of rows of which each knows one of a few sets; ``members``: the rows of each."""
    location = mean.repeat(len(values), 1)
    deviation = torch.empty_like(location)
    for known, rows in zip(sets, members, strict=True):
        found, spread = moments_of_one_set(mean[None], covariance[None], values[None, rows], known)
        location[rows], deviation[rows] = found[0], spread[0].expand(len(rows), -1)
    return location, deviation


def moments_of_one_set(
    mean: Float[Tensor, "networks variables"],
    covariance: Float[Tensor, "networks variables variables"],
    values: Float[Tensor, "networks batch variables"],
    known: Bool[Tensor, " variables"],
) -> tuple[Float[Tensor, "networks batch variables"], Float[Tensor, "networks one variables"]]:
    """Mean and standard deviation of every variable under several Gaussians, for rows that know the same."""
    index, weights, deviation = regression_of_one_set(covariance, known)
    location = torch.baddbmm(mean[:, None], (values.to(mean.dtype) - mean[:, None])[..., index], weights)
    return location, deviation


def regression_of_one_set(
    covariance: Float[Tensor, "networks variables variables"], known: Bool[Tensor, " variables"]
) -> tuple[Int[Tensor, " known"], Float[Tensor, "networks known variables"], Float[Tensor, "networks one variables"]]:
    """What is known, the weights with which it says where every variable lies, and their standard deviations."""
    index = known.nonzero()[:, 0]
    right = covariance[:, index]
    weights = torch.cholesky_solve(right, torch.linalg.cholesky_ex(right[..., index]).L)
    marginal = covariance.diagonal(dim1=1, dim2=2)
    variance = (marginal - (right * weights).sum(dim=1)).maximum(LEAST_VARIANCE * marginal)
    return index, weights, variance.sqrt()[:, None]


def moments_along(
    mean: Float[Tensor, " variables"],
    covariance: Float[Tensor, "variables variables"],
    values: Float[Tensor, "batch variables"],
    path: Int[Tensor, "batch length"],
) -> tuple[Float[Tensor, "batch length variables"], Float[Tensor, "batch length variables"]]:
    """The moments of every variable before each position of a path, from *one* Cholesky factor a row.

    The factor of the covariance in path order holds the factors of all its prefixes, so what is known after t
    variables is a sum over the first t rows of L^-1. Padded positions (-1) add nothing.
    """
    real = path >= 0
    index = path.clamp(min=0)
    inside = real.to(covariance.dtype)
    right = covariance[index] * inside[:, :, None]  # [batch, length, variables]
    block = right.gather(2, index[:, None, :].expand(-1, path.shape[1], -1)) * inside[:, None, :]
    factor = torch.linalg.cholesky(block + torch.diag_embed(1 - inside))
    centred = (values.to(covariance.dtype) - mean).gather(1, index).where(real, 0.0)
    solved = torch.linalg.solve_triangular(factor, torch.cat([right, centred[:, :, None]], dim=2), upper=False)
    cross, residual = solved[:, :, :-1], solved[:, :, -1:]
    learned, explained = (_sum_before(part) for part in (cross * residual, cross.square()))
    marginal = covariance.diagonal()
    location = mean + learned
    variance = (marginal - explained).maximum(LEAST_VARIANCE * marginal)
    return location, variance.sqrt()


def beyond_context(
    mean: Float[Tensor, " variables"],
    covariance: Float[Tensor, "variables variables"],
    values: Float[Tensor, "batch variables"],
    context: Bool[Tensor, " variables"],
) -> tuple[Float[Tensor, "rest rest"], Float[Tensor, "batch rest"]]:
    r"""The covariance of the rest given a context that all rows know, and its mean in each row.

    $\Sigma_{r|c} = \Sigma_{rr} - \Sigma_{rc}\Sigma_{cc}^{-1}\Sigma_{cr}$ is the same for all rows. So one factor of the
    context does for all, and what else a row knows is a matter of the rest alone, which may be small.
    """
    rest = ~context
    across = covariance[context][:, rest]
    weights = torch.cholesky_solve(across, torch.linalg.cholesky(covariance[context][:, context]))
    left = covariance[rest][:, rest] - across.T @ weights
    least = LEAST_VARIANCE * covariance.diagonal()[rest]
    left = (left + left.T) / 2 + (least - left.diagonal()).clamp(min=0).diag()
    centred = values[:, context].to(mean.dtype) - mean[context]
    return left, mean[rest] + centred @ weights


def _sum_before(terms: Tensor) -> Tensor:
    # Shifted, not subtracted: subtracting a position's own term again would leave its rounding behind, a leak of sorts.
    return torch.cat([torch.zeros_like(terms[:, :1]), terms[:, :-1].cumsum(dim=1)], dim=1)


def conditional_cross(
    mean: Float[Tensor, " variables"],
    covariance: Float[Tensor, "variables variables"],
    values: Float[Tensor, "batch variables"],
    known: Bool[Tensor, "batch variables"],
) -> tuple[Float[Tensor, "batch variables"], Float[Tensor, "batch variables variables"]]:
    """The conditional mean, and L^-1 Sigma_{known, all} for the Cholesky factor L of each row's known block."""
    inside = known.to(covariance.dtype)
    # The covariance of the known block, with an identity for the rest: one Cholesky for ragged sets.
    block = covariance * inside[:, :, None] * inside[:, None, :] + torch.diag_embed(1 - inside)
    factor = torch.linalg.cholesky(block)
    centred = (values.to(covariance.dtype) - mean).where(known, 0.0)
    right = torch.cat([covariance * inside[:, :, None], centred[:, :, None]], dim=2)
    solved = torch.linalg.solve_triangular(factor, right, upper=False)
    cross, residual = solved[:, :, :-1], solved[:, :, -1:]
    return mean + (cross * residual).sum(dim=1), cross


def fit_moments(
    values: Float[Tensor, "rows variables"],
    observed: Bool[Tensor, "rows variables"],
    *,
    rounds: int = 25,
) -> tuple[Float[Tensor, " variables"], Float[Tensor, "variables variables"]]:
    """Mean and covariance by maximum likelihood under missing cells (EM), with a little shrinkage.

    The covariance is pulled towards its diagonal by variables / (rows + variables) / 5, so that it stays
    well-conditioned on short tables. Wide tables are fitted on as many of their first rows as some seconds allow.
    """
    variables = values.shape[1]
    most = max(500, min(20_000, WORK // variables**3))
    values, observed = values[:most].double(), observed[:most]
    rows = len(values)
    count = observed.sum(dim=0)
    mean = values.where(observed, 0.0).sum(dim=0) / count.clamp(min=1)
    spread = (values - mean).where(observed, 0.0).square().sum(dim=0) / count.clamp(min=1) + 1e-6
    covariance = spread.where(count > 1, 1.0).diag()
    shrink = variables / (rows + variables) / 5
    for _ in range(1 if bool(observed.all()) else rounds):
        before = covariance
        filled, uncertainty = _expected(mean, covariance, values, observed)
        mean = filled.mean(dim=0)
        centred = filled - mean
        covariance = (centred.T @ centred + uncertainty) / rows
        covariance = (1 - shrink) * covariance + (shrink * covariance.diagonal() + 1e-6).diag()
        if (covariance - before).abs().max() < CONVERGED * covariance.diagonal().max():
            break
    return mean, covariance


def _expected(mean: Tensor, covariance: Tensor, values: Tensor, observed: Tensor) -> tuple[Tensor, Tensor]:
    """The E step: filled values, and the sum over rows of the covariance of what was filled."""
    few = 2 * (~observed).sum(dim=1) <= len(mean)
    filled = torch.empty_like(values)
    filled[few], uncertainty = _expected_few(mean, covariance, values[few], observed[few])
    for part in (~few).nonzero()[:, 0].split(max(1, NUMBERS_AT_ONCE // covariance.numel())):
        known = observed[part]
        location, cross = conditional_cross(mean, covariance, values[part], known)
        filled[part] = torch.where(known, values[part], location)
        absent = (~known).to(covariance.dtype)
        # cov(absent | present) = cov - cross^T cross on the absent block of each row, summed over rows.
        left = torch.einsum("bi,bj->ij", absent, absent) * covariance
        cross = cross * absent[:, None, :]
        uncertainty += left - torch.einsum("bki,bkj->ij", cross, cross)
    return filled, uncertainty


def _expected_few(mean: Tensor, covariance: Tensor, values: Tensor, observed: Tensor) -> tuple[Tensor, Tensor]:
    """The E step where few cells of each row are absent: with the precision Q, their covariance is the inverse of Q_aa.

    A factor is then no larger than the most cells that a row lacks, and with none of them nothing is left to do.
    """
    precision = torch.cholesky_inverse(torch.linalg.cholesky(covariance))
    most = int((~observed).sum(dim=1).max()) if len(observed) else 0
    filled, uncertainty = values.clone(), torch.zeros_like(covariance)
    for part in torch.arange(len(values)).split(max(1, NUMBERS_AT_ONCE // max(most**2, len(mean)))):
        absent = ~observed[part]
        index = absent.int().argsort(dim=1, descending=True, stable=True)[:, :most]
        inside = absent.gather(1, index).to(covariance.dtype)
        both = inside[:, :, None] * inside[:, None, :]
        block = precision[index[:, :, None], index[:, None, :]] * both + torch.diag_embed(1 - inside)
        factor = torch.linalg.cholesky(block)
        centred = (values[part] - mean).where(~absent, 0.0)
        pull = (centred @ precision).gather(1, index) * inside
        there = mean[index] - torch.cholesky_solve(pull[:, :, None], factor)[:, :, 0]
        filled[part] = filled[part].scatter(1, index, torch.where(inside > 0, there, values[part].gather(1, index)))
        spread = torch.cholesky_inverse(factor) * both
        uncertainty.index_put_((index[:, :, None], index[:, None, :]), spread, accumulate=True)
    return filled, uncertainty


@dataclass(eq=False)
class GaussianNetwork(MaskNetwork):
    """A closed-form Gaussian over real variables, answering with features of the Gaussian head."""

    name: ClassVar[str] = "gaussian"
    trainable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        variables = self.layout.variables
        self.mean: Tensor
        self.covariance: Tensor
        self.register_buffer("mean", torch.zeros(variables, dtype=torch.float64))
        self.register_buffer("covariance", torch.eye(variables, dtype=torch.float64))

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        check_covariance(self.covariance)

    def set_moments(self, mean: Float[Tensor, " variables"], covariance: Float[Tensor, "variables variables"]) -> None:
        """Use these moments, as from :func:`fit_moments`."""
        self.mean.copy_(mean)
        self.covariance.copy_(covariance)

    def prepare(self, values: Float[Tensor, "rows variables"], observed: Bool[Tensor, "rows variables"]) -> None:
        self.set_moments(*fit_moments(values, observed))

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        location, deviation = conditional_moments(self.mean, self.covariance, values, known)
        return torch.stack([location, deviation.log()], dim=-1).to(values.dtype)
