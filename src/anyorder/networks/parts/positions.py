"""Where a token stands: a learned vector a variable, or rotary, an angle in attention, so that only distances count.

Rotary: each pair of a head's numbers is turned by position times a frequency; the product of a turned query and a
turned key depends on the difference of their positions alone. What is learned of one position of a text then holds for
all. On a grid (pictures) the pairs are divided among its axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from anyorder.errors import UserError, nearest
from anyorder.networks.layout import Layout

POSITIONS = ("learned", "rotary")
SLOWEST = 10_000.0  # the longest wave, in positions times 2 pi


@dataclass(frozen=True)
class Turn:
    """Cosines and sines, one row a token, by which queries or keys are turned."""

    cosine: Float[Tensor, "batch 1 tokens half"]
    sine: Float[Tensor, "batch 1 tokens half"]

    def __call__(self, vectors: Float[Tensor, "batch heads tokens head"]) -> Float[Tensor, "batch heads tokens head"]:
        first, second = vectors.chunk(2, dim=-1)
        return torch.cat([first * self.cosine - second * self.sine, first * self.sine + second * self.cosine], dim=-1)


class Rotary(nn.Module):
    """The angles of every variable's position; a token that holds no variable (the start) is not turned."""

    def __init__(self, layout: Layout, head: int) -> None:
        super().__init__()
        grid = layout.grid or (layout.variables,)
        pairs = head // 2 // len(grid)
        if head % 2 or pairs < 1:
            raise UserError(
                f"rotary positions need heads of an even size of {2 * len(grid)} or more, got {head}; "
                "take fewer heads, or positions = 'learned'"
            )
        waves = SLOWEST ** -(torch.arange(pairs, dtype=torch.float64) / pairs)
        axes = (torch.arange(size, dtype=torch.float64) for size in grid)
        positions = torch.cartesian_prod(*axes).view(-1, len(grid))
        angles = (positions[:, :, None] * waves).flatten(1)
        # Numbers that the axes cannot share out evenly stay as they are, and so does the last row: no variable.
        angles = nn.functional.pad(angles, (0, head // 2 - angles.shape[1], 0, 1))
        self.cosine: Tensor
        self.sine: Tensor
        self.register_buffer("cosine", angles.cos().float(), persistent=False)
        self.register_buffer("sine", angles.sin().float(), persistent=False)

    def forward(self, variable: Int[Tensor, "batch tokens"]) -> Turn:
        """The turn of tokens at these variables; -1 (padding) finds the last row."""
        return Turn(self.cosine[variable][:, None], self.sine[variable][:, None])


def positions_table(layout: Layout, width: int) -> nn.Embedding:
    """A learned vector for every variable."""
    table = nn.Embedding(layout.variables, width)
    nn.init.normal_(table.weight, std=0.5)
    return table


def check_positions(positions: str) -> None:
    """One of the two ways."""
    if positions not in POSITIONS:
        raise UserError(f"unknown positions {positions!r}; {nearest(positions, POSITIONS)}")
