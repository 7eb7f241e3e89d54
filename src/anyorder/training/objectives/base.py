"""The contract of an objective: what training maximises, as the steps that a batch counts and their weights.

Drawing what a batch is asked and scoring it are two things, so that a batch can be scored part by part. Cells that are
missing are never known and never asked. A column's own missing-indicator is hidden from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.masking import Masking
from anyorder.model import AnyOrderModel
from anyorder.protocols import Protocol


@dataclass(frozen=True)
class Scores:
    """log p of the steps that a batch counts in model units, its shift to the units of the data, and its weight."""

    log_prob: Float[Tensor, "batch steps"]
    log_det: Float[Tensor, "batch steps"]
    weight: Float[Tensor, "batch steps"]

    def mean(self, weight: Float[Tensor, ""] | None = None) -> Float[Tensor, ""]:
        """Nats per counted step; ``weight``: that of all steps, where these are a part of them."""
        weight = self.weight.sum() if weight is None else weight
        return ((self.log_prob + self.log_det) * self.weight).sum() / weight.clamp(min=1e-12)

    def totals(self, floor: float) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        """Each row's sum and weight, no step below ``floor`` nats: one absurd cell must not drown all others.

        NaN is no score, however low: it makes the sum NaN, if it stands where something is counted.
        """
        weight = self.weight.double()
        total = (self.log_prob.double().clamp(min=floor) + self.log_det.double()) * weight
        return total.where(weight > 0, 0.0).sum(dim=1), weight.sum(dim=1)


@dataclass(frozen=True)
class Drawn(ABC):
    """What was drawn for a batch: the weight of every step, and in a final subclass how a network is asked for it."""

    weight: Float[Tensor, "batch steps"]

    @abstractmethod
    def rows(self, index: Tensor | slice) -> Self:
        """What was drawn for some rows."""

    @abstractmethod
    def scores(
        self, model: AnyOrderModel, values: Float[Tensor, "batch variables"], log_det: Float[Tensor, "batch variables"]
    ) -> Scores:
        """What the model says of these rows; ``log_det`` carries each cell into the units of the data."""


@dataclass(frozen=True)
class Beside(Drawn):
    """log p(x_i | x_known) of all variables by one pass: who may not see all of what is known has no weight."""

    known: Bool[Tensor, "batch variables"]

    def rows(self, index: Tensor | slice) -> Self:
        return replace(self, weight=self.weight[index], known=self.known[index])

    def scores(self, model: AnyOrderModel, values: Tensor, log_det: Tensor) -> Scores:
        log_prob = model.heads.log_prob_beside(model.one_pass(values, self.known), values)
        return Scores(log_prob, log_det, self.weight)


@dataclass(frozen=True)
class Objective(ABC):
    """A way to draw steps and score them. Fields after ``protocol`` are the options of a final subclass."""

    name: ClassVar[str]

    masking: Masking
    protocol: Protocol
    reweight: bool = False

    @abstractmethod
    def draw(
        self,
        model: AnyOrderModel,
        values: Float[Tensor, "batch variables"],
        observed: Bool[Tensor, "batch variables"],
        generator: torch.Generator,
    ) -> Drawn:
        """Draw one query a row, and what of it counts."""

    def scores(
        self,
        model: AnyOrderModel,
        values: Float[Tensor, "batch variables"],
        observed: Bool[Tensor, "batch variables"],
        log_det: Float[Tensor, "batch variables"],
        generator: torch.Generator,
    ) -> Scores:
        """Draw one query a row and score its steps at once."""
        return self.draw(model, values, observed, generator).scores(model, values, log_det)
