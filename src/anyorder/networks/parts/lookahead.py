"""Looking ahead: one call predicts the next steps of a chain, in case guesses at them are right, and what follows.

The contract behind :mod:`anyorder.model.speculative`. What is settled lies behind; k values are guessed for the steps
that come next. One call answers, for every number i = 0..k of guesses that may turn out to be right, the variables of
the steps i, i + 1, ..., i + reach - 1 from here, each given what is settled and the first i guesses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.query import PAD, Chain, members, ordered

if TYPE_CHECKING:
    from anyorder.networks.base import Network


class Lookahead(ABC):
    """Walks down a batch of chains by guesses; every row goes at its own pace."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.reached = torch.zeros(chain.batch, dtype=torch.long, device=chain.order.device)

    def upcoming(self, steps: int) -> Int[Tensor, "batch steps"]:
        """The variables of each row's next steps, padding behind its end."""
        position = self.reached[:, None] + torch.arange(steps, device=self.reached.device)
        there = torch.nn.functional.pad(self.chain.order, (0, 1), value=PAD)
        return there.gather(1, position.clamp(max=self.chain.steps))

    @abstractmethod
    def look(self, guesses: Float[Tensor, "batch guesses"], reach: int) -> Float[Tensor, "batch right reach width"]:
        """One call: ``[:, i, j]`` are the features of step i + j given the settled and the first i guesses."""

    @abstractmethod
    def settle(self, right: Int[Tensor, " batch"], value: Float[Tensor, " batch"]) -> None:
        """The first ``right`` guesses of the last look are settled, and ``value`` at the step after them."""


class GuessingLookahead(Lookahead):
    """Keeps what is settled, and puts any number of right guesses to it."""

    def __init__(self, values: Float[Tensor, "batch variables"], chain: Chain) -> None:
        super().__init__(chain)
        self.known: Bool[Tensor, "batch variables"] = chain.evidence
        self.values = values.where(self.known, 0.0)
        self.guesses: Float[Tensor, "batch guesses"] = values[:, :0]

    def settle(self, right: Tensor, value: Tensor) -> None:
        next_ = self.upcoming(self.guesses.shape[1] + 1).gather(1, right[:, None])
        values, known = self.answered(right)
        now = members(next_, self.chain.variables)
        self.values = torch.where(now, value[:, None].to(values.dtype), values)
        self.known = known | now
        self.reached = (self.reached + right + 1).clamp(max=self.chain.steps)

    def answered(self, right: Int[Tensor, " batch"]) -> tuple[Tensor, Tensor]:
        """Values and what is known of them once the first ``right`` guesses of each row count as right."""
        count = self.guesses.shape[1]
        target = self.upcoming(count)
        position = torch.arange(count, device=right.device)
        target = target.where((target != PAD) & (position < right[:, None]), self.chain.variables)
        values = torch.nn.functional.pad(self.values, (0, 1)).scatter(1, target, self.guesses.to(self.values.dtype))
        return values[:, :-1], self.known | members(
            target.where(target < self.chain.variables, PAD), self.chain.variables
        )

    def cases(self, guesses: Float[Tensor, "batch guesses"], reach: int) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Values, what is known of them and the targets of a look, for each number of right guesses."""
        self.guesses = guesses
        targets = self.upcoming(guesses.shape[1] + reach).clamp(min=0)
        return [
            (*self.answered(torch.full_like(self.reached, right)), targets[:, right : right + reach])
            for right in range(guesses.shape[1] + 1)
        ]


def answered_at(
    network: Network, cases: list[tuple[Tensor, Tensor, Tensor]]
) -> Float[Tensor, "batch right reach width"]:
    """A look by ``at``, one target after the other."""
    found = [
        torch.stack([network.at(values, known, target) for target in targets.unbind(1)], dim=1)
        for values, known, targets in cases
    ]
    return torch.stack(found, dim=1)


class BesideLookahead(GuessingLookahead):
    """By ``beside``, which every network has: a row of its own for each number of right guesses."""

    def __init__(self, network: Network, values: Float[Tensor, "batch variables"], chain: Chain) -> None:
        super().__init__(values, chain)
        self.network = network

    def look(self, guesses: Tensor, reach: int) -> Tensor:
        self.guesses = guesses
        count = guesses.shape[1]
        targets = self.upcoming(count + reach)
        contexts = [self.answered(torch.full_like(self.reached, right)) for right in range(count + 1)]
        paths = [self._path(right, self.chain.prefix.shape[1] + self.chain.steps) for right in range(count + 1)]
        values, known = torch.cat([part[0] for part in contexts]), torch.cat([part[1] for part in contexts])
        path = torch.cat(paths)
        path = path[:, int((path == PAD).all(dim=0).sum()) :]  # padding that all rows share
        beside: Tensor = self.network.beside(values, known, path)
        beside = beside.view(count + 1, -1, *beside.shape[1:]).transpose(0, 1)
        steps = torch.arange(count + 1, device=targets.device)[:, None] + torch.arange(reach, device=targets.device)
        index = targets[:, steps].clamp(min=0)
        return beside.gather(2, index[..., None].expand(-1, -1, -1, beside.shape[-1]))

    def _path(self, right: int, width: int) -> Tensor:
        """What is known then, in reading order: the evidence, then the steps behind; padded to ``width``."""
        path = torch.cat([self.chain.prefix, self.chain.order], dim=1)
        position = torch.arange(path.shape[1], device=path.device)
        behind = (position < self.chain.prefix.shape[1] + (self.reached + right)[:, None]) & (path != PAD)
        order = ordered(behind, position.expand_as(path), pad_left=True)
        read = path.gather(1, order.clamp(min=0)).where(order != PAD, PAD)
        return torch.nn.functional.pad(read, (width - read.shape[1], 0), value=PAD)
