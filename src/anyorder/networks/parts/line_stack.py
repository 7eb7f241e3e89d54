"""Linear regressions of one shape, asked together: one factor of what is known for each, in one batch.

Of one variable, only its own predictors are asked, which are a few out of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.networks.parts.line_answers import LineAnswers
from anyorder.networks.parts.stack import Stack, rows_by_network

if TYPE_CHECKING:
    from anyorder.networks.linear import LinearNetwork


class LineStack(Stack):
    """Networks with the same layout and options, each with numbers of its own, which are copied."""

    def __init__(self, networks: Sequence[LinearNetwork]) -> None:
        self.first, self.count = networks[0], len(networks)
        self.kept = {name: torch.stack([one.get_buffer(name) for one in networks]) for name in self.first.kept}
        every = torch.arange(len(self.first.target), device=self.first.target.device)
        self.every = LineAnswers.of(self.first, self.kept, every)
        self._about: dict[int, LineAnswers] = {}  # one variable each, made when it is first asked for
        self.low, self.high = self.kept["low"][:, None], self.kept["high"][:, None]

    def beside(self, values: Tensor, known: Tensor) -> list[Tensor]:
        flat = self.every.given(*self._inputs(values.expand(self.count, -1, -1), known))
        return list(flat.unflatten(2, (-1, self.first.layout.width)).to(values.dtype))

    def at(self, values: Tensor, known: Tensor, target: int) -> list[Tensor]:
        return list(self._at(values.expand(self.count, -1, -1), known, target))

    def at_own(self, values: Tensor, known: Tensor, target: int, own: Int[Tensor, " batch"]) -> Tensor:
        rows, where = rows_by_network(own, self.count)
        return self._at(values[rows], known, target).flatten(0, 1)[where]

    def _at(self, values: Float[Tensor, "networks rows variables"], known: Tensor, target: int) -> Tensor:
        # Threads that come at the same time may each make it ready: the results are equal, and kept when complete.
        if target not in self._about:
            self._about[target] = LineAnswers.of(self.first, self.kept, self.first.predictors_of(target), target)
        return self._about[target].given(*self._inputs(values, known)).to(values.dtype)

    def _inputs(
        self, values: Float[Tensor, "networks rows variables"], known: Bool[Tensor, " variables"]
    ) -> tuple[Float[Tensor, "networks rows inputs"], Bool[Tensor, " inputs"]]:
        return self.first.inputs(values, known, self.low, self.high)
