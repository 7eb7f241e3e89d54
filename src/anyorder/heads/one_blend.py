r"""The law of a blend for one question: quantiles and means along its curve in NumPy, all else by the mixture itself.

A question has one row, and its mixture a few dozen numbers: to make it takes many small steps, which cost far more in
torch than what is computed in them. Most questions are for quantiles and means. For those the mixture is made at once,
as a curve (:mod:`anyorder.distributions.curves`). With $c_m$ the cdf of what member $m$ says without its bounds
$[l, h]$, and $A_m$, $B_m$ its shares of $M_m = c_m(h) - c_m(l)$ beyond the ends,

$$p(x) = f(x) \sum_m \frac{w_m}{Z_m M_m}\, c_m'(x) \Big/ \sum_m \frac{w_m}{Z_m}, \qquad
Z_m = 1 + (f_- - 1) A_m + (f_+ - 1) B_m,$$

where the factors $f$ are those of :mod:`.beyond`, 1 without them. The mixture as :mod:`.blend` has it is made when
something else is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from anyorder.distributions.base import Distribution
from anyorder.distributions.curves import Between, Components, Curve, Mixed, Reweighed, standard_cdf
from anyorder.heads._mixture import MixtureHead
from anyorder.heads.base import Head
from anyorder.heads.binned import Binned
from anyorder.heads.bins import Bins, Histogram
from anyorder.heads.bounded import LITTLE, Bounded
from anyorder.heads.discretized_logistic_mixture import DiscretizedLogisticMixture
from anyorder.heads.gaussian_mixture import GaussianMixture
from anyorder.variables.lattice import Lattice

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]
Pair = tuple[float, float]

NO_ENDS, NO_FACTORS = (-math.inf, math.inf), (1.0, 1.0)
Method = TypeVar("Method", bound=Callable[..., Any])
CURVED = (GaussianMixture, DiscretizedLogisticMixture)


def _of_the_mixture(method: Method) -> Method:
    """A method that the mixture answers."""
    name = method.__name__

    def handed_on(self: OneBlend, *args: Any, **options: Any) -> Any:
        return getattr(self.base, name)(*args, **options)

    handed_on.__name__, handed_on.__doc__ = name, method.__doc__
    return cast(Method, handed_on)


@dataclass(frozen=True, eq=False)
class OneBlend(Distribution):
    """The mixture that ``features`` stand for; ``curves`` and ``whole`` make its curve and the mixture."""

    features: Float[Tensor, "*batch size"]
    lattice: Lattice | None
    curves: Curves
    whole: Callable[[], Distribution]

    @property
    def base(self) -> Distribution:
        """The mixture."""
        return self.whole() if self._traced else self._kept

    @cached_property
    def _kept(self) -> Distribution:
        return self.whole()

    @property
    def _traced(self) -> bool:
        """Whether a gradient could be lost with what is kept."""
        return torch.is_grad_enabled() and self.features.requires_grad

    @property
    def discrete(self) -> bool:
        return self.lattice is not None

    @property
    def shape(self) -> torch.Size:
        return self.features.shape[:-1]

    @cached_property
    def _curve(self) -> Curve | None:
        return self.curves.curve(self.features.detach().double().numpy().reshape(-1))

    def curve(self) -> Curve | None:
        return None if self._traced else self._curve

    @torch.no_grad()
    def quantile(self, level: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        if self._curve is None:
            return self.base.quantile(level)
        return self._curve.along(level, self.shape, self.lattice).to(self.features.dtype)

    def cdf(self, value: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        curve = self.curve() if self.lattice is None and not value.requires_grad else None
        if curve is None:
            return self.base.cdf(value)
        at = value.double().expand(np.broadcast_shapes(value.shape, self.shape))
        reached = curve.cdf(at.cpu().numpy().reshape(-1)).reshape(at.shape)
        return torch.from_numpy(reached).to(device=value.device, dtype=self.features.dtype)

    def expect(self, function: Callable[[Tensor], Tensor], *, fine: bool = True) -> Float[Tensor, "*batch"]:
        """By the rule of the curve, on a line."""
        curve = self.curve() if fine and self.lattice is None else None
        if curve is None or (rule := curve.rule(-math.inf, math.inf)) is None:
            return self.base.expect(function, fine=fine)
        points, masses = (torch.from_numpy(part) for part in rule)
        return ((masses * function(points)).sum() / masses.sum()).expand(self.shape)

    log_prob = _of_the_mixture(Distribution.log_prob)
    sample = _of_the_mixture(Distribution.sample)
    bracket = _of_the_mixture(Distribution.bracket)
    mass_at = _of_the_mixture(Distribution.mass_at)
    log_between = _of_the_mixture(Distribution.log_between)
    outside = _of_the_mixture(Distribution.outside)
    log_within = _of_the_mixture(Distribution.log_within)
    nodes = _of_the_mixture(Distribution.nodes)
    expect_within = _of_the_mixture(Distribution.expect_within)
    sample_within = _of_the_mixture(Distribution.sample_within)
    rows = _of_the_mixture(Distribution.rows)
    pieces = _of_the_mixture(Distribution.pieces)
    mean = _of_the_mixture(Distribution.mean)
    tempered = _of_the_mixture(Distribution.tempered)
    entropy = _of_the_mixture(Distribution.entropy)


@dataclass(frozen=True, eq=False)
class _Smooth:
    """Members that are mixtures of components, all of them with one head."""

    head: MixtureHead
    index: Places  # of the features of each member, [members, size]


@dataclass(frozen=True, eq=False)
class Curves:
    """How features become a curve: what does not depend on them is found once, for every question.

    Members come in the order of ``numbers``: first ``smooth`` ones, then those with histograms. ``index`` says where
    the logits of all their bins stand, ``starts`` where those of each begin, and ``held`` how much of each bin lies
    below the bounds, between them, and of that beyond either end; ``bins`` are those of all of them.
    """

    numbers: Places
    log_weights: Numbers
    gates: Places | None
    smooth: Sequence[_Smooth]
    logistic: bool
    points: Numbers  # the bounds, and between them the ends
    index: Places
    lost: Numbers
    starts: Places
    held: Numbers
    bins: Bins | None
    ends: Pair
    factors: Pair

    @cached_property
    def sizes(self) -> Places:
        """How many bins each member with a histogram has."""
        return np.diff(self.starts, append=len(self.lost))

    @cached_property
    def places(self) -> Places:
        """Where in the order of ``numbers`` each member comes; -1 for one that does not count."""
        found = np.full(len(self.log_weights), -1)
        found[self.numbers] = np.arange(len(self.numbers))
        return found

    @classmethod
    def of(
        cls,
        bundles: Sequence[tuple[Sequence[int], Head, Places]],
        log_weights: Numbers,
        gates: Places | None,
        ends: Pair,
        factors: Pair,
    ) -> Curves | None:
        """Those of a blend; None where its members have none.

        ``bundles``: the numbers of members with equal heads, the head, and where the features of each stand.
        """
        bounds = {_bounds(head) for _, head, _ in bundles}
        low, high = bounds.pop()
        bare = [(numbers, head.base if isinstance(head, Bounded) else head, index) for numbers, head, index in bundles]
        smooth = [(own, head, index) for own, head, index in bare if isinstance(head, CURVED)]
        binned = [(own, head.bins, index) for own, head, index in bare if isinstance(head, Binned)]
        lattices = {head.points for _, head, _ in bare}
        families = {type(head) for _, head, _ in smooth}
        if bounds or len(smooth) + len(binned) < len(bare) or len(lattices) > 1 or len(families) > 1:
            return None
        lattice = lattices.pop()
        if ((low, high) != NO_ENDS and lattice is not None) or len({bins.warp for _, bins, _ in binned}) > 1:
            return None
        first, last = _edges(ends, lattice)
        stretches = ((-math.inf, low), (low, high), (low, max(ends[0], low)), (min(ends[1], high), high))
        each = [bins for own, bins, _ in binned for _ in own]
        cut = low > -math.inf or high < math.inf
        return cls(
            numbers=np.array([number for own, _, _ in (*smooth, *binned) for number in own]),
            log_weights=log_weights,
            gates=gates,
            smooth=[_Smooth(head, index) for _, head, index in smooth],
            logistic=families == {DiscretizedLogisticMixture},
            points=np.array([low, max(first, low), min(last, high), high]),
            index=np.concatenate([np.zeros(0, np.int64), *(index.reshape(-1) for _, _, index in binned)]),
            lost=np.concatenate([np.zeros(0), *(bins.lost_within(low, high).numpy() * cut for bins in each)]),
            starts=np.cumsum([0, *(bins.count for bins in each)])[:-1],
            held=np.concatenate([np.zeros((4, 0)), *(bins.held_in(stretches) for bins in each)], axis=1),
            bins=Bins.joined(each) if len(each) > 1 else each[0] if each else None,
            ends=ends,
            factors=factors,
        )

    def curve(self, features: Numbers) -> Curve | None:
        """The curve of the mixture; None where so little lies between the bounds that it would lose its digits."""
        held, parts = [], []
        for one in self.smooth:
            logits, means, scales = one.head.arrays(features[one.index])
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            shares = shares / shares.sum(axis=1, keepdims=True)
            standard = (self.points[:, None, None] - means) / scales
            held.append((standard_cdf(standard, self.logistic) * shares).sum(axis=-1))
            parts.append((shares, means, scales))
        below, first, last, upto = np.concatenate(held, axis=1) if held else np.zeros((4, 0))
        each = np.stack([below, upto - below, first - below, upto - last])
        if self.bins is not None:
            logits = features[self.index] + self.lost
            probs = np.exp(logits - np.repeat(np.maximum.reduceat(logits, self.starts), self.sizes))
            probs = probs / np.repeat(np.add.reduceat(probs, self.starts), self.sizes)
            each = np.concatenate([each, np.add.reduceat(self.held * probs, self.starts, axis=1)], axis=1)
        before, inside, low, high = each
        if inside.min() < LITTLE:
            return None
        weights = self._weights(features)
        if self.factors != NO_FACTORS:
            low, high = low / inside, high / inside
            weights = weights / (1 + (self.factors[0] - 1) * low + (self.factors[1] - 1) * high)
            weights = weights / weights.sum()
        shares = weights / inside
        total = shares.sum()
        shares = shares / total
        found: list[Curve] = []
        if parts:
            ends = np.cumsum([len(own) for own, _, _ in parts])
            own = zip(np.split(shares, ends)[:-1], parts, strict=True)
            mixed = [(share[:, None] * weight).reshape(-1) for share, (weight, _, _) in own]
            means, scales = (np.concatenate([part[at].reshape(-1) for part in parts]) for at in (1, 2))
            found.append(Components(np.concatenate(mixed), means, scales, self.logistic))
        if self.bins is not None:
            found.append(Histogram(self.bins, probs * np.repeat(shares[len(shares) - len(self.sizes) :], self.sizes)))
        curve: Curve = found[0] if len(found) == 1 else Mixed(found, [1.0] * len(found))
        bounds = float(self.points[0]), float(self.points[-1])
        if bounds != NO_ENDS:
            curve = Between(curve, *bounds, float(shares @ before), float(1 / total))
        if self.factors == NO_FACTORS:
            return curve
        return Reweighed(curve, self.ends, self.factors, (float(weights @ low), float(weights @ high)))

    def _weights(self, features: Numbers) -> Numbers:
        """The weights of the members, in the order of ``numbers``."""
        added = 0.0 if self.gates is None else features[self.gates]
        weights = np.exp(self.log_weights + added)[self.numbers]
        found: Numbers = weights / weights.sum()
        return found


def _bounds(head: Head) -> Pair:
    if not isinstance(head, Bounded):
        return NO_ENDS
    return -math.inf if head.low is None else head.low, math.inf if head.high is None else head.high


def _edges(ends: Pair, lattice: Lattice | None) -> Pair:
    """Where the cells beside the ends end, on a lattice; the ends themselves on a line."""
    if lattice is None or ends == NO_ENDS:
        return ends
    below, upto = lattice.edge(lattice.index_below(torch.tensor(ends, dtype=torch.float64, device="cpu"))).tolist()
    return below, upto
