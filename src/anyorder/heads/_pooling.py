"""Histograms of one variable, mixed, are again a histogram: its edges are all of theirs.

    sum_m w_m pi_mk / width_mk = pi_j / width_j   in the part j of bin k that no other edge divides,

since all have the same shape inside their bins. The same holds for histograms behind bounds and beside atoms. So many
forests cost no more than one when their blend is asked for densities, quantiles and entropies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.heads.base import Distribution
from anyorder.heads.binned import BinnedDistribution, Bins
from anyorder.heads.bounded import BoundedDistribution
from anyorder.heads.spiked import SpikedDistribution


def pooled(
    members: Sequence[Distribution], log_weights: Float[Tensor, " members"]
) -> tuple[tuple[Distribution, ...], Float[Tensor, " left"]]:
    """The same mixture with fewer members: histograms of one shape have become one, where the first of them stood."""
    alike: dict[Any, list[int]] = {}
    for place, member in enumerate(members):
        shape = _shape(member)
        alike.setdefault(place if shape is None else shape, []).append(place)
    found = [members[own[0]] if len(own) == 1 else _together(members, own, log_weights) for own in alike.values()]
    return tuple(found), torch.stack([log_weights[own].logsumexp(0) for own in alike.values()])


def _together(members: Sequence[Distribution], own: list[int], log_weights: Tensor) -> Distribution:
    share = log_weights[own].double().log_softmax(0)
    return _pool([members[place] for place in own], share.expand(*members[own[0]].shape, -1))


def _shape(member: Distribution) -> Any:
    """Distributions of the same shape can be pooled; None for what cannot."""
    if isinstance(member, BinnedDistribution):
        return (member.bins.warp, member.bins.lattice)
    if not isinstance(member, BoundedDistribution | SpikedDistribution):
        return None
    inner = _shape(member.base)
    wrapped = member.atoms if isinstance(member, SpikedDistribution) else (member.low, member.high)
    return None if inner is None else (type(member), wrapped, inner)


def _pool(members: Sequence[Any], log_weights: Float[Tensor, "*batch members"]) -> Distribution:
    """One distribution for members of one shape; the weights of each element add up to one."""
    first = members[0]
    if isinstance(first, BoundedDistribution):
        # What the bounds leave of a member is stretched by its own factor.
        inside = torch.stack([member.log_mass() for member in members], dim=-1)
        base = _pool([member.base for member in members], (log_weights - inside.double()).log_softmax(-1))
        return dataclasses.replace(first, base=base)
    if isinstance(first, SpikedDistribution):
        each = torch.stack([member.log_weights.double() for member in members], dim=-1) + log_weights[..., None, :]
        base = _pool([member.base for member in members], each[..., 0, :].log_softmax(-1))
        return SpikedDistribution(each.logsumexp(-1).to(first.log_weights.dtype), first.atoms, base)
    bins, owners = _joined(*(member.bins for member in members))
    heights = [
        (member.logits.double().log_softmax(-1) - member.bins.log_widths.to(member.logits.device))[..., owner]
        for member, owner in zip(members, owners.to(first.logits.device), strict=True)
    ]
    height = (torch.stack(heights, dim=-1) + log_weights[..., None, :]).logsumexp(-1)
    return BinnedDistribution((height + bins.log_widths.to(height.device)).to(first.logits.dtype), bins)


@lru_cache(maxsize=4096)
def _joined(*each: Bins) -> tuple[Bins, Int[Tensor, "members bins"]]:
    """Bins with all edges, and the bin of each member that each of them is a part of."""
    edges = torch.tensor(sorted({edge for bins in each for edge in bins.edges}), dtype=torch.float64)
    joined = Bins(tuple(edges.tolist()), each[0].warp, each[0].lattice)
    # A bin is above its lower edge: the lowest one has none.
    owners = [torch.bucketize(edges, torch.tensor(bins.edges, dtype=torch.float64), right=True) for bins in each]
    return joined, torch.stack([torch.cat([own.new_zeros(1), own]) for own in owners])
