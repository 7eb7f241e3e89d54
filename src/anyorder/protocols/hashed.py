"""Hashed order: every set has its own fixed order, which looks random but never changes.

The ablation "A" of MAC's Figure 3: one edge into each node of the lattice, as with w-MAC, but paths of
different queries overlap no more than by chance. The order of a set is a pure function of the set:

    h(e) = sum_(i in e) z_i  mod 2^64,    key_i = mix(h(e) + (i + 1) g  mod 2^64)

with one pseudo-random word z_i per variable (an additive Zobrist hash) and the mixing function and increment g of
SplitMix64. Integer arithmetic only: the same on every machine and device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.protocols.base import Protocol


def _signed(word: int) -> int:
    """The 64-bit word as the int64 with the same bits; torch multiplies and adds those modulo 2^64."""
    word %= 1 << 64
    return word - (1 << 64) if word >= 1 << 63 else word


GOLDEN = _signed(0x9E3779B97F4A7C15)
FIRST = _signed(0xBF58476D1CE4E5B9)
SECOND = _signed(0x94D049BB133111EB)


@dataclass(frozen=True)
class Hashed(Protocol):
    """A fixed pseudo-random order per set; another ``seed`` gives another, unrelated family of orders."""

    name: ClassVar[str] = "hashed"

    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int):
            raise UserError(f"hashed protocol: seed must be a whole number, got {self.seed!r}")

    def keys(
        self, mask: Bool[Tensor, "batch variables"], generator: torch.Generator | None
    ) -> Int[Tensor, "batch variables"]:
        steps = (torch.arange(mask.shape[1], device=mask.device) + 1) * GOLDEN
        start = mix(torch.tensor(_signed(self.seed), device=mask.device))
        words = mix(start + steps)
        hashes = words.where(mask, 0).sum(dim=1, keepdim=True)
        return mix(hashes + steps)


def mix(word: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """SplitMix64's finaliser: a bijection of 64-bit words in which every input bit stirs every output bit."""
    word = (word ^ _shift(word, 30)) * FIRST
    word = (word ^ _shift(word, 27)) * SECOND
    return word ^ _shift(word, 31)


def _shift(word: Tensor, by: int) -> Tensor:
    # Torch shifts int64 with its sign; clearing the copied sign bits makes it a shift of the bare word.
    return (word >> by) & ((1 << (64 - by)) - 1)
