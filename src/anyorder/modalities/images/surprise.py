r"""How surprising a pixel is once k others are known, measured on held-out pictures.

Under a random order the mean surprise $\ell(k) = -\mathrm{E} \log p(x_i \mid k \text{ others})$ depends on k alone
(ARDM section 3.3), and decides where few network calls should begin (:mod:`anyorder.model.few_steps`). It is measured
at some k and read off between them. In coupled colour it is that of a pixel with all of its channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from anyorder.data.images import Pictures
from anyorder.errors import UserError
from anyorder.masking.cardinality import masks_of_size
from anyorder.modalities.images.core import encoded
from anyorder.model import AnyOrderModel, row_chunks
from anyorder.support.boundary import field
from anyorder.support.checks import inside
from anyorder.support.threads import answering


def elements(model: AnyOrderModel) -> int:
    """What is drawn one after the other: pixels whose channels are coupled, else values."""
    return model.variables // model.channels_in_turn


@answering
@torch.no_grad()
def measured_surprise(
    model: AnyOrderModel, pictures: Pictures, points: int, seed: int
) -> tuple[list[int], list[float]]:
    """At which numbers of known elements, and the nats of an unknown one then; the seed decides which are known."""
    values, count, channels = encoded(model, pictures), elements(model), model.channels_in_turn
    generator = torch.Generator().manual_seed(seed)
    at = np.unique(np.linspace(0, count - 1, min(points, count)).round().astype(int))
    nats = []
    for size in at:
        known = masks_of_size(torch.full((len(values),), int(size)), count, generator)
        known = known.repeat_interleave(channels, dim=1)
        total = 0.0
        for rows in row_chunks(model, len(values)):
            part, given = values[rows].to(model.device), known[rows].to(model.device)
            features = model.staged_pass(part, given, None)
            total -= float(model.heads.log_prob_beside(features, part).double().where(~given, 0.0).sum())
        nats.append(total / (len(values) * (count - int(size))))
    # A pixel cannot become more surprising by knowing more: noise of the measurement is smoothed away.
    return at.tolist(), [round(float(one), 6) for one in np.minimum.accumulate(nats)]


def between(known: Sequence[int], nats: Sequence[float], count: int) -> tuple[float, ...]:
    """The surprise at every number of known elements."""
    return tuple(np.interp(np.arange(count), known, nats).tolist())


def check_surprise(found: Any, count: int) -> None:
    """Refuse what a file says of a measurement if it is none of so many elements."""
    if found is None:
        return
    with field("surprise"):
        known, nats = found["known"], found["nats"]
        whole = isinstance(known, list) and all(type(one) is int and 0 <= one < count for one in known)
        if not whole or not known or known != sorted(set(known)):
            raise UserError(f"known: expected rising whole numbers below {count}, got {known!r:.80}")
        numbers = isinstance(nats, list) and all(
            isinstance(one, int | float) and inside(one, "(-inf, inf)") for one in nats
        )
        if not numbers or len(nats) != len(known) or nats != sorted(nats, reverse=True):
            raise UserError(f"nats: expected {len(known)} numbers that do not rise, got {nats!r:.80}")
