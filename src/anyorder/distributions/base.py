"""The contract of a one-dimensional distribution, in model units."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.distributions.curves import Curve
from anyorder.errors import UserError

End = float | Tensor
"""An end of a stretch: the same for a whole batch, or that of each element."""


class Distribution(ABC):
    """A batch of one-dimensional distributions over the values of one variable, in model units."""

    @property
    def discrete(self) -> bool:
        """Whether ``log_prob`` is a log-probability (True) or a log-density (False)."""
        return False

    @property
    @abstractmethod
    def shape(self) -> torch.Size:
        """The batch shape."""

    @property
    def placed(self) -> torch.device:
        """Where its parameters are: its first tensor, or that of the first distribution that it is made of."""
        for part in vars(self).values():
            inner = part[0] if isinstance(part, tuple) and part else part
            if isinstance(inner, Tensor | Distribution):
                return inner.device if isinstance(inner, Tensor) else inner.placed
        return torch.device("cpu")

    @abstractmethod
    def log_prob(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """Log-density or log-probability, in nats. ``value`` broadcasts against the batch shape."""

    @abstractmethod
    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch"]:
        """One draw per element of the batch."""

    @abstractmethod
    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """P(X <= value)."""

    @abstractmethod
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The least value whose cdf reaches ``level``."""

    def bracket(self, level: Float[Tensor, "*batch"]) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        """Values between which the quantile lies: what is cheap to have where the quantile itself takes a search."""
        found = self.quantile(level)
        return found, found

    def mass_at(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """P(X = value): 0 everywhere on a line without atoms."""
        if self.discrete:
            return self.log_prob(value).exp()
        shape = np.broadcast_shapes(value.shape, self.shape)  # that of torch imports a computer algebra system
        return torch.zeros(shape, dtype=value.dtype, device=value.device)

    def log_between(self, low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """log P(low <= X <= high). Families override it where a difference of cdfs would lose a small probability."""
        below = self.cdf(low) - self.mass_at(low)
        return (self.cdf(high) - below).clamp(min=torch.finfo(below.dtype).tiny).log()

    def outside(self, low: float, high: float) -> Float[Tensor, "two *batch"]:
        """P(X < low) and P(X > high) in float64, of values that have no probability by themselves.

        Families override it where they are asked for the same values again and again.
        """
        values = torch.tensor([low, high], dtype=torch.float64, device=self.placed)
        values = values.reshape(2, *[1] * len(self.shape))
        below, upto = self.cdf(values.expand(2, *self.shape)).double().unbind(0)
        return torch.stack([below, 1 - upto]).clamp(0, 1)

    def log_within(self, low: float, high: float) -> Float[Tensor, "*batch"] | None:
        """log P(low <= X <= high) for ends that are the same everywhere; None where no quicker way leads there."""
        return None

    def nodes(
        self, low: float, high: float
    ) -> tuple[Float[Tensor, "*batch nodes"], Float[Tensor, "*batch nodes"]] | None:
        """Points and weights, in float64, for integrals of density times a smooth function over [low, high].

        Either end may be infinite. None where the family has no rule of its own.
        """
        return None

    def expect_within(
        self, function: Callable[[Tensor], Tensor], low: float, high: float, steps: tuple[float, ...] = ()
    ) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]] | None:
        """The integrals of density times ``function``, and of the density, over [low, high], in float64, by one rule.

        Their ratio is the mean of a function inside. ``steps``: where the function is not smooth. None where the family
        has no quick way to it.
        """
        return None

    def sample_within(
        self, low: End, high: End, generator: torch.Generator | None = None
    ) -> Float[Tensor, "*batch"] | None:
        """One draw per element given that it lies in [low, high]; None where the family has no quick way to it.

        The ends are the same for all elements, or tensors with those of each.
        """
        return None

    def rows(self, index: Int[Tensor, " some"]) -> Distribution:
        """Some elements of a batch of one dimension, as a batch of their own."""
        own: Any = self  # a dataclass, as every family is
        held = {part.name: getattr(self, part.name) for part in dataclasses.fields(own)}
        found: Distribution = dataclasses.replace(
            own, **{name: _rows(part, index) for name, part in held.items() if isinstance(part, Distribution | Tensor)}
        )
        return found

    def pieces(self) -> tuple[list[tuple[Tensor, Distribution]], list[tuple[Tensor, float]]]:
        """Log weights with smooth parts, and log weights with positions of atoms: the mixture of all is this one."""
        return [(torch.zeros(self.shape, dtype=torch.float64), self)], []

    def curve(self) -> Curve | None:
        """A single law on a line as a curve in NumPy, before it is cut into cells; None where it has none."""
        return None

    @abstractmethod
    def mean(self) -> Float[Tensor, "*batch"]:
        """The expectation."""

    @abstractmethod
    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """E[function(X)] in float64; ``function`` acts elementwise on a float64 tensor of any shape.

        Float64, since the function may lead into the units of the data, where a small spread can sit on a large offset.
        Without ``fine`` a few nodes per component stand for the integral: within some 1e-2 scales, and many times
        quicker, for filling whole tables.
        """

    def tempered(self, temperature: float) -> Distribution:
        """Narrower below 1, broader above (SFARM Figure 6): logits over the temperature, or scales times it."""
        raise UserError(f"{type(self).__name__} cannot be drawn at another temperature than 1")

    @abstractmethod
    def entropy(self) -> Float[Tensor, "*batch"]:
        """Entropy (discrete) or differential entropy (continuous), in nats."""


def _rows(part: Distribution | Tensor, index: Int[Tensor, " some"]) -> Distribution | Tensor:
    """What else a family has (a lattice, atoms, ends) is the same for the whole batch."""
    return part.rows(index) if isinstance(part, Distribution) else part[index]
