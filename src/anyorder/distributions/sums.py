"""Expectations under distributions that are wrapped, blended or cut.

E f(X) = sum_x P(x) f(x) over a lattice: all points between the far quantiles are summed. Where there are too many to
list, neighbours share a block: a block's probability is exact (a difference of the cdf) and the function is taken at
its middle, and two widths of blocks are set against each other; the error is some 1e-6 of the spread. On a line, the
log of a mixture bends and jumps wherever one of its parts does: a rule for it needs the breakpoints of them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.quadrature import composite
from anyorder.variables.lattice import Lattice

LEFT_OUT = 1e-11  # probability beyond the points that are summed, on either side
MOST_POINTS = 4096
MOST_VALUES = 1 << 19  # points times elements of a batch
LARGE_BATCH = 32
BLOCKS = 1024  # on either side of the median, each a fixed share of what is left beyond it
AT_ONCE = 1 << 20  # values held at once: bounds the memory, not the result


def lattice_of(distribution: Distribution) -> Lattice | None:
    """The points that a distribution lives on, found through its wrappers; None on a line and for levels."""
    found = getattr(distribution, "lattice", None)
    if isinstance(found, Lattice):
        return found
    inner = getattr(distribution, "base", None) or next(iter(getattr(distribution, "members", ())), None)
    return lattice_of(inner) if isinstance(inner, Distribution) else None


def lattice_mean(
    distribution: Distribution, lattice: Lattice, function: Callable[[Tensor], Tensor]
) -> Float[Tensor, "*batch"] | None:
    """E[function(X)] in float64; ``function`` is given values of shape [points, *batch].

    None for a large batch over many points, for which this is too slow.
    """
    level = torch.full(distribution.shape, LEFT_OUT, dtype=torch.float64)
    with torch.no_grad():
        first, last = (lattice.index(distribution.quantile(end).double()) for end in (level, 1 - level))
    count = int((last - first).max()) + 1 if first.numel() else 1
    if count > min(MOST_POINTS, MOST_VALUES // max(1, first.numel())):
        return _by_blocks(distribution, lattice, function) if first.numel() <= LARGE_BATCH else None
    total, mass = torch.zeros_like(first), torch.zeros_like(first)
    for offset in torch.arange(count, dtype=torch.float64).split(max(1, AT_ONCE // max(1, first.numel()))):
        index = first + offset.reshape(-1, *(1,) * first.ndim)
        points = lattice.at(torch.minimum(index, last))
        share = distribution.log_prob(points).double().exp() * (index <= last)
        total = total + torch.where(share > 0, share * function(points), 0.0).sum(0)
        mass = mass + share.sum(0)
    return total / mass


def _by_blocks(
    distribution: Distribution, lattice: Lattice, function: Callable[[Tensor], Tensor]
) -> Float[Tensor, "*batch"]:
    tail = torch.logspace(math.log10(LEFT_OUT), math.log10(0.5), BLOCKS + 1, dtype=torch.float64)
    levels = torch.cat([tail, 1 - tail.flip(0)[1:]])
    levels = levels.reshape(-1, *(1,) * len(distribution.shape)).expand(-1, *distribution.shape)
    with torch.no_grad():
        last = lattice.index(distribution.quantile(levels).double())
    # Blocks twice as wide have four times the error: what is left of both is of higher order (Richardson).
    wide, narrow = (_block_mean(distribution, lattice, function, edges) for edges in (last[::2], last))
    return (4 * narrow - wide) / 3


def _block_mean(
    distribution: Distribution, lattice: Lattice, function: Callable[[Tensor], Tensor], last: Tensor
) -> Float[Tensor, "*batch"]:
    """The mean over blocks of points, each reaching up to the next index of ``last``."""
    reached = distribution.cdf(lattice.at(last)).double()
    # The first block is a point, or next to nothing.
    share = torch.cat([reached[:1], reached.diff(dim=0)]).clamp(min=0.0)
    points = lattice.at(torch.cat([last[:1], (last[:-1] + 1 + last[1:]) / 2]))
    return torch.where(share > 0, share * function(points), 0.0).sum(0) / share.sum(0)


def joint_rule(
    parts: Sequence[Distribution], low: float, high: float
) -> tuple[Float[Tensor, "nodes *batch"], Float[Tensor, "nodes *batch"]] | None:
    """Points and weights over [low, high] on panels as fine as every part's own; None where one has no rule."""
    breaks = []
    for part in parts:
        rule = part.nodes(low, high)
        if rule is None:
            return None
        # Every fourth node, one of each panel: where they are dense, so are the panels.
        breaks += [rule[0][..., ::4], rule[0][..., -1:]]
        jumps = [*_jumps(part), *(end for end in (low, high) if math.isfinite(end))]
        breaks.append(torch.tensor(jumps, dtype=torch.float64, device=rule[0].device).expand(*part.shape, -1))
    points, weights = composite(torch.cat(breaks, dim=-1), low, high)
    return points.movedim(-1, 0), weights.movedim(-1, 0)


def rule_mean(
    rule: tuple[Tensor, Tensor], density: Distribution, function: Callable[[Tensor, Tensor], Tensor]
) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
    """The mean of a function by a rule, and what the rule finds in all, by which it is divided.

    The function is given the points and the logarithm of the density there.
    """
    total = found = torch.zeros(density.shape, dtype=torch.float64, device=rule[0].device)
    size = max(1, (AT_ONCE >> 4) // max(1, found.numel()))  # a density holds several numbers for each value
    for points, weights in zip(*(part.split(size) for part in rule), strict=True):
        log_density = density.log_prob(points).double()
        share = weights * log_density.exp()
        total = total + torch.where(share > 0, share * function(points, log_density), 0.0).sum(0)
        found = found + share.sum(0)
    return total / found, found


def _jumps(part: Distribution) -> tuple[float, ...]:
    """Where the density steps or bends: at the ends of its pieces, if it has any."""
    inner = getattr(part, "base", None)
    found: tuple[float, ...] = getattr(part, "jumps", getattr(getattr(part, "bins", None), "kinks", ()))
    return (*found, *_jumps(inner)) if isinstance(inner, Distribution) else found
