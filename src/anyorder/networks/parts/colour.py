r"""Colour: one mixture for the channels of a pixel (PixelCNN++, Salimans et al. 2017), as one-dimensional answers.

A pixel (r, g, b) is a mixture whose components have means that depend on the channels before,

$$p(r, g, b) = \sum_k \pi_k\, p_k(r)\, p_k(g \mid r)\, p_k(b \mid r, g), \qquad
\mu_k(g \mid r) = \mu_k^g + a_k r, \quad \mu_k(b \mid r, g) = \mu_k^b + b_k r + c_k g,$$

each $p_k$ a discretised logistic. Answered channel by channel that is three one-dimensional mixtures of the same form:
green given red has the weights $\pi_k p_k(r)$ and the means above. So any head that is a mixture with 3K features can
stand behind it, and a variable remains one channel.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

CHANNELS = 3
PER_COMPONENT = 1 + CHANNELS + CHANNELS + 3  # weight, means, log scales, coefficients
STEEPEST = 7.0  # of |log scale|: as far as mixture heads go


def coupled(
    raw: Float[Tensor, "batch pixels numbers"],
    values: Float[Tensor, "batch pixels 3"],
    known: Bool[Tensor, "batch pixels 3"],
    levels: int,
) -> Float[Tensor, "batch pixels 3 features"]:
    """Features of all channels, each given those before it in its pixel that are ``known``.

    Where they are not, every component takes its own mean for them: the mixture then has the means of p(g) and p(b),
    though it is a little narrower than they are. No chain of a picture asks that; only who looks ahead does.
    """
    count = raw.shape[-1] // PER_COMPONENT
    parts = raw.split([count, CHANNELS * count, CHANNELS * count, 3 * count], dim=-1)
    logits = parts[0]
    means, scales, slopes = (part.unflatten(-1, (3, count)) for part in parts[1:])
    slopes = torch.tanh(slopes)
    seen = values.where(known, 0.0).clamp(-1, 1).to(raw.dtype)[..., None]
    weight = known.to(raw.dtype)[..., None]
    shifted = [means[..., 0, :]]
    red = torch.where(known[..., 0, None], seen[..., 0, :], shifted[0].clamp(-1, 1))
    shifted.append(means[..., 1, :] + slopes[..., 0, :] * red)
    green = torch.where(known[..., 1, None], seen[..., 1, :], shifted[1].clamp(-1, 1))
    shifted.append(means[..., 2, :] + slopes[..., 1, :] * red + slopes[..., 2, :] * green)
    posterior = [logits]
    for channel in range(CHANNELS - 1):
        mass = _log_mass(seen[..., channel, :], shifted[channel], scales[..., channel, :], levels)
        posterior.append(posterior[-1] + weight[..., channel, :] * mass)
    return torch.stack(
        [torch.cat([posterior[c], shifted[c], scales[..., c, :]], dim=-1) for c in range(CHANNELS)], dim=-2
    )


def _log_mass(value: Tensor, mean: Tensor, log_scale: Tensor, levels: int) -> Tensor:
    """log P of the level at ``value`` in -1..1, the outer ones reaching to infinity."""
    half = 1 / (levels - 1)
    narrow = torch.exp(-log_scale.clamp(-STEEPEST, STEEPEST))
    above, below = (value + half - mean) * narrow, (value - half - mean) * narrow
    inner = F.logsigmoid(above) + F.logsigmoid(-below) + torch.log(-torch.expm1(-(2 * half * narrow)))
    lowest, highest = value < -1 + half, value > 1 - half
    return torch.where(lowest, F.logsigmoid(above), torch.where(highest, F.logsigmoid(-below), inner))
