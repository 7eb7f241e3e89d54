"""Turned and mirrored pictures to learn from: as many rows for each as there are ways to turn it.

A row that is drawn uniformly is then a picture and a way to turn it, both uniform, and nothing is random but the
trainer's own draw of rows: the seed decides it, and a resumed run goes on with it. Flips to both sides and a quarter
turn, each or not by the toss of a coin (MAC's released code), are the eight symmetries of a square, all alike.
"""

from __future__ import annotations

import numpy as np

from anyorder.data.images import Pictures
from anyorder.errors import UserError

TURNS: dict[str, tuple[tuple[int, bool], ...]] = {
    "none": ((0, False),),
    "mirror": ((0, False), (0, True)),
    "rotate_flip": tuple((quarters, mirrored) for quarters in range(4) for mirrored in (False, True)),
}
"""By name: so many quarter turns, and mirrored left to right after them or not."""


def check_turns(augment: str, shape: tuple[int, ...]) -> None:
    """Refuse to turn pictures by a quarter that would not have their shape then."""
    if any(quarters % 2 for quarters, _ in TURNS[augment]) and shape[0] != shape[1]:
        raise UserError(
            f"augment={augment!r} turns pictures by 90 degrees, which needs square ones, got {shape[0]} x {shape[1]}; "
            "use 'mirror' or 'none'"
        )


def turned(pictures: Pictures, which: np.ndarray, augment: str) -> Pictures:
    """Each picture turned in the way that ``which`` numbers."""
    out = np.empty_like(pictures)
    for number, (quarters, mirrored) in enumerate(TURNS[augment]):
        rows = which == number
        some = np.rot90(pictures[rows], quarters, axes=(1, 2))
        out[rows] = some[:, :, ::-1] if mirrored else some
    return out
