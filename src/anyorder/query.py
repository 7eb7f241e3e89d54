"""Queries, chains and steps: the only objects that carry masks, validated here and nowhere else.

A *query* asks for p(x_asked | x_evidence); a variable in neither set is marginalised out. A *chain* is a
query with an order: a path on the lattice of masks from the evidence to evidence + asked (MAC section 3.1).
A *step* is one edge of that path: the univariate conditional p(x_target | x_known). All three are
batches; ``True`` always means "in the set".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

PAD = -1
"""Stands in a chain where a row has no further variable."""


@dataclass(frozen=True)
class Query:
    """A batch of conditional questions p(x_asked | x_evidence)."""

    evidence: Bool[Tensor, "batch variables"]
    asked: Bool[Tensor, "batch variables"]

    def __post_init__(self) -> None:
        for name in ("evidence", "asked"):
            mask = getattr(self, name)
            if mask.dtype != torch.bool or mask.ndim != 2:
                raise ValueError(f"{name} must be a boolean [batch, variables] tensor, got {mask.dtype} {mask.shape}")
        if self.evidence.shape != self.asked.shape:
            raise ValueError(f"evidence {self.evidence.shape} and asked {self.asked.shape} differ in shape")
        if bool((self.evidence & self.asked).any()):
            raise ValueError("a variable cannot be both evidence and asked")

    @classmethod
    def marginal(cls, asked: Bool[Tensor, "batch variables"]) -> Query:
        """p(x_asked): no evidence, everything else marginalised out."""
        return cls(torch.zeros_like(asked), asked)

    @property
    def batch(self) -> int:
        return self.asked.shape[0]

    @property
    def variables(self) -> int:
        return self.asked.shape[1]

    def among(self, observed: Bool[Tensor, "batch variables"]) -> Query:
        """This question about the cells that exist only: a missing cell is neither evidence nor asked."""
        return Query(self.evidence & observed, self.asked & observed)

    def rows(self, index: Tensor | slice) -> Query:
        """The queries of some rows."""
        return Query(self.evidence[index], self.asked[index])

    def repeat(self, times: int) -> Query:
        """All queries, one round after the other."""
        return Query(self.evidence.repeat(times, 1), self.asked.repeat(times, 1))

    def to(self, device: torch.device) -> Query:
        """These queries on another device."""
        return Query(self.evidence.to(device), self.asked.to(device))


@dataclass(frozen=True)
class Step:
    """A batch of edges: ``target`` given ``known``, for the value row ``row``."""

    row: Int[Tensor, " edges"]
    position: Int[Tensor, " edges"]
    target: Int[Tensor, " edges"]
    known: Bool[Tensor, "edges variables"]


@dataclass(frozen=True)
class Chain:
    """Evidence in reading order, then the asked variables in the order they are answered.

    ``prefix`` is padded with -1 on the left and ``order`` on the right, so that the border between them
    is one column for the whole batch: step ``s`` of every row follows column ``s - 1`` of ``order``.
    Mask networks see the prefix as a set; chain networks read it in the given order.
    """

    prefix: Int[Tensor, "batch prefix"]
    order: Int[Tensor, "batch steps"]
    variables: int

    @property
    def batch(self) -> int:
        return self.order.shape[0]

    @property
    def steps(self) -> int:
        return self.order.shape[1]

    @property
    def evidence(self) -> Bool[Tensor, "batch variables"]:
        return members(self.prefix, self.variables)

    @property
    def asked(self) -> Bool[Tensor, "batch variables"]:
        return members(self.order, self.variables)

    @property
    def counted(self) -> Bool[Tensor, "batch steps"]:
        """Which entries of ``order`` are steps and not padding."""
        return self.order != PAD

    def known_before(self, step: int) -> Bool[Tensor, "batch variables"]:
        """The set each row conditions on at ``step``."""
        return self.evidence | members(self.order[:, :step], self.variables)

    def whole(self) -> Chain:
        """The chain that counts its evidence too: a marginal chain followed by a conditional one."""
        path = torch.cat([self.prefix, self.order], dim=1)
        # Stable: real entries move left in front of the padding, in their own order.
        packed = path.gather(1, (path == PAD).long().argsort(dim=1, stable=True))
        longest = int((path != PAD).sum(dim=1).max()) if path.numel() else 0
        return Chain(self.prefix[:, :0], packed[:, :longest], self.variables)

    def rows(self, index: Tensor | slice) -> Chain:
        """The chains of some rows."""
        return Chain(self.prefix[index], self.order[index], self.variables)

    def to(self, device: torch.device) -> Chain:
        """These chains on another device."""
        return Chain(self.prefix.to(device), self.order.to(device), self.variables)

    def unroll(self, edges: int) -> Iterator[Step]:
        """All counted steps, row by row and in order, as flat batches of at most ``edges`` edges."""
        rank = torch.full((self.batch, self.variables + 1), self.steps, device=self.order.device)
        positions = torch.arange(self.steps, device=self.order.device).expand_as(self.order)
        # When each variable becomes known: -1 for evidence, its position in the order, else never.
        rank.scatter_(1, self.order.where(self.counted, self.variables), positions)
        rank = rank[:, : self.variables]
        rank = rank.masked_fill(self.evidence, -1)
        row, position = self.counted.nonzero(as_tuple=True)
        for start in range(0, len(row), edges):
            part = slice(start, start + edges)
            known = rank[row[part]] < position[part, None]
            yield Step(row[part], position[part], self.order[row[part], position[part]], known)


def members(order: Int[Tensor, "batch steps"], variables: int) -> Bool[Tensor, "batch variables"]:
    """The set of the variables listed in each row of ``order``, padding left out."""
    marks = torch.zeros(order.shape[0], variables + 1, dtype=torch.bool, device=order.device)
    marks.scatter_(1, order.where(order != PAD, variables), True)
    return marks[:, :variables]


def ordered(
    mask: Bool[Tensor, "batch variables"], key: Tensor, *, pad_left: bool = False
) -> Int[Tensor, "batch steps"]:
    """The members of each row of ``mask`` sorted by ``key`` (ties by index), padded with -1 on one side."""
    by_key = key.argsort(dim=1, stable=True)
    inside = mask.gather(1, by_key)
    # A second stable sort moves the members to one side and keeps their order.
    side = inside if pad_left else ~inside
    arranged = side.long().argsort(dim=1, stable=True)
    order = by_key.gather(1, arranged).where(inside.gather(1, arranged), PAD)
    longest = int(mask.sum(dim=1).max()) if mask.numel() else 0
    return order[:, order.shape[1] - longest :] if pad_left else order[:, :longest]


def padded_left(path: Int[Tensor, "batch steps"]) -> Int[Tensor, "batch steps"]:
    """Padding to the left, the rest in its own order: a row that has ended has padding at the end of its path."""
    return path.gather(1, (path != PAD).long().argsort(dim=1, stable=True))


def lowest(
    key: Float[Tensor, "batch variables"], size: Int[Tensor, " batch"], among: Bool[Tensor, "batch variables"]
) -> Bool[Tensor, "batch variables"]:
    """The ``size`` members of each row of ``among`` with the least ``key`` (ties by index), or all of them if fewer."""
    by_key = key.masked_fill(~among, torch.inf).argsort(dim=1, stable=True)
    first = torch.arange(among.shape[1], device=key.device) < size.to(key.device)[:, None]
    return torch.zeros_like(among).scatter(1, by_key, first) & among


def random_subset(
    among: Bool[Tensor, "batch variables"],
    size: Int[Tensor, " batch"],
    generator: torch.Generator | np.random.Generator,
) -> Bool[Tensor, "batch variables"]:
    """A uniformly drawn subset of each row of ``among``, with ``size`` members."""
    # In float64 a tie, which would favour low indices, is out of reach even with thousands of variables.
    if isinstance(generator, np.random.Generator):
        noise = torch.from_numpy(generator.random(among.shape)).to(among.device)
    else:
        noise = torch.rand(among.shape, generator=generator, device=generator.device, dtype=torch.float64)
    return lowest(noise, size, among)
