"""The two halves of a U-Net without its shortcuts: encoder and decoder of latent-variable models of pictures.

SFARM's baselines are built from the parts of its own network: the way down encodes, the way up decodes, and nothing
but the latent vector connects the two.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from anyorder.networks.parts.unet_parts import Double, FromPatches, Halve, ResidualBlock, ToPatches, norm
from anyorder.support.randomness import drawing_from


class PictureEncoder(nn.Module):
    """Values and mask, [rows, 2 * variables] as :class:`~anyorder.baselines.latent.LatentModel` lays them out."""

    def __init__(
        self, shape: tuple[int, ...], latent: int, channels: int, blocks: int, levels: int, patch: int
    ) -> None:
        super().__init__()
        self.shape = shape
        self.planes = shape[2] if len(shape) == 3 else 1
        self.enter = ToPatches(2 * self.planes, channels, patch)
        parts: list[nn.Module] = []
        size = channels
        for level in range(levels):
            parts += [ResidualBlock(size, size, 0) for _ in range(blocks)]
            if level < levels - 1:
                parts.append(Halve(size, 2 * size))
                size *= 2
        self.down = nn.ModuleList(parts)
        lowest = _sides(shape, patch, levels)[-1]
        self.norm = norm(size)
        self.leave = nn.Linear(size * lowest[0] * lowest[1], 2 * latent)

    def forward(self, inputs: Float[Tensor, "rows both"]) -> Float[Tensor, "rows latents"]:
        height, width = self.shape[:2]
        both = inputs.view(-1, 2, height, width, self.planes).permute(0, 1, 4, 2, 3).flatten(1, 2)
        pixels = self.enter(both)
        for part in self.down:
            pixels = part(pixels)
        out: Tensor = self.leave(F.silu(self.norm(pixels)).flatten(1))
        return out


class PictureDecoder(nn.Module):
    """A latent vector -> ``size`` parameters for every variable, [*draws, variables * size]."""

    def __init__(
        self, shape: tuple[int, ...], latent: int, size: int, channels: int, blocks: int, levels: int, patch: int
    ) -> None:
        super().__init__()
        self.shape, self.size = shape, size
        self.planes = shape[2] if len(shape) == 3 else 1
        self.sides = _sides(shape, patch, levels)
        depth = channels * 2 ** (levels - 1)
        self.enter = nn.Linear(latent, depth * self.sides[-1][0] * self.sides[-1][1])
        self.depth = depth
        parts: list[nn.Module] = []
        for level in range(levels - 1, -1, -1):
            parts += [ResidualBlock(depth, depth, 0) for _ in range(blocks)]
            if level > 0:
                parts.append(Double(depth, depth // 2))
                depth //= 2
        self.up = nn.ModuleList(parts)
        self.norm = norm(depth)
        self.leave = FromPatches(depth, self.planes * size, patch)

    def forward(self, latent: Float[Tensor, "*draws latent"]) -> Float[Tensor, "*draws parameters"]:
        flat = latent.reshape(-1, latent.shape[-1])
        pixels = self.enter(flat).view(-1, self.depth, *self.sides[-1])
        level = len(self.sides) - 1
        for part in self.up:
            if isinstance(part, Double):
                level -= 1
                pixels = part(pixels, self.sides[level])
            else:
                pixels = part(pixels)
        out = self.leave(F.silu(self.norm(pixels)), self.shape).unflatten(1, (self.planes, self.size))
        flat_out: Tensor = out.permute(0, 3, 4, 1, 2).flatten(1)
        return flat_out.view(*latent.shape[:-1], -1)


def _sides(shape: tuple[int, ...], patch: int, levels: int) -> list[tuple[int, int]]:
    """Positions a side at every level, most first: odd numbers are rounded up, as Halve does."""
    height, width = (math.ceil(side / patch) for side in shape[:2])
    return [(math.ceil(height / 2**level), math.ceil(width / 2**level)) for level in range(levels)]


def picture_halves(
    shape: tuple[int, ...],
    latent: int,
    size: int,
    *,
    channels: int = 32,
    blocks: int = 1,
    levels: int = 2,
    patch: int = 2,
    seed: int = 0,
) -> tuple[PictureEncoder, PictureDecoder]:
    """Both halves, their weights by the seed alone."""
    with drawing_from(torch.Generator().manual_seed(seed)):
        return (
            PictureEncoder(shape, latent, channels, blocks, levels, patch),
            PictureDecoder(shape, latent, size, channels, blocks, levels, patch),
        )
