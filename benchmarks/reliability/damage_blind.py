"""Blind damage to the bytes of any file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

Generator: TypeAlias = np.random.Generator
Blind: TypeAlias = Callable[[bytes, bytes, Generator], bytes]
"""From a whole file and another one."""


def flipped(data: bytes, _: bytes, rng: Generator) -> bytes:
    """One to eight bits are the other way round."""
    out = bytearray(data)
    for place in rng.integers(0, len(data), rng.integers(1, 9)):
        out[place] ^= 1 << int(rng.integers(8))
    return bytes(out)


def cut(data: bytes, _: bytes, rng: Generator) -> bytes:
    """The end is missing, now and then all of it."""
    return data[: int(rng.choice([0, 1, 7, 8, 9, len(data) - 1, *rng.integers(0, len(data), 10)]))]


def inserted(data: bytes, _: bytes, rng: Generator) -> bytes:
    """Bytes that were not there."""
    place = int(rng.integers(0, len(data) + 1))
    return data[:place] + rng.bytes(int(rng.integers(1, 65))) + data[place:]


def doubled(data: bytes, _: bytes, rng: Generator) -> bytes:
    """A block is there twice."""
    start, end = _stretch(data, rng)
    return data[:end] + data[start:end] + data[end:]


def zeroed(data: bytes, _: bytes, rng: Generator) -> bytes:
    """A block was never written."""
    start, end = _stretch(data, rng)
    return data[:start] + bytes(end - start) + data[end:]


def swapped(data: bytes, _: bytes, rng: Generator) -> bytes:
    """Two parts have changed places."""
    place = int(rng.integers(1, max(2, len(data))))
    return data[place:] + data[:place]


def crossed(data: bytes, other: bytes, rng: Generator) -> bytes:
    """Another file goes on where this one ends."""
    share = rng.random()
    return data[: int(share * len(data))] + other[int(share * len(other)) :]


def _stretch(data: bytes, rng: Generator) -> tuple[int, int]:
    start, end = sorted(int(place) for place in rng.integers(0, len(data) + 1, 2))
    return start, min(max(end, start + 1), start + max(1, len(data) // 4))


BLIND: dict[str, Blind] = {
    "bits flipped": flipped,
    "cut off": cut,
    "bytes inserted": inserted,
    "block doubled": doubled,
    "block zeroed": zeroed,
    "parts swapped": swapped,
    "another's end": crossed,
}
