"""Several networks of one kind that are asked the same question: what is known is one set for all rows.

A blend of the folds of a table has four networks of every kind. Asked one after the other they do the same small steps
four times over, and on a single row the steps cost more than the numbers in them. A kind of network that can do better
stacks its weights (:meth:`anyorder.networks.base.Network.stack`); the others are asked in turn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

if TYPE_CHECKING:
    from anyorder.networks.base import Network

P = ParamSpec("P")
R = TypeVar("R")

MOST_KEPT, ROOM = 512, 1 << 24  # known sets, and the bytes that they may take in all


class Stack(ABC):
    """Networks of one kind, in an order. No value of an unknown variable is read."""

    @abstractmethod
    def beside(
        self, values: Float[Tensor, "batch variables"], known: Bool[Tensor, " variables"]
    ) -> list[Float[Tensor, "batch variables width"]]:
        """The features of all variables, by every network."""

    @abstractmethod
    def at(
        self, values: Float[Tensor, "batch variables"], known: Bool[Tensor, " variables"], target: int
    ) -> list[Float[Tensor, "batch width"]]:
        """The features of one variable, by every network."""

    @abstractmethod
    def at_own(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, " variables"],
        target: int,
        own: Int[Tensor, " batch"],
    ) -> Float[Tensor, "batch width"]:
        """The features of one variable, those of each row by the network whose number stands beside it."""


def set_key(known: Bool[Tensor, " variables"]) -> bytes:
    """What is known as a key of what is kept for it."""
    return known.cpu().numpy().tobytes()


def set_of(key: bytes, device: torch.device) -> Bool[Tensor, " variables"]:
    """The known set of a key."""
    return torch.from_numpy(np.frombuffer(key, bool).copy()).to(device)


def recent(make: Callable[P, R], size: int) -> Callable[P, R]:
    """``make``, which keeps what it made last, as much as there is room for; ``size``: the bytes of one at most.

    Much of an answer depends on which variables are known and on none of their values: the same for the rows of a
    table and for the draws of a question, which come back to the same sets again and again.
    """
    kept: Any = lru_cache(maxsize=max(1, min(MOST_KEPT, ROOM // max(size, 1))))(make)
    return cast(Callable[P, R], kept)


class Apart(Stack):
    """Networks that are asked one after the other."""

    def __init__(self, networks: Sequence[Network]) -> None:
        self.networks = networks

    def beside(self, values: Tensor, known: Tensor) -> list[Tensor]:
        everywhere = known.expand(len(values), -1)
        return [network.beside(values, everywhere) for network in self.networks]

    def at(self, values: Tensor, known: Tensor, target: int) -> list[Tensor]:
        everywhere, targets = known.expand(len(values), -1), _all(target, values)
        return [network.at(values, everywhere, targets) for network in self.networks]

    def at_own(self, values: Tensor, known: Tensor, target: int, own: Tensor) -> Tensor:
        everywhere, targets = known.expand(len(values), -1), _all(target, values)
        features = torch.zeros(0)
        for number, network in enumerate(self.networks):
            rows = (own == number).nonzero()[:, 0]
            if len(rows):
                found = network.at(values[rows], everywhere[rows], targets[rows])
                if not len(features):
                    features = found.new_zeros(len(values), max(one.layout.width for one in self.networks))
                features[rows, : found.shape[1]] = found
        return features


def _all(target: int, values: Tensor) -> Int[Tensor, " batch"]:
    return torch.full((len(values),), target, device=values.device)


def rows_by_network(own: Int[Tensor, " batch"], count: int) -> tuple[Int[Tensor, "count most"], Int[Tensor, " batch"]]:
    """The rows of each of ``count`` networks, the short lists filled up with any row, and where in them each row is."""
    numbers = own.cpu().numpy()
    order = numbers.argsort(kind="stable")
    counts = np.bincount(numbers, minlength=count)
    first = counts.cumsum() - counts
    most = int(counts.max()) if len(numbers) else 0
    slot = numbers[order] * most + np.arange(len(numbers)) - first[numbers[order]]
    rows = np.zeros(count * most, np.int64)
    rows[slot] = order
    where = np.empty_like(order)
    where[order] = slot
    return torch.from_numpy(rows.reshape(count, most)).to(own.device), torch.from_numpy(where).to(own.device)
