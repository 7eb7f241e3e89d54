"""Parts of U-Nets: residual blocks conditioned on the step, attention, resolution changes, squares of pixels.

Shared by the mask network of pictures and by the baselines that the SFARM paper builds from the same parts.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from anyorder.networks.parts.dropout import Dropout

LONGEST_WAVE = 10_000.0  # in steps, as in DDPM


class StepEmbedding(nn.Module):
    """A number (a step, a time) as sines and cosines, through two layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.frequency: Tensor
        half = width // 2
        exponent = torch.arange(half) / max(half - 1, 1)
        self.register_buffer("frequency", torch.exp(-math.log(LONGEST_WAVE) * exponent), persistent=False)
        self.rise = nn.Linear(2 * half, 4 * width)
        self.mix = nn.Linear(4 * width, 4 * width)

    def forward(self, step: Float[Tensor, " batch"]) -> Float[Tensor, "batch embedding"]:
        angle = step[:, None] * self.frequency.to(step.dtype)
        waves = torch.cat([angle.sin(), angle.cos()], dim=1)
        out: Tensor = self.mix(F.silu(self.rise(waves)))
        return out


class ResidualBlock(nn.Module):
    """x + two 3 x 3 convolutions, the embedding of step and mode added to what is normalised between them.

    Added *before* the normalisation, as in DDPM, it is soon drowned: nothing but that normalisation sees the size of
    the first convolution's weights, so they grow unhindered, to outputs a hundred times as large as the embedding.
    """

    def __init__(self, entering: int, leaving: int, embedding: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm_first = norm(entering)
        self.first = nn.Conv2d(entering, leaving, 3, padding=1)
        self.tell = nn.Linear(embedding, leaving) if embedding else None
        self.norm_second = norm(leaving)
        self.dropout = Dropout(dropout)
        self.second = nn.Conv2d(leaving, leaving, 3, padding=1)
        self.pass_by = nn.Conv2d(entering, leaving, 1) if entering != leaving else nn.Identity()
        # The untrained block is the identity (or its projection): deep stacks start out well-behaved.
        nn.init.zeros_(self.second.weight)

    def forward(
        self,
        pixels: Float[Tensor, "batch entering height width"],
        embedding: Float[Tensor, "batch embedding"] | None = None,
    ) -> Float[Tensor, "batch leaving height width"]:
        inner = self.norm_second(self.first(F.silu(self.norm_first(pixels))))
        if self.tell is not None and embedding is not None:
            inner = inner + self.tell(F.silu(embedding))[:, :, None, None]
        inner = self.second(self.dropout(F.silu(inner)))
        out: Tensor = self.pass_by(pixels) + inner
        return out


class PixelAttention(nn.Module):
    """x + attention of every pixel to every other."""

    def __init__(self, channels: int, heads: int = 1) -> None:
        super().__init__()
        self.heads = heads
        self.norm = norm(channels)
        self.queries_keys_values = nn.Conv2d(channels, 3 * channels, 1)
        self.leave = nn.Conv2d(channels, channels, 1)
        nn.init.zeros_(self.leave.weight)

    def forward(
        self, pixels: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels height width"]:
        batch, channels, height, width = pixels.shape
        mixed = self.queries_keys_values(self.norm(pixels))
        # [batch, 3 channels, height, width] -> three of [batch, heads, pixels, channels / heads]
        parts = mixed.reshape(batch, 3, self.heads, channels // self.heads, height * width).transpose(-1, -2).unbind(1)
        seen = F.scaled_dot_product_attention(*parts)
        out: Tensor = pixels + self.leave(seen.transpose(-1, -2).reshape(batch, channels, height, width))
        return out


class Halve(nn.Module):
    """Half the resolution; an odd line is kept."""

    def __init__(self, entering: int, leaving: int) -> None:
        super().__init__()
        self.convolve = nn.Conv2d(entering, leaving, 3, stride=2, padding=1)

    def forward(self, pixels: Tensor) -> Tensor:
        out: Tensor = self.convolve(pixels)
        return out


class Double(nn.Module):
    """Back to a given resolution, by repeating pixels."""

    def __init__(self, entering: int, leaving: int) -> None:
        super().__init__()
        self.convolve = nn.Conv2d(entering, leaving, 3, padding=1)

    def forward(self, pixels: Tensor, size: tuple[int, int]) -> Tensor:
        out: Tensor = self.convolve(F.interpolate(pixels, size=size, mode="nearest"))
        return out


# These two are convolutions rather than hold one, so that the weights have the same names in files with and without
# patches.
class ToPatches(nn.Conv2d):
    """Squares of ``patch`` x ``patch`` pixels as one position each; lines that the last ones lack are zero."""

    def __init__(self, entering: int, leaving: int, patch: int) -> None:
        super().__init__(entering, leaving, patch, stride=patch)
        self.patch = patch

    def forward(self, pixels: Float[Tensor, "batch entering height width"]) -> Tensor:
        height, width = (-side % self.patch for side in pixels.shape[-2:])
        return super().forward(F.pad(pixels, (0, width, 0, height)))


class FromPatches(nn.Conv2d):
    """Every position back as its square of pixels; what was added on the way in is cut off."""

    def __init__(self, entering: int, leaving: int, patch: int) -> None:
        super().__init__(entering, leaving * patch**2, 1)
        self.patch = patch

    def forward(  # type: ignore[override]  # it must hear of the size
        self, positions: Tensor, size: tuple[int, ...]
    ) -> Float[Tensor, "batch leaving height width"]:
        pixels = F.pixel_shuffle(super().forward(positions), self.patch)
        return pixels[:, :, : size[0], : size[1]]


def norm(channels: int) -> nn.GroupNorm:
    """Groups of about eight channels."""
    groups = max(1, channels // 8)
    while channels % groups:
        groups -= 1
    return nn.GroupNorm(groups, channels)
