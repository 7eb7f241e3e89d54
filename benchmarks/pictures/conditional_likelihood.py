"""The likelihood of hidden pixels under a mask network: a sum over steps, some of which are drawn for every picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anyorder.modalities.images.core import encoded
from anyorder.modalities.images.model import ImageModel


@torch.no_grad()
def conditional(
    model: ImageModel,
    pictures: NDArray[np.uint8],
    known: NDArray[np.bool_],
    steps: int,
    *,
    calls: int | None = None,
    asked: NDArray[np.bool_] | None = None,
) -> NDArray[Any]:
    """-log p(missing | known) of every picture, its mean over all orders, estimated without bias, in nats.

    ``calls``: answered in so many equal groups, the pixels of a group independent given those before; by default one
    by one. ``steps`` of the groups are drawn for every picture, from equal shares of the way. ``asked``: the pixels it
    is about, all that are missing by default; others are never known.
    """
    values = encoded(model.core, pictures)
    mask = torch.from_numpy(known.reshape(len(known), -1))
    wanted = ~mask if asked is None else torch.from_numpy(asked.reshape(len(known), -1))
    missing = wanted.sum(dim=1)
    groups = missing.clamp(min=1) if calls is None else missing.clamp(1, calls)
    generator = torch.Generator().manual_seed(1)
    total = torch.zeros(len(values), dtype=torch.float64)
    for step in range(steps):
        way = (step + torch.rand(len(values), generator=generator)) / steps
        group = torch.minimum((way * groups).long(), groups - 1)
        start, end = (number * missing // groups for number in (group, group + 1))
        rank = torch.rand(mask.shape, generator=generator).masked_fill(~wanted, 2.0).argsort(1).argsort(1)
        context = mask | (rank < start[:, None])
        for part in torch.arange(len(values)).split(128):
            nats = model.core.log_prob_beside(values[part], context[part]).double()
            left = wanted[part] & ~context[part]
            mean = nats.where(left, 0.0).sum(dim=1) / left.sum(dim=1).clamp(min=1)
            total[part] -= mean * ((end - start) * groups)[part]
    return np.asarray((total / steps).numpy())
