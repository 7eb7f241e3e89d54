"""Families of holes in pictures: which pixels are known, one mask for every picture, by a seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Masks = NDArray[np.bool_]
SHARES = (5, 10, 20, 30, 50, 90)  # per cent missing, as in SFARM's Figure 3


def scattered(share: float) -> Callable[[int, int, int, np.random.Generator], Masks]:
    """Every pixel is missing with this probability."""
    return lambda count, height, width, rng: rng.random((count, height, width)) >= share


def half(side: str) -> Callable[[int, int, int, np.random.Generator], Masks]:
    """One half is missing."""

    def masks(count: int, height: int, width: int, rng: np.random.Generator) -> Masks:
        known = np.ones((count, height, width), dtype=bool)
        cut = {"left": np.s_[:, :, : width // 2], "right": np.s_[:, :, width // 2 :]}
        cut |= {"upper": np.s_[:, : height // 2], "lower": np.s_[:, height // 2 :]}
        known[cut[side]] = False
        return known

    return masks


def patch(*, inside: bool) -> Callable[[int, int, int, np.random.Generator], Masks]:
    """A rectangle, its sides between a third and two thirds of the picture's: it is missing, or all around it is."""

    def masks(count: int, height: int, width: int, rng: np.random.Generator) -> Masks:
        known = np.zeros((count, height, width), dtype=bool)
        for row in known:
            sides = [int(rng.integers(size // 3, 2 * size // 3 + 1)) for size in (height, width)]
            starts = [int(rng.integers(0, size - side + 1)) for size, side in zip((height, width), sides, strict=True)]
            row[starts[0] : starts[0] + sides[0], starts[1] : starts[1] + sides[1]] = True
        return ~known if inside else known

    return masks


def lines(count: int, height: int, width: int, rng: np.random.Generator) -> Masks:
    """Eight thin lines between random points of the border are missing."""
    known = np.ones((count, height, width), dtype=bool)
    for row in known:
        for _ in range(8):
            ends = [_border(height, width, rng) for _ in range(2)]
            for place in np.linspace(0, 1, 4 * max(height, width)):
                y, x = (round(a + place * (b - a)) for a, b in zip(*ends, strict=True))
                row[y, x] = False
    return known


def _border(height: int, width: int, rng: np.random.Generator) -> tuple[int, int]:
    side, luck = int(rng.integers(4)), rng.random()
    if side < 2:
        return (0 if side == 0 else height - 1), int(luck * width)
    return int(luck * height), (0 if side == 2 else width - 1)


FAMILIES: dict[str, Callable[[int, int, int, np.random.Generator], Masks]] = {
    **{f"random, {share} %": scattered(share / 100) for share in SHARES},
    **{f"{side} half": half(side) for side in ("left", "right", "upper", "lower")},
    "patch inside": patch(inside=True),
    "all around a patch": patch(inside=False),
    "thin lines": lines,
}
GROUPS = {
    "random": [name for name in FAMILIES if name.startswith("random")],
    "halves": [name for name in FAMILIES if name.endswith("half")],
    "patches": ["patch inside", "all around a patch"],
    "lines": ["thin lines"],
}
