"""Histograms of one variable, mixed, are again a histogram: its edges are all of theirs.

    sum_m w_m pi_mk / width_mk = pi_j / width_j   in the part j of bin k that no other edge divides,

since all have the same shape inside their bins. Mixtures of one family, mixed, are a mixture of all their components.
The same holds for either behind bounds and beside atoms. Merging them costs more than asking each for one density, and
pays where each would be asked for many values: for quantiles and entropies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.heads.binned import BinnedDistribution, Bins
from anyorder.heads.bounded import BoundedDistribution
from anyorder.heads.discretized_logistic_mixture import DiscretizedLogisticMixtureDistribution
from anyorder.heads.gaussian_mixture import GaussianMixtureDistribution
from anyorder.heads.spiked import SpikedDistribution

APART = 1e-12  # normal scores that are nearer are one edge: what lies between has no digits


@dataclasses.dataclass(frozen=True, eq=False)
class Joined:
    """Bins with the edges of several histograms, and the bin of each that each of them is a part of."""

    bins: Bins
    owners: Int[Tensor, "members bins"]

    @classmethod
    def of(cls, each: Sequence[Bins]) -> Joined:
        """Join histograms that share a warp and a lattice."""
        pairs = sorted(pair for bins in each for pair in zip(bins.scores[1:-1].tolist(), bins.edges, strict=True))
        kept = pairs[:1]
        for score, edge in pairs[1:]:
            if score - kept[-1][0] > APART * max(1.0, abs(score)):
                kept.append((score, edge))
        scores = torch.tensor([score for score, _ in kept], dtype=torch.float64)
        reached = scores + APART * scores.abs().clamp(min=1)
        # A bin is above its lower edge, and the lowest has none.
        owners = [torch.bucketize(reached, bins.scores[1:-1], right=True) for bins in each]
        joined = Bins(tuple(edge for _, edge in kept), each[0].warp, each[0].lattice)
        return cls(joined, torch.stack([torch.cat([own.new_zeros(1), own]) for own in owners]))


Joins = dict[tuple[Bins, ...], Joined]
"""What was joined before, kept by whoever asks again and again."""


def with_fewest(
    members: Sequence[Distribution], log_weights: Float[Tensor, "*batch members"], joins: Joins
) -> tuple[tuple[Distribution, ...], Float[Tensor, "*batch left"]]:
    """The mixture with fewer members: those of one shape are merged, where the first of them stood."""
    alike: dict[Any, list[int]] = {}
    for index, member in enumerate(members):
        shape = _shape(member)
        alike.setdefault(index if shape is None else shape, []).append(index)
    found = []
    for own in alike.values():
        share = log_weights[..., own].double().log_softmax(-1).expand(*members[own[0]].shape, -1)
        found.append(members[own[0]] if len(own) == 1 else _merge([members[index] for index in own], share, joins))
    return tuple(found), torch.stack([log_weights[..., own].logsumexp(-1) for own in alike.values()], dim=-1)


def _shape(member: Distribution) -> Any:
    """Distributions of the same shape can be merged; None for what cannot."""
    if isinstance(member, BinnedDistribution):
        return (member.bins.warp, member.bins.lattice)
    if isinstance(member, GaussianMixtureDistribution):
        return type(member)
    if isinstance(member, DiscretizedLogisticMixtureDistribution):
        return (type(member), member.lattice)
    if not isinstance(member, BoundedDistribution | SpikedDistribution):
        return None
    inner = _shape(member.base)
    wrapped = member.atoms if isinstance(member, SpikedDistribution) else (member.low, member.high)
    return None if inner is None else (type(member), wrapped, inner)


def _merge(members: Sequence[Any], log_weights: Float[Tensor, "*batch members"], joins: Joins) -> Distribution:
    """One distribution for members of one shape; the weights of each element add up to one."""
    first = members[0]
    if isinstance(first, BoundedDistribution):
        # What the bounds leave of a member is stretched by its own factor.
        inside = torch.stack([member.log_mass() for member in members], dim=-1)
        base = _merge([member.base for member in members], (log_weights - inside.double()).log_softmax(-1), joins)
        return dataclasses.replace(first, base=base)
    if isinstance(first, SpikedDistribution):
        each = torch.stack([member.log_weights.double() for member in members], dim=-1) + log_weights[..., None, :]
        base = _merge([member.base for member in members], each[..., 0, :].log_softmax(-1), joins)
        return SpikedDistribution(each.logsumexp(-1).to(first.log_weights.dtype), first.atoms, base)
    if isinstance(first, GaussianMixtureDistribution | DiscretizedLogisticMixtureDistribution):
        shares = zip(members, log_weights.unbind(-1), strict=True)
        logits = torch.cat([one.logits.double().log_softmax(-1) + share[..., None] for one, share in shares], dim=-1)
        means, scales = (torch.cat([getattr(one, name) for one in members], -1) for name in ("means", "log_scales"))
        return dataclasses.replace(first, logits=logits.to(means.dtype), means=means, log_scales=scales)
    key = tuple(member.bins for member in members)
    if key not in joins:
        joins[key] = Joined.of(key)
    bins, device = joins[key].bins, first.logits.device
    height = torch.full((), -torch.inf, dtype=torch.float64, device=device)
    for member, owner, log_weight in zip(members, joins[key].owners.to(device), log_weights.unbind(-1), strict=True):
        own = member.logits.double().log_softmax(-1) - member.bins.log_widths.to(device)
        height = torch.logaddexp(height, own[..., owner] + log_weight[..., None])
    return BinnedDistribution((height + bins.log_widths.to(device)).to(first.logits.dtype), bins)
