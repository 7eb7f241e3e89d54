r"""How a picture enters a U-Net: as numbers beside its mask, and as embeddings of its levels (ARDM; MAC appendix D).

Three quarters of the channels are a 3 x 3 convolution of the picture in -1 .. 1, zero where it is unknown, and of its
mask. One quarter is read off a table: every level has a learned vector, and so has "unknown"; those of a pixel's
channels, which share the table, are put side by side and projected. The convolution sees neighbours and the order of
the levels, the table sees each level as a thing of its own.

Where squares of pixels are one position, the convolution covers the square and a ring of one pixel around it, and the
vectors of all its pixels are projected together. Without squares that is the papers' entry.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn


class Entry(nn.Module):
    """``width`` channels of ``patch`` x ``patch`` squares of pixels with so many ``planes`` of ``levels`` levels.

    With one level all known values have the same vector: then the table tells what is known, and no more.
    """

    def __init__(self, planes: int, width: int, patch: int, levels: int) -> None:
        super().__init__()
        self.patch, self.levels = patch, levels
        self.convolve = nn.Conv2d(2 * planes, width - width // 4, patch + 2, stride=patch)
        self.embed = nn.Embedding(levels + 1, width // 4)  # the last one is for unknown values
        self.project = nn.Conv2d(planes * (width // 4), width // 4, patch, stride=patch)

    def forward(
        self, picture: Float[Tensor, "batch planes height row"], known: Bool[Tensor, "batch planes height row"]
    ) -> Float[Tensor, "batch width positions_down positions_across"]:
        # What the last squares lack is unknown, as is what lies around the picture.
        below, right = (-side % self.patch for side in picture.shape[-2:])
        both = torch.cat([picture, known.to(picture.dtype)], dim=1)
        numbers = self.convolve(F.pad(both, (1, right + 1, 1, below + 1)))
        level = ((picture.clamp(-1, 1) + 1) * ((self.levels - 1) / 2)).round().long()
        level = F.pad(level.where(known, self.levels), (0, right, 0, below), value=self.levels)
        # [batch, planes, height, row, channels] -> [batch, planes * channels, height, row]
        vectors = self.embed(level).permute(0, 1, 4, 2, 3).flatten(1, 2)
        return torch.cat([numbers, self.project(vectors)], dim=1)


def from_separate_entries(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of a network of version 1, whose picture and mask each entered by a convolution without neighbours.

    That is this entry with zeros for the ring and for the mask's part of the convolution, and a table of two vectors
    that differ in what is known alone: a one in the first entry, or none.
    """
    rest = dict(tensors)
    picture, mask = rest.pop("enter_picture.weight"), rest.pop("enter_mask.weight")
    biases = rest.pop("enter_picture.bias"), rest.pop("enter_mask.bias")
    planes, quarter = picture.shape[1], len(mask)
    embed = mask.new_zeros(2, quarter)
    embed[0, 0] = 1.0
    project = mask.new_zeros(quarter, planes, quarter, *mask.shape[2:])
    project[:, :, 0] = mask
    return {
        **rest,
        "enter.convolve.weight": F.pad(torch.cat([picture, torch.zeros_like(picture)], dim=1), (1, 1, 1, 1)),
        "enter.convolve.bias": biases[0],
        "enter.embed.weight": embed,
        "enter.project.weight": project.flatten(1, 2),
        "enter.project.bias": biases[1],
    }
