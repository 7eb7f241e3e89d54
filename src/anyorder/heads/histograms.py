"""Histograms of one variable, mixed, are again a histogram, with the bins of them all.

    sum_m w_m sum_k pi_mk B_mk(u) = sum_(m, k) (w_m pi_mk) B_mk(u)

Since every B is linear between its breakpoints, so is the sum between those of all. Mixtures of one family, mixed, are
a mixture of all their components. The same holds for either behind bounds and beside atoms. Merging them costs more
than asking each for one density, and pays where each would be asked for many values: for quantiles and entropies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.heads.binned import BinnedDistribution
from anyorder.heads.bins import Bins
from anyorder.heads.bounded import BoundedDistribution
from anyorder.heads.discretized_logistic_mixture import DiscretizedLogisticMixtureDistribution
from anyorder.heads.gaussian_mixture import GaussianMixtureDistribution
from anyorder.heads.spiked import SpikedDistribution

Joins = dict[tuple[Bins, ...], Bins]
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
        joined = torch.cat([one.logits.double().log_softmax(-1) + share[..., None] for one, share in shares], dim=-1)
        means, scales = (torch.cat([getattr(one, name) for one in members], -1) for name in ("means", "log_scales"))
        return dataclasses.replace(first, logits=joined.to(means.dtype), means=means, log_scales=scales)
    key = tuple(member.bins for member in members)
    if key not in joins:
        joins[key] = Bins.joined(key)
    logits = [
        member.logits.double().log_softmax(-1) + log_weight[..., None]
        for member, log_weight in zip(members, log_weights.unbind(-1), strict=True)
    ]
    return BinnedDistribution(torch.cat(logits, dim=-1).to(first.logits.dtype), joins[key])
