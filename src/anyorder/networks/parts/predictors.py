r"""Linear predictors of which only some inputs are known, under a joint Gaussian of the inputs.

$$\eta_r = w_r^\top x + b_r, \qquad x_u \mid x_e \sim N(m, V) \implies
\eta_r \mid x_e \sim N\big(w_{re}^\top x_e + w_{ru}^\top m + b_r,\; w_{ru}^\top V\, w_{ru}\big).$$

With all inputs known the variance is zero and the mean is the regression's own; with none it is that of the data.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.networks.base import NUMBERS_AT_ONCE
from anyorder.networks.gaussian import conditional_cross

MANY_A_SET = 4  # rows of one known set from which on each set is worth a factor of its own


def predictor_moments(
    mean: Float[Tensor, " inputs"],
    covariance: Float[Tensor, "inputs inputs"],
    weight: Float[Tensor, "predictors inputs"],
    values: Float[Tensor, "batch inputs"],
    known: Bool[Tensor, "batch inputs"],
) -> tuple[Float[Tensor, "batch predictors"], Float[Tensor, "batch predictors"]]:
    """Mean and variance of every predictor (its intercept left out) given each row's known inputs."""
    if len(known) == 1:
        return _of_one_set(mean, covariance, weight, values, known[0])
    sets, which, counts = known.unique(dim=0, return_inverse=True, return_counts=True)
    if len(known) >= MANY_A_SET * len(sets):
        location = values.new_empty(len(values), len(weight))
        variance = torch.empty_like(location)
        for own, rows in zip(sets, which.argsort(stable=True).split(counts.tolist()), strict=True):
            location[rows], variance[rows] = _of_one_set(mean, covariance, weight, values[rows], own)
        return location, variance
    size = max(1, NUMBERS_AT_ONCE // (weight.shape[1] * (weight.shape[0] + weight.shape[1])))
    parts = [
        _of_each(mean, covariance, weight, values[part], known[part])
        for part in torch.arange(len(values), device=values.device).split(size)
    ]
    location, variance = (torch.cat(each) for each in zip(*parts, strict=True))
    return location, variance


def predictors_of_one_set(
    mean: Float[Tensor, "networks inputs"],
    covariance: Float[Tensor, "networks inputs inputs"],
    weight: Float[Tensor, "networks predictors inputs"],
    values: Float[Tensor, "networks batch inputs"],
    known: Bool[Tensor, " inputs"],
) -> tuple[Float[Tensor, "networks batch predictors"], Float[Tensor, "networks one predictors"]]:
    """For rows that know the same inputs: one factor a network, and weights for the known inputs alone."""
    index, constant, effective, variance = regression_of_one_set(mean, covariance, weight, known)
    return torch.baddbmm(constant, (values - mean[:, None])[..., index], effective), variance


def regression_of_one_set(
    mean: Float[Tensor, "networks inputs"],
    covariance: Float[Tensor, "networks inputs inputs"],
    weight: Float[Tensor, "networks predictors inputs"],
    known: Bool[Tensor, " inputs"],
) -> tuple[
    Int[Tensor, " known"],
    Float[Tensor, "networks one predictors"],
    Float[Tensor, "networks known predictors"],
    Float[Tensor, "networks one predictors"],
]:
    """What is known; what every predictor then is: a constant and weights of that, less its mean; and its variance."""
    index = known.nonzero()[:, 0]
    own = weight.where(~known, 0.0)
    spread = own @ covariance  # the covariance of the unknown part of every predictor with every input
    factor = torch.linalg.cholesky_ex(covariance[:, index[:, None], index]).L
    cross = torch.linalg.solve_triangular(factor, spread[..., index].mT, upper=False)
    effective = weight[..., index].mT + torch.linalg.solve_triangular(factor.mT, cross, upper=True)
    variance = (spread * own).sum(dim=2) - cross.square().sum(dim=1)
    return index, mean[:, None] @ weight.mT, effective, variance.clamp(min=0)[:, None]


def _of_one_set(
    mean: Tensor, covariance: Tensor, weight: Tensor, values: Tensor, known: Bool[Tensor, " inputs"]
) -> tuple[Tensor, Tensor]:
    location, variance = predictors_of_one_set(mean[None], covariance[None], weight[None], values[None], known)
    return location[0], variance[0].expand(len(values), -1)


def _of_each(mean: Tensor, covariance: Tensor, weight: Tensor, values: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """For rows of which each knows something else."""
    expected, cross = conditional_cross(mean, covariance, values, known)
    location = torch.where(known, values, expected) @ weight.T
    own = weight * (~known)[:, None, :]  # [batch, predictors, inputs]
    spread = (own @ covariance * own).sum(dim=2)
    learned = (cross @ own.transpose(1, 2)).square().sum(dim=1)
    return location, (spread - learned).clamp(min=0)
