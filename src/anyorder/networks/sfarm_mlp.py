"""SFARM's network for tables: a plain perceptron with a time embedding (SFARM section 4.1 and Table 4).

    features = MLP([x_known, known, embedding(i)]),    i = |known| + 1, the step of the chain that comes next

Three layers of 32 units; the embedding is sinusoidal, as SFARM has it for images, and concatenated to the input, as it
has it for tables. The paper writes the network as a function of x_(z_(i-1)), the values *and* which of them are active,
so the activation mask enters too: a known 0 and an unknown cell must not look alike. There is one masking mode,
the uniform one, so nothing has to be embedded for it. With the random protocol, single edges as masking
(``univariate``) and the objective ``parallel`` this is trained by SFARM eq. 11, which is ARDM's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.errors import UserError
from anyorder.networks.base import FARTHEST, MaskNetwork

LONGEST_WAVE = 10_000.0  # in steps, as in DDPM and the transformers


@dataclass(eq=False)
class SFARMPerceptron(MaskNetwork):
    """Values, known bits and the step -> features of all variables in one pass."""

    name: ClassVar[str] = "sfarm_mlp"

    width: int = 32
    layers: int = 3
    time: int = 32  # width of the embedding of the step

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layers < 1 or self.time < 2 or self.time % 2:
            raise UserError(
                "sfarm_mlp: layers must be 1 or more and time an even number from 2 up, "
                f"got {self.layers} and {self.time}"
            )
        variables = self.layout.variables
        slots = sum(max(levels, 1) for levels in self.layout.levels)  # a code takes one input per level
        hidden: list[nn.Module] = []
        for layer in range(self.layers):
            hidden += [nn.Linear(self.width if layer else slots + variables + self.time, self.width), nn.ReLU()]
        self.trunk = nn.Sequential(*hidden)
        self.leave = nn.Linear(self.width, len(self.layout.answered) * self.layout.width)
        self.frequency: Tensor
        exponent = torch.arange(self.time // 2) / max(self.time // 2 - 1, 1)
        self.register_buffer("frequency", torch.exp(-math.log(LONGEST_WAVE) * exponent), persistent=False)

    def begin(self, starts: Float[Tensor, "variables width"]) -> None:
        with torch.no_grad():
            self.leave.bias.copy_(starts[list(self.layout.answered)].flatten())

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        dtype = self.leave.weight.dtype
        values = values.where(known, 0.0)
        inputs = [known.to(dtype), self._step(known)]
        for variable, levels in enumerate(self.layout.levels):
            column = values[:, variable : variable + 1]
            if levels == 0:
                inputs.append(column.clamp(-FARTHEST, FARTHEST).to(dtype))
            else:
                inputs.append(F.one_hot(column[:, 0].long(), levels).to(dtype) * known[:, variable : variable + 1])
        flat: Tensor = self.leave(self.trunk(torch.cat(inputs, dim=1)))
        answers = flat.reshape(len(flat), -1, self.layout.width)
        if answers.shape[1] == self.layout.variables:
            return answers
        features = answers.new_zeros(len(flat), self.layout.variables, self.layout.width)
        features[:, list(self.layout.answered)] = answers
        return features

    def _step(self, known: Bool[Tensor, "batch variables"]) -> Float[Tensor, "batch time"]:
        """The sinusoidal embedding of the step that follows what is known."""
        angle = (known.sum(dim=1, keepdim=True) + 1) * self.frequency.to(self.leave.weight.dtype)
        return torch.cat([angle.sin(), angle.cos()], dim=1)
