"""What linear predictors are linear in: values as they are, marks of single values, and values in the data's units.

Which of these inputs are wanted, and what belongs to them, is chosen once and used for all rows
(:mod:`anyorder.networks.linear` says what they are for).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

if TYPE_CHECKING:
    from anyorder.networks.linear import LinearNetwork


@dataclass(frozen=True, eq=False)
class LineInputs:
    """Some inputs of one regression, or of several that differ in the ends of what they have seen."""

    owner: Int[Tensor, " inputs"]  # the variable of each
    low: Float[Tensor, "*networks inputs"]  # the ends of what was seen of it, infinite for a level
    high: Float[Tensor, "*networks inputs"]
    mark: Float[Tensor, " inputs"]  # in single precision, so that an atom is found again however it was rounded
    marks: Bool[Tensor, " inputs"] | None  # which of them are marks; None where there is no mark among them
    model: Float[Tensor, "bent knots"]  # of the last ones: the knots in model units,
    data: Float[Tensor, "bent knots"]  # and in those of the data

    @classmethod
    def of(
        cls,
        network: LinearNetwork,
        index: Int[Tensor, " inputs"],
        low: Float[Tensor, "*networks variables"],
        high: Float[Tensor, "*networks variables"],
    ) -> LineInputs:
        """The inputs with these numbers, which increase; ``low`` and ``high``: the ends of what was seen."""
        owner, mark = network.owner[index], network.mark[index]
        marks, real = ~mark.isnan(), network.real[owner]
        bent = index - (len(network.owner) - len(network.unbent))
        bend = network.bend[bent[bent >= 0]] if network.unbent else mark.new_zeros(0, 2, 0)
        return cls(
            owner=owner,
            low=low[..., owner].where(real, -math.inf),
            high=high[..., owner].where(real, math.inf),
            mark=mark.float(),
            marks=marks if bool(marks.any()) else None,
            model=bend[:, 0].contiguous(),
            data=bend[:, 1].contiguous(),
        )

    def read(self, values: Float[Tensor, "*batch variables"]) -> Float[Tensor, "*batch inputs"]:
        """These inputs of rows that know them."""
        inputs = values[..., self.owner].double().clamp(self.low, self.high)
        if self.marks is not None:
            inputs = torch.where(self.marks, (inputs.float() == self.mark).double(), inputs)
        if len(self.model):
            inputs[..., -len(self.model) :] = self._bent_back(inputs[..., -len(self.model) :])
        return inputs

    def _bent_back(self, values: Float[Tensor, "*batch bent"]) -> Float[Tensor, "*batch bent"]:
        """Numbers in model units bent back to those of the data, on lines between the knots."""
        flat = values.reshape(-1, len(self.model)).T.contiguous()
        right = torch.searchsorted(self.model, flat).clamp(1, self.model.shape[1] - 1)
        ends = [knots.gather(1, right - left) for knots in (self.model, self.data) for left in (1, 0)]
        width = ends[1] - ends[0]
        share = torch.where(width > 0, (flat - ends[0]) / width, 0.0).clamp(0, 1)
        return torch.lerp(ends[2], ends[3], share).T.reshape(values.shape)
