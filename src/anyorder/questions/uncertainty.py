r"""How uncertain a distribution is: entropy, variance or expected error. It is what a measurement should reduce.

Each is the least expected loss of someone who acts on the distribution, so it is concave, and what several
distributions $p_r$ of weights $w_r$ are worth beside their mean $\bar p = \sum_r w_r p_r$ is never negative:

$$U(\bar p) - \sum_r w_r U(p_r) = \sum_r w_r\, d(p_r, \bar p), \qquad d \ge 0:$$

what one loses by acting on $\bar p$ where $p_r$ holds. For entropy $d$ is the Kullback-Leibler divergence.

Entropies are taken in model units: differences of them, which is all that is asked for, are the same in any units
(mutual information does not change when a variable is rescaled). Variances and errors are in the units of the data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.errors import UserError, nearest
from anyorder.model import AnyOrderModel
from anyorder.questions.cells import Cells
from anyorder.questions.particles import doubled
from anyorder.variables.schema import Kind, Variable

# Quantiles behind an expected error, one of them the median: good to 1 % of a Gaussian's, less of heavy tails.
LEVELS = 33
LEAST = 1e-300  # a probability of less is none
NOMINAL = (Kind.BOOLEAN, Kind.CATEGORICAL, Kind.ORDINAL)  # levels without distances


class Uncertainty(ABC):
    """One number for each distribution of a batch: what a good measurement makes smaller."""

    name: ClassVar[str]
    chained: ClassVar[bool] = False
    """Whether it is defined for several variables, along a chain, each given those before it."""
    symmetric: ClassVar[bool] = False
    """Whether one variable tells as much of another as that of it."""

    @abstractmethod
    def of(self, model: AnyOrderModel, distribution: Distribution, variable: int) -> Float[Tensor, " rows"]:
        """The uncertainty of each distribution."""

    def profile(
        self, cells: Cells, features: Float[Tensor, "rows width"], case: Int[Tensor, " rows"]
    ) -> Float[Tensor, "rows numbers"]:
        """Numbers of each distribution that :meth:`losses` needs, linear in the distribution: its cells, mostly."""
        return cells.probabilities(features, case)

    @abstractmethod
    def losses(
        self,
        cells: Cells,
        case: Int[Tensor, " rows"],
        own: Float[Tensor, "rows numbers"],
        mean: Float[Tensor, "rows numbers"],
    ) -> Float[Tensor, " rows"]:
        """d(p_r, mean) from both profiles, 0 or more: the loss by acting on the mean where a distribution holds."""

    @abstractmethod
    def unit(self, variable: Variable) -> str:
        """What it is counted in."""


class Entropy(Uncertainty):
    """Entropy: its expected reduction is mutual information (SFARM eq. 15), for several variables along a chain too."""

    name, chained, symmetric = "information", True, True

    def of(self, model: AnyOrderModel, distribution: Distribution, variable: int) -> Float[Tensor, " rows"]:
        return distribution.entropy().double()

    def losses(self, cells: Cells, case: Tensor, own: Tensor, mean: Tensor) -> Float[Tensor, " rows"]:
        # Where the mean has nothing no distribution in it has anything.
        ratio = own.clamp(min=LEAST).log() - mean.clamp(min=LEAST).log()
        return (own * ratio).sum(dim=1).clamp(min=0.0)

    def unit(self, variable: Variable) -> str:
        return "nats"


class Variance(Uncertainty):
    """The variance of a number; of levels without distances 1 - sum p^2, the chance that two draws differ."""

    name = "variance"

    def of(self, model: AnyOrderModel, distribution: Distribution, variable: int) -> Float[Tensor, " rows"]:
        if model.schema.variables[variable].kind in NOMINAL:
            return 1 - _probabilities(model, distribution, variable).square().sum(dim=0)
        mean = distribution.expect(lambda z: _measured(model, variable, z))
        centre = float(mean.mean())  # days since 1970 have squares that drown their spread
        square = distribution.expect(lambda z: (_measured(model, variable, z) - centre).square())
        return (square - (mean - centre).square()).clamp(min=0)

    def profile(self, cells: Cells, features: Tensor, case: Tensor) -> Float[Tensor, "rows numbers"]:
        if cells.model.schema.variables[cells.variable].kind in NOMINAL:
            return cells.probabilities(features, case)
        distribution = doubled(cells.model, features, cells.variable)
        return distribution.expect(lambda z: _measured(cells.model, cells.variable, z))[:, None]

    def losses(self, cells: Cells, case: Tensor, own: Tensor, mean: Tensor) -> Float[Tensor, " rows"]:
        return (own - mean).square().sum(dim=1)

    def unit(self, variable: Variable) -> str:
        return "chance that two draws differ" if variable.kind in NOMINAL else "squared units"


class ExpectedError(Uncertainty):
    """E|x - median| of a number; of levels without distances 1 - max p, the chance that the best guess is wrong."""

    name = "error"

    def of(self, model: AnyOrderModel, distribution: Distribution, variable: int) -> Float[Tensor, " rows"]:
        if model.schema.variables[variable].kind in NOMINAL:
            return 1 - _probabilities(model, distribution, variable).amax(dim=0)
        levels = (torch.arange(LEVELS, dtype=torch.float64) + 0.5) / LEVELS
        quantiles = distribution.quantile(levels[:, None].expand(-1, *distribution.shape)).double()
        numbers = _measured(model, variable, quantiles)
        return (numbers - numbers.median(dim=0).values).abs().mean(dim=0)

    def losses(self, cells: Cells, case: Tensor, own: Tensor, mean: Tensor) -> Float[Tensor, " rows"]:
        if cells.model.schema.variables[cells.variable].kind in NOMINAL:
            return own.amax(dim=1) - own.gather(1, mean.argmax(dim=1, keepdim=True))[:, 0]
        lost = torch.zeros(len(own), dtype=torch.float64)
        for number, middles in enumerate(cells.middles):
            here = case == number
            # Whoever acts names the middle of a cell; for each, the expected distance to the value.
            apart = (middles[:, None] - middles).abs()
            expected, chosen = own[here] @ apart, (mean[here] @ apart).argmin(dim=1, keepdim=True)
            lost[here] = (expected.gather(1, chosen)[:, 0] - expected.amin(dim=1)).clamp(min=0.0)
        return lost

    def unit(self, variable: Variable) -> str:
        return "chance of a wrong guess" if variable.kind in NOMINAL else "units"


UNCERTAINTIES: dict[str, Uncertainty] = {one.name: one for one in (Entropy(), Variance(), ExpectedError())}


def uncertainty_named(name: str) -> Uncertainty:
    """One of the registered ones."""
    if not isinstance(name, str) or name not in UNCERTAINTIES:  # a transcript from a file may say anything
        raise UserError(f"unknown reward {name!r}; {nearest(name, UNCERTAINTIES)}")
    return UNCERTAINTIES[name]


def _probabilities(model: AnyOrderModel, distribution: Distribution, variable: int) -> Float[Tensor, "levels rows"]:
    codes = torch.arange(len(model.schema.variables[variable].levels), dtype=torch.float64)
    return distribution.log_prob(codes[:, None].expand(-1, *distribution.shape)).double().exp()


def _measured(model: AnyOrderModel, variable: int, values: Tensor) -> Tensor:
    return torch.as_tensor(model.encoding.measure(model.schema.names[variable], values.double().numpy()))
