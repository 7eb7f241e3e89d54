r"""Distributions of one variable, mixed, are again one distribution, where they are of one family.

$$\sum_m w_m \sum_k \pi_{mk} B_{mk}(u) = \sum_{(m, k)} (w_m \pi_{mk})\, B_{mk}(u)$$

Mixtures of a family, mixed, are a mixture of all their components. Histograms are one with the bins of them all: since
every B is linear between its breakpoints, so is the sum between those of all. Levels are levels with the mean
probabilities. The same holds for each of them behind bounds and beside atoms.

Two ways lead there. :func:`folded` takes members whose features came from one head, which are one batch with a
dimension for the member: next to no work. :func:`with_fewest` takes any members. For histograms it costs more than to
ask each of them for one density, and pays where each would be asked for many values: for quantiles and entropies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.curves import Components, Curve, Mixed
from anyorder.heads.bernoulli import BernoulliDistribution
from anyorder.heads.binned import BinnedDistribution
from anyorder.heads.bins import Bins, Histogram
from anyorder.heads.bounded import BoundedDistribution
from anyorder.heads.categorical import CategoricalDistribution
from anyorder.heads.discretized_logistic_mixture import DiscretizedLogisticMixtureDistribution
from anyorder.heads.gaussian_mixture import GaussianMixtureDistribution
from anyorder.heads.spiked import SpikedDistribution
from anyorder.variables.warp import Warp

Joins = dict[tuple[Bins, ...], Bins]
"""What was joined before, kept by whoever asks again and again."""


def folded(bundle: Distribution, log_weights: Float[Tensor, "*batch members"]) -> Distribution | None:
    """The mixture of a bundle of shape [*batch, members] over its last dimension; None where its family has none.

    The weights of each element add up to one.
    """
    if isinstance(bundle, BoundedDistribution):
        within, inside = _without_bounds(log_weights, bundle.log_mass(), bundle)
        base = folded(bundle.base, within)
        return None if base is None else dataclasses.replace(bundle, base=base, log_inside=inside)
    if isinstance(bundle, SpikedDistribution):
        within, mixed = _without_atoms(log_weights, bundle.log_weights)
        base = folded(bundle.base, within)
        return None if base is None else SpikedDistribution(mixed, bundle.atoms, base)
    if isinstance(bundle, GaussianMixtureDistribution | DiscretizedLogisticMixtureDistribution):
        logits = bundle.logits.double().log_softmax(-1) + log_weights[..., None]
        means, scales = bundle.means.flatten(-2), bundle.log_scales.flatten(-2)
        return dataclasses.replace(bundle, logits=logits.flatten(-2).to(means.dtype), means=means, log_scales=scales)
    levels = _log_probs(bundle)
    return None if levels is None else _mean_levels(log_weights, levels)


def with_fewest(
    members: Sequence[Distribution], log_weights: Float[Tensor, "*batch members"], joins: Joins
) -> tuple[tuple[Distribution, ...], Float[Tensor, "*batch left"]]:
    """The mixture with fewer members: those of one shape are merged, where the first of them stood."""
    alike = of_one_shape(members)
    if len(alike) == len(members):
        return tuple(members), log_weights
    found = []
    for own in alike:
        share = log_weights[..., own].double().log_softmax(-1).expand(*members[own[0]].shape, -1)
        found.append(members[own[0]] if len(own) == 1 else _merge([members[index] for index in own], share, joins))
    return tuple(found), torch.stack([log_weights[..., own].logsumexp(-1) for own in alike], dim=-1)


def mixed_curve(curves: Sequence[Curve], weights: Sequence[float], joins: Joins) -> Curve:
    """The mixture of curves: components of one family are one of them, and so are histograms of one warp."""
    weighed = list(zip(weights, curves, strict=True))
    found = [(weight, curve) for weight, curve in weighed if not isinstance(curve, Components | Histogram)]
    for logistic in (False, True):
        own = [(w, curve) for w, curve in weighed if isinstance(curve, Components) and curve.logistic == logistic]
        if own:
            shares = np.concatenate([weight * curve.weights for weight, curve in own])
            means, scales = (np.concatenate([getattr(curve, name) for _, curve in own]) for name in ("means", "scales"))
            found.append((1.0, Components(shares, means, scales, logistic)))
    by_warp: dict[Warp, list[tuple[float, Histogram]]] = {}
    for weight, curve in weighed:
        if isinstance(curve, Histogram):
            by_warp.setdefault(curve.bins.warp, []).append((weight, curve))
    for same in by_warp.values():
        bins = same[0][1].bins if len(same) == 1 else _joined(tuple(curve.bins for _, curve in same), joins)
        found.append((1.0, Histogram(bins, np.concatenate([weight * curve.probs for weight, curve in same]))))
    return Mixed([curve for _, curve in found], [weight for weight, _ in found])


def of_one_shape(laws: Sequence[Distribution]) -> list[list[int]]:
    """Which of these laws can be rows of one batch (:func:`rows_together`), by their numbers."""
    found: dict[Any, list[int]] = {}
    for number, law in enumerate(laws):
        shape = _shape(law)
        found.setdefault(number if shape is None else shape, []).append(number)
    return list(found.values())


def rows_together(laws: Sequence[Distribution], joins: Joins) -> Distribution:
    """The rows of several batches of one shape, one after the other, as one batch.

    Histograms are histograms over the bins of all. Mixtures of few components get some that are never drawn.
    """
    wrapped: Any = laws[0]
    each: Sequence[Any] = laws
    if len(laws) == 1:
        return laws[0]
    if isinstance(wrapped, BoundedDistribution):
        base = rows_together([law.base for law in each], joins)
        return dataclasses.replace(wrapped, base=base, log_inside=None)  # the base says it for all rows at once
    if isinstance(wrapped, SpikedDistribution):
        base = rows_together([law.base for law in each], joins)
        return SpikedDistribution(torch.cat([law.log_weights for law in each]), wrapped.atoms, base)
    if isinstance(wrapped, GaussianMixtureDistribution | DiscretizedLogisticMixtureDistribution):
        most = max(law.logits.shape[-1] for law in each)
        fills = {"logits": -torch.inf, "means": 0.0, "log_scales": 0.0}
        logits, means, log_scales = (
            torch.cat([F.pad(part := getattr(law, name), (0, most - part.shape[-1]), value=fill) for law in each])
            for name, fill in fills.items()
        )
        return dataclasses.replace(wrapped, logits=logits, means=means, log_scales=log_scales)
    if isinstance(wrapped, BinnedDistribution):
        bins = _joined(tuple(law.bins for law in each), joins)
        rows, start = [], 0
        for law in each:
            after = bins.count - start - law.bins.count
            rows.append(F.pad(law.logits, (start, after), value=-torch.inf))
            start += law.bins.count
        return BinnedDistribution(torch.cat(rows), bins)
    levels = [part for part in map(_log_probs, laws) if part is not None]
    return CategoricalDistribution(torch.cat(levels))


def cut_together(
    members: Sequence[Distribution], log_weights: Float[Tensor, "*batch members"]
) -> tuple[tuple[Distribution, ...], Float[Tensor, "*batch members"], Tensor, BoundedDistribution] | None:
    """Where all members have the same bounds: what they say without them, with which weights, and what is inside.

    The mixture of the first with the second, cut at the bounds (those of the last), is that of the members.
    """
    bounded = [member for member in members if isinstance(member, BoundedDistribution)]
    if len(bounded) < len(members) or len({(member.low, member.high, member.firm) for member in bounded}) > 1:
        return None
    masses = torch.stack([member.log_mass() for member in bounded], dim=-1)
    within, inside = _without_bounds(log_weights, masses, bounded[0])
    return tuple(member.base for member in bounded), within, inside, bounded[0]


def _without_bounds(
    log_weights: Float[Tensor, "*batch members"],
    log_masses: Float[Tensor, "*batch members"],
    bounded: BoundedDistribution,
) -> tuple[Float[Tensor, "*batch members"], Float[Tensor, "*batch"]]:
    """The weights of what members say without their bounds, and the log mass that the bounds leave of that mixture.

    What the bounds leave of a member is stretched by its own factor: with w'_m = w_m / mass_m / Z the mixture has the
    mass sum_m w'_m mass_m = 1 / Z inside.
    """
    stretched = log_weights - log_masses.double()
    return stretched.log_softmax(-1), -stretched.logsumexp(-1).to(bounded.dtype)


def _without_atoms(
    log_weights: Float[Tensor, "*batch members"], each: Float[Tensor, "*batch members spikes"]
) -> tuple[Float[Tensor, "*batch members"], Float[Tensor, "*batch spikes"]]:
    """The weights of what members say beside their atoms, and those of the continuum (first) and the atoms of all."""
    weighed = each.double() + log_weights[..., None]
    return weighed[..., 0].log_softmax(-1), weighed.logsumexp(-2).to(each.dtype)


def _mean_levels(
    log_weights: Float[Tensor, "*batch members"], levels: Float[Tensor, "*batch members levels"]
) -> CategoricalDistribution:
    """Levels with the mean probabilities."""
    return CategoricalDistribution((levels.double() + log_weights[..., None]).logsumexp(-2).to(levels.dtype))


def _log_probs(member: Distribution) -> Float[Tensor, "*batch levels"] | None:
    """The log-probability of every level; None where there are none."""
    if isinstance(member, CategoricalDistribution):
        return member.logits.log_softmax(-1)
    if isinstance(member, BernoulliDistribution):
        return F.logsigmoid(torch.stack([-member.logit, member.logit], dim=-1))
    return None


def _shape(member: Distribution) -> Any:
    """Distributions of the same shape can be merged; None for what cannot."""
    if isinstance(member, BinnedDistribution):
        return (member.bins.warp, member.bins.lattice)
    if isinstance(member, GaussianMixtureDistribution):
        return type(member)
    if isinstance(member, DiscretizedLogisticMixtureDistribution):
        return (type(member), member.lattice)
    if isinstance(member, BernoulliDistribution | CategoricalDistribution):
        return CategoricalDistribution
    if not isinstance(member, BoundedDistribution | SpikedDistribution):
        return None
    inner = _shape(member.base)
    wrapped = member.atoms if isinstance(member, SpikedDistribution) else (member.low, member.high, member.firm)
    return None if inner is None else (type(member), wrapped, inner)


def _merge(members: Sequence[Any], log_weights: Float[Tensor, "*batch members"], joins: Joins) -> Distribution:
    """One distribution for members of one shape; the weights of each element add up to one."""
    first = members[0]
    if isinstance(first, BoundedDistribution):
        masses = torch.stack([member.log_mass() for member in members], dim=-1)
        within, inside = _without_bounds(log_weights, masses, first)
        base = _merge([member.base for member in members], within, joins)
        return dataclasses.replace(first, base=base, log_inside=inside)
    if isinstance(first, SpikedDistribution):
        within, mixed = _without_atoms(log_weights, torch.stack([member.log_weights for member in members], dim=-2))
        return SpikedDistribution(mixed, first.atoms, _merge([member.base for member in members], within, joins))
    if isinstance(first, GaussianMixtureDistribution | DiscretizedLogisticMixtureDistribution):
        joined = _weighed(members, log_weights)
        means, scales = (torch.cat([getattr(one, name) for one in members], -1) for name in ("means", "log_scales"))
        return dataclasses.replace(first, logits=joined.to(means.dtype), means=means, log_scales=scales)
    if isinstance(first, CategoricalDistribution | BernoulliDistribution):
        each_level = [part for part in map(_log_probs, members) if part is not None]
        return _mean_levels(log_weights, torch.stack(each_level, dim=-2))
    bins = _joined(tuple(member.bins for member in members), joins)
    return BinnedDistribution(_weighed(members, log_weights).to(first.logits.dtype), bins)


def _weighed(members: Sequence[Any], log_weights: Float[Tensor, "*batch members"]) -> Float[Tensor, "*batch parts"]:
    """The logits of the parts of all members, one member's after the other's."""
    shares = zip(members, log_weights.unbind(-1), strict=True)
    return torch.cat([one.logits.double().log_softmax(-1) + share[..., None] for one, share in shares], dim=-1)


def _joined(each: tuple[Bins, ...], joins: Joins) -> Bins:
    if each not in joins:
        joins[each] = Bins.joined(each)
    return joins[each]
