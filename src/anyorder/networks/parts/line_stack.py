"""Linear regressions of one shape, asked together: one factor of what is known for each, in one batch.

Of one variable, only its own predictors are asked, which are a few out of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.networks.parts.line_answers import LineAnswers, LinesGiven
from anyorder.networks.parts.line_inputs import LineInputs
from anyorder.networks.parts.stack import Stack, recent, rows_by_network, set_key, set_of
from anyorder.support.memory import NUMBER

if TYPE_CHECKING:
    from anyorder.networks.linear import LinearNetwork


class LineStack(Stack):
    """Networks with the same layout and options, each with numbers of its own, which are copied."""

    def __init__(self, networks: Sequence[LinearNetwork]) -> None:
        self.first, self.count = networks[0], len(networks)
        self.kept = {name: torch.stack([one.get_buffer(name) for one in networks]) for name in self.first.kept}
        every = torch.arange(len(self.first.target), device=self.first.target.device)
        self.every = LineAnswers.of(self.first, self.kept, every)
        self.low, self.high = self.kept["low"][:, None], self.kept["high"][:, None]
        # Answers about one variable, and what a known set leaves of them: made when they are first asked for.
        self._about: dict[int, LineAnswers] = {}
        numbers = 2 * self.count * max(len(self.first.owner), 1) * max(len(self.first.target), 1)
        self._given = recent(self._told, NUMBER * numbers)

    def beside(self, values: Tensor, known: Tensor) -> list[Tensor]:
        flat = self._given(set_key(known), None).features(values.expand(self.count, -1, -1))
        return list(flat.unflatten(2, (-1, self.first.layout.width)).to(values.dtype))

    def at(self, values: Tensor, known: Tensor, target: int) -> list[Tensor]:
        return list(self._at(values.expand(self.count, -1, -1), known, target))

    def at_own(self, values: Tensor, known: Tensor, target: int, own: Int[Tensor, " batch"]) -> Tensor:
        rows, where = rows_by_network(own, self.count)
        return self._at(values[rows], known, target).flatten(0, 1)[where]

    def _at(self, values: Float[Tensor, "networks rows variables"], known: Tensor, target: int) -> Tensor:
        return self._given(set_key(known), target).features(values).to(values.dtype)

    def _told(self, key: bytes, target: int | None) -> LinesGiven:
        """The answers about one variable, or about all of them, where a set is known."""
        answers = self.every if target is None else self._about.get(target)
        if answers is None:
            # Threads that come at the same time may each make it: the results are equal, and kept when complete.
            assert target is not None
            answers = LineAnswers.of(self.first, self.kept, self.first.predictors_of(target), target)
            self._about[target] = answers
        known = self.first.known_inputs(set_of(key, self.first.owner.device))
        inputs = LineInputs.of(self.first, known.nonzero()[:, 0], self.low, self.high)
        return answers.given(inputs, known)
