r"""Draws from a blend of numbers, each from one of its members: for many rows at once, in NumPy.

A draw of a mixture is a draw of one member, which is chosen first; what the others say of the row is never asked for.
Members differ in their families, components and bins. Here they are two batches: mixtures of components, and
histograms over the bins of all of them (:class:`.one_blend.Curves` holds what does not depend on the rows). With bounds
$l < h$, ends $e_- < e_+$ between them, and the factors $f$ of :mod:`.beyond`, a member's law has three sides,

$$[l, e_-],\ [e_-, e_+],\ [e_+, h] \quad\text{with the probabilities}\quad f_s\, (c(b_s) - c(a_s)) / Z.$$

One level says on which side a draw lies, and in which component; another one where, by inversion of the cdf there.
"""

from __future__ import annotations

import math

import numpy as np

from anyorder.distributions.curves import between, standard_cdf, standard_quantile
from anyorder.heads.bins import reaching
from anyorder.heads.bounded import LITTLE
from anyorder.heads.one_blend import Curves, Numbers, Places


def draws_by_member(tables: Curves, member: Places, features: Numbers, levels: Numbers) -> Numbers | None:
    """A draw on the line for each row, from features that begin with those of its member.

    ``levels``: two for each row, independent and even between 0 and 1. None where so little of a law lies between its
    bounds that it would lose its digits.
    """
    place = tables.places[member]
    found = np.empty(len(member))
    smooth = sum(len(one.index) for one in tables.smooth)
    for rows, drawn in (
        (np.flatnonzero(place < smooth), _from_components),
        (np.flatnonzero(place >= smooth), _from_bins),
    ):
        if len(rows):
            own = drawn(tables, place[rows], features[rows], levels[:, rows])
            if own is None:
                return None
            found[rows] = own
    return found


def _from_components(tables: Curves, place: Places, features: Numbers, levels: Numbers) -> Numbers | None:
    shares, means, scales = _components(tables, place, features)
    low, first, last, high = tables.points.tolist()
    # Each tail from its own end. What lies between the ends is a difference from one, with all digits that count.
    below, above = (_beyond(tables, end, means, scales, sign) for end, sign in ((first, 1), (last, -1)))
    under, over = (_beyond(tables, end, means, scales, sign) for end, sign in ((low, 1), (high, -1)))
    rows, components = shares.shape
    held = np.empty((rows, 3, components))
    for side, inside in enumerate((below - under, np.maximum(1 - below - above, 0.0), above - over)):
        held[:, side] = shares * inside
    if held.sum(axis=(1, 2)).min() < LITTLE:
        return None
    chosen = _chosen((held * _factors(tables)[:, None]).reshape(rows, -1), levels[0])
    sides, component = np.divmod(chosen, components)
    mean, scale = means[np.arange(rows), component], scales[np.arange(rows), component]
    start, end = ((tables.points[at] - mean) / scale for at in (sides, sides + 1))
    upper = start > -end  # from the nearer tail, so that what is far out keeps its digits
    near, far = (
        standard_cdf(np.where(upper, -one, other), tables.logistic) for one, other in ((end, start), (start, end))
    )
    score = standard_quantile(near + levels[1] * (far - near), tables.logistic)
    return _within(tables, mean + scale * np.where(upper, -score, score), sides)


def _beyond(tables: Curves, end: float, means: Numbers, scales: Numbers, sign: int) -> Numbers | float:
    """How much of each component lies below an end (1) or above it (-1)."""
    if math.isinf(end):
        return 0.0
    return standard_cdf(sign * (end - means) / scales, tables.logistic)


def _components(tables: Curves, place: Places, features: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Weights, means and scales; members with few components get some that are never drawn."""
    most = max(one.head.components for one in tables.smooth)
    shares, means, scales = (np.full((len(place), most), fill) for fill in (0.0, 0.0, 1.0))
    start = 0
    for one in tables.smooth:
        rows = np.flatnonzero((place >= start) & (place < start + len(one.index)))
        start += len(one.index)
        count = one.head.components
        logits, means[rows, :count], scales[rows, :count] = one.head.arrays(features[rows, : one.head.size])
        own = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-math.inf))
        shares[rows, :count] = own / own.sum(axis=1, keepdims=True)
    return shares, means, scales


def _from_bins(tables: Curves, place: Places, features: Numbers, levels: Numbers) -> Numbers | None:
    assert tables.bins is not None
    number = place - sum(len(one.index) for one in tables.smooth)
    logits = np.full((len(place), len(tables.lost)), -math.inf)
    for own, (start, size) in enumerate(zip(tables.starts, tables.sizes, strict=True)):
        rows = np.flatnonzero(number == own)
        logits[rows, start : start + size] = features[rows, :size]
    logits = logits + tables.lost
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs = probs / probs.sum(axis=1, keepdims=True)
    before, inside, low, high = tables.held @ probs.T
    if inside.min() < LITTLE:
        return None
    held = np.stack([low, np.maximum(inside - low - high, 0.0), high], axis=1)
    side = _chosen(held * _factors(tables), levels[0])
    starts = before[:, None] + np.stack([np.zeros_like(low), low, inside - high], axis=1)
    each = np.arange(len(place))
    wanted = between(starts[each, side] + levels[1] * held[each, side], 0.0, 1.0)
    return _within(tables, reaching(tables.bins, probs, wanted), side)


def _chosen(held: Numbers, level: Numbers) -> Places:
    """One of the columns of each row, by what they hold; one that holds nothing is never chosen."""
    total = held.cumsum(axis=1)
    # Relative to the rounded total, so that a level just below one stays inside.
    chosen = (total <= level[:, None] * total[:, -1:]).sum(axis=1)
    last = held.shape[1] - 1 - (held[:, ::-1] > 0).argmax(axis=1)
    found: Places = np.minimum(chosen, last)
    return found


def _factors(tables: Curves) -> Numbers:
    return np.array([tables.factors[0], 1.0, tables.factors[1]])


def _within(tables: Curves, found: Numbers, side: Places) -> Numbers:
    """Draws inside of their sides, whatever rounding made of them."""
    return np.minimum(np.maximum(found, tables.points[side]), tables.points[side + 1])
