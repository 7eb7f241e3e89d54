"""Integrals over a mixture on panels that are fine wherever some component is narrow.

Every component puts breakpoints at a few multiples of its scale; between neighbouring breakpoints of the union stands a
Gauss-Legendre rule. A narrow component on top of a broad one is resolved, where rules tied to one component miss it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.support.legendre import legendre

PANEL_NODES = 4  # of the rule on each panel
MANY = 1 << 13  # components of a batch, beyond which each has fewer nodes
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
AT_ONCE = 1 << 20  # numbers held at once, which bounds the memory, not the result; more would leave the cache


def panels(
    means: Float[Tensor, "*batch components"],
    scales: Float[Tensor, "*batch components"],
    offsets: tuple[float, ...],
    kinks: tuple[float, ...] = (),
) -> tuple[Float[Tensor, "*batch nodes"], Float[Tensor, "*batch nodes"]]:
    """Nodes and weights of the composite rule with breakpoints at mean + scale * offset.

    ``kinks`` are further breakpoints, where the integrand is not smooth.
    """
    reach = torch.tensor(offsets, dtype=means.dtype, device=means.device)
    breaks = (means[..., None] + scales[..., None] * reach).flatten(-2)
    if kinks:
        fixed = torch.tensor(kinks, dtype=means.dtype, device=means.device)
        breaks = torch.cat([breaks, fixed.expand(*breaks.shape[:-1], -1)], dim=-1)
    return composite(breaks)


def composite(
    breaks: Float[Tensor, "*batch breaks"], low: float = -math.inf, high: float = math.inf, count: int = PANEL_NODES
) -> tuple[Float[Tensor, "*batch nodes"], Float[Tensor, "*batch nodes"]]:
    """Nodes and weights of the composite rule between neighbouring ``breaks``, in any order, within [low, high].

    ``count`` nodes stand on every panel.
    """
    breaks = breaks.clamp(low, high).sort(-1).values
    nodes, weights = (torch.as_tensor(part, dtype=breaks.dtype, device=breaks.device) for part in legendre(count))
    half = breaks.diff(dim=-1)[..., None] / 2
    return (breaks[..., :-1, None] + half * (1 + nodes)).flatten(-2), (half * weights).flatten(-2)


def tail_breaks(low: float, high: float, scale: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch breaks"]:
    """Breakpoints inside [low, high] near its finite ends: all that is left of a density whose bulk lies outside."""
    steps = torch.tensor([0.0, *(2.0**power for power in range(-8, 4))], dtype=scale.dtype, device=scale.device)
    parts = [sign * steps * scale[..., None] + end for end, sign in ((low, 1), (high, -1)) if math.isfinite(end)]
    return torch.cat(parts, dim=-1) if parts else scale.new_zeros(*scale.shape, 0)


def by_component(
    function: Callable[[Tensor], Tensor],
    logits: Float[Tensor, "*batch components"],
    means: Float[Tensor, "*batch components"],
    log_scales: Float[Tensor, "*batch components"],
    nodes: tuple[float, ...],
) -> Float[Tensor, "*batch"]:
    """E[function] as the mean over equally probable ``nodes`` of each component, weighted by the components."""
    points = torch.tensor(nodes, dtype=torch.float64, device=means.device)
    values = function(means.double()[..., None] + log_scales.double().exp()[..., None] * points)
    return (logits.double().softmax(-1) * values.mean(dim=-1)).sum(dim=-1)


def within_components(
    function: Callable[[Tensor], Tensor],
    log_density: Callable[[Tensor], Tensor],
    parts: tuple[Tensor, Tensor, Tensor],
    ends: tuple[float, float],
    steps: tuple[float, ...] = (),
) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
    """The integrals of a mixture's density times ``function``, and of the density alone, from one end to the other.

    A sum over components, each on panels of its own: the work grows with their number and not with its square, as it
    does where the logarithm of the whole density is wanted. ``parts``: logits, means and log scales; ``log_density``:
    of a component in its own scales. The panels are narrow, since ``function`` may bend anywhere; in a large batch they
    are twice as wide and have half the nodes. ``steps``: where ``function`` jumps, and panels end.
    """
    logits, means, log_scales = (part.double() for part in parts)
    fine = logits.numel() <= MANY

    def part(logits: Tensor, means: Tensor, scales: Tensor) -> Tensor:
        points, masses = component_rule(log_density, means, scales, ends, steps, fine=fine)
        share = logits.softmax(-1)[..., None] * masses
        return torch.stack([(share * function(points)).sum((-2, -1)), share.sum((-2, -1))], dim=-1)

    shape, count = logits.shape[:-1], logits.shape[-1]
    flat = [tensor.reshape(-1, count) for tensor in (logits, means, log_scales.exp())]
    nodes, edges = _panels(fine)
    size = max(1, AT_ONCE // (nodes * len(edges) * count))
    found = [part(*(tensor[start : start + size] for tensor in flat)) for start in range(0, len(flat[0]), size)]
    total, mass = (torch.cat(found) if found else logits.new_zeros(0, 2)).reshape(*shape, 2).unbind(-1)
    return total, mass


def component_rule(
    log_density: Callable[[Tensor], Tensor],
    means: Float[Tensor, "*batch components"],
    scales: Float[Tensor, "*batch components"],
    ends: tuple[float, float],
    steps: tuple[float, ...] = (),
    *,
    fine: bool = True,
) -> tuple[Float[Tensor, "*batch components nodes"], Float[Tensor, "*batch components nodes"]]:
    """The points of :func:`within_components`, and how much of its component each of them stands for."""
    nodes, edges = _panels(fine)
    edges = edges.to(means.device)
    breaks = edges.expand(*means.shape, -1)
    if steps:
        jumps = (torch.tensor(steps, dtype=means.dtype, device=means.device) - means[..., None]) / scales[..., None]
        breaks = torch.cat([breaks, jumps.clamp(edges[0], edges[-1])], dim=-1)
    if any(math.isfinite(end) for end in ends):
        first, last = ((end - means) / scales if math.isfinite(end) else torch.full_like(means, end) for end in ends)
        breaks = breaks.clamp(first[..., None], last[..., None])
    standard, weights = composite(breaks, count=nodes)
    return means[..., None] + scales[..., None] * standard, weights * log_density(standard).exp()


def log_normal(standard: Tensor) -> Tensor:
    """The log density of a standard normal."""
    return -0.5 * standard.square() - HALF_LOG_TWO_PI


def _panels(fine: bool) -> tuple[int, Float[Tensor, " edges"]]:
    """How many nodes a panel has, and the edges of the panels of a component, in its own scales."""
    return (PANEL_NODES, _edges(4)) if fine else (PANEL_NODES // 2, _edges(2))


@functools.cache
def _edges(a_scale: int) -> Float[Tensor, " edges"]:
    """Edges of the panels of a single component: so many a scale up to five, and a few beyond."""
    inner = [step / a_scale for step in range(-5 * a_scale, 5 * a_scale + 1)]
    return torch.tensor([-9.0, -7.0, -6.0, *inner, 6.0, 7.0, 9.0], dtype=torch.float64)


def in_parts(
    function: Callable[..., Tensor], cost: int, *tensors: Float[Tensor, "*batch components"]
) -> Float[Tensor, "*batch"]:
    """``function`` of the tensors, evaluated on parts of the batch so that ``cost`` numbers per element fit."""
    shape = tensors[0].shape[:-1]
    flat = [tensor.reshape(-1, tensor.shape[-1]) for tensor in tensors]
    if len(flat[0]) == 0:
        return tensors[0].new_zeros(shape)
    size = max(1, AT_ONCE // max(cost, 1))
    parts = [slice(start, start + size) for start in range(0, len(flat[0]), size)]
    return torch.cat([function(*(tensor[part] for tensor in flat)) for part in parts]).view(shape)
